/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "util/listen.h"

/* A port that is free just now. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *format, *bound;
    } cases[] = {{"%d", "127.0.0.1"},
                 {"127.0.0.1:%d", "127.0.0.1"},
                 {"localhost:%d", "127.0.0.1"},
                 {"127.0.0.9:%d", "127.0.0.9"},
                 {"0.0.0.0:%d", "0.0.0.0"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sockaddr_in at;
        socklen_t size = sizeof at;
        char text[64], address[INET_ADDRSTRLEN];
        int port = free_port();
        snprintf(text, sizeof text, *cases[i].format == '%' ? "%d" : cases[i].format, port);
        int fd = pr_listen(text);
        if (fd < 0)
            fail_msg("%s: %s", text, strerror(-fd));
        assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
        assert_string_equal(inet_ntop(AF_INET, &at.sin_addr, address, sizeof address),
                            cases[i].bound);
        assert_int_equal(ntohs(at.sin_port), port);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
        assert_int_equal(pr_listen(text), -EADDRINUSE);
        close(fd);
    }
}

static void test_what_is_no_address(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",          ":",          "x",         "127.0.0.1",    "127.0.0.1:", ":9464",
        "9464:",     "0",          "65536",     "-1",           "+1",         " 1",
        "1 ",        "1x",         "1.5",       "256.0.0.1:1",  "1.2.3:1",    "example.com:80",
        "[::1]",     "::1:9464",   "[::1]9464", "[::1:9464",    "[]:1",       "[localhost]x:1",
        "[::1]:0x1", "a:b:c:d:80", "[::g]:1",   "127.0.0.1:1:2"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        int fd = pr_listen(bad[i]);
        if (fd != -EINVAL)
            fail_msg("'%s': %d", bad[i], fd);
    }
    char many[4096];
    memset(many, '9', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    assert_int_equal(pr_listen(many), -EINVAL);
    many[100] = ':';
    assert_int_equal(pr_listen(many), -EINVAL);
}

static void test_an_address_of_others(void **state)
{
    (void)state;
    assert_int_equal(pr_listen("192.0.2.1:9464"), -EADDRNOTAVAIL); /* for documents only */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_what_is_no_address),
        cmocka_unit_test(test_an_address_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
