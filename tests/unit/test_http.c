/* SPDX-License-Identifier: Apache-2.0 */
/* Against a server that answers whatever a test says. */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "publish/http.h"
#include "tree.h"
#include "util/clock.h"

static struct {
    int fd;
    char url[64];
    pthread_t thread;
    const char *answer; /* NULL: says nothing, and waits until the other end has gone */
    size_t garbage;     /* so many bytes behind it */
    char request[8192];
} server;

static void answer(int fd)
{
    static const char block[4096] = "x";
    char rest[256];
    ssize_t n = read(fd, server.request, sizeof server.request - 1);
    server.request[n > 0 ? n : 0] = '\0';
    if (server.answer && write(fd, server.answer, strlen(server.answer)) < 0)
        return;
    for (size_t sent = 0; sent < server.garbage; sent += sizeof block)
        if (send(fd, block, sizeof block, MSG_NOSIGNAL) < 0)
            return;
    while (!server.answer && read(fd, rest, sizeof rest) > 0)
        ;
}

static void *serve(void *data)
{
    (void)data;
    int fd = accept(server.fd, NULL, NULL);
    if (fd >= 0) {
        answer(fd);
        close(fd);
    }
    return NULL;
}

static void start(const char *text, size_t garbage)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    server.answer = text;
    server.garbage = garbage;
    server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(server.fd, 4), 0);
    assert_int_equal(getsockname(server.fd, (struct sockaddr *)&at, &size), 0);
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d/path", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void stop(void)
{
    shutdown(server.fd, SHUT_RDWR);
    pthread_join(server.thread, NULL);
    close(server.fd);
}

static struct pr_http *open_http(const struct pr_http_setting *setting)
{
    struct pr_http *h = NULL;
    char why[200] = "";
    if (pr_http_new(&h, setting, why, sizeof why) < 0)
        fail_msg("%s", why);
    return h;
}

static int send_to(const struct pr_http_setting *setting, struct pr_http_answer *a)
{
    struct pr_http *h = open_http(setting);
    struct pr_http_request request = {.url = server.url, .body = "{}", .len = 2, .header = "X: y"};
    int code = pr_http_send(h, &request, a);
    pr_http_free(h);
    return code;
}

static const struct pr_http_setting plain = {.timeout = 10};

static void test_an_answer_comes_back(void **state)
{
    (void)state;
    struct pr_http_answer a = {0};
    start("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbody", 0);
    assert_int_equal(send_to(&plain, &a), 0);
    stop();
    assert_int_equal(a.status, 429);
    assert_true(a.retry_after == 7);
    assert_string_equal(pr_buf_text(&a.body), "body");
    assert_non_null(strstr(server.request, "POST /path HTTP/1.1\r\n"));
    assert_non_null(strstr(server.request, "Content-Type: application/json\r\n"));
    assert_non_null(strstr(server.request, "\r\nX: y\r\n"));
    assert_null(strstr(server.request, "Authorization"));
    pr_buf_done(&a.body);
}

static void test_a_time_without_end_is_no_time_that_is_over(void **state)
{
    (void)state;
    struct pr_http_answer a = {0};
    const struct pr_http_setting setting = {.timeout = 1e14};
    start("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0);
    assert_int_equal(send_to(&setting, &a), 0);
    stop();
    pr_buf_done(&a.body);
}

static void test_who_we_are_is_said_to_the_server(void **state)
{
    (void)state;
    struct pr_http_answer a = {0};
    struct pr_http_setting token = {.timeout = 10, .token = "t0k"},
                           both = {.timeout = 10, .user = "me", .password = "pw", .token = "t0k"};
    start("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0);
    assert_int_equal(send_to(&token, &a), 0);
    stop();
    assert_non_null(strstr(server.request, "\r\nAuthorization: Bearer t0k\r\n"));
    start("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0);
    assert_int_equal(send_to(&both, &a), 0);
    stop();
    assert_non_null(strstr(server.request, "\r\nAuthorization: Basic bWU6cHc=\r\n"));
    assert_null(strstr(server.request, "t0k"));
    pr_buf_done(&a.body);
}

/* Ten megabytes: no more than a piece of it is taken. */
static void test_an_endless_answer_is_given_up(void **state)
{
    (void)state;
    struct pr_http_answer a = {0};
    start("HTTP/1.1 200 OK\r\nContent-Length: 10485760\r\n\r\n", 10 * 1024 * 1024);
    assert_int_equal(send_to(&plain, &a), -EAGAIN);
    stop();
    assert_string_equal(a.why, "its answer is too long");
    assert_true(a.body.len <= HTTP_ANSWER_MOST);
    pr_buf_done(&a.body);
}

static void test_half_an_answer_is_none(void **state)
{
    (void)state;
    static const char *const halves[] = {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "",
                                         "\x01\x02 garbage \xff\xfe\r\n\r\n"};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        struct pr_http_answer a = {0};
        start(halves[i], 0);
        assert_int_equal(send_to(&plain, &a), -EAGAIN);
        stop();
        assert_true(a.why[0]);
        pr_buf_done(&a.body);
    }
}

static void test_silence_lasts_as_long_as_the_limit(void **state)
{
    (void)state;
    struct pr_http_answer a = {0};
    struct pr_http_setting hasty = {.timeout = 0.3};
    start(NULL, 0);
    int64_t began = pr_clock_boot();
    assert_int_equal(send_to(&hasty, &a), -EAGAIN);
    double took = pr_seconds(pr_clock_boot() - began);
    stop();
    assert_string_equal(a.why, "it does not answer in time");
    assert_true(took >= 0.3 && took < 5);
    pr_buf_done(&a.body);
}

static void *hurry(void *h)
{
    usleep(200000);
    pr_http_until(h, pr_clock_boot());
    return NULL;
}

static void test_a_request_can_be_given_up_by_another_thread(void **state)
{
    (void)state;
    struct pr_http_answer a = {0};
    struct pr_http_setting patient = {.timeout = 60};
    pthread_t thread;
    start(NULL, 0);
    struct pr_http *h = open_http(&patient);
    struct pr_http_request request = {.url = server.url};
    int64_t began = pr_clock_boot();
    assert_int_equal(pthread_create(&thread, NULL, hurry, h), 0);
    assert_int_equal(pr_http_send(h, &request, &a), -EAGAIN);
    assert_true(pr_seconds(pr_clock_boot() - began) < 10);
    pthread_join(thread, NULL);
    pr_http_free(h);
    stop();
    pr_buf_done(&a.body);
}

static void test_nobody_there_is_said_without_secrets(void **state)
{
    (void)state;
    struct pr_http_answer a = {0};
    struct pr_http_setting secret = {.timeout = 5, .user = "me", .password = "hidden"};
    start(NULL, 0);
    stop(); /* the port is free again */
    assert_int_equal(send_to(&secret, &a), -EAGAIN);
    assert_non_null(strstr(a.why, "connect"));
    assert_null(strstr(a.why, "hidden"));
    pr_buf_done(&a.body);
}

static void test_other_protocols_are_refused(void **state)
{
    (void)state;
    struct pr_http_answer a = {0};
    struct pr_http *h = open_http(&plain);
    struct pr_http_request request = {.url = "file:///etc/passwd"};
    assert_true(pr_http_send(h, &request, &a) < 0);
    assert_int_equal(a.body.len, 0);
    pr_http_free(h);
    pr_buf_done(&a.body);
}

static void test_retry_after_is_a_number_or_a_date(void **state)
{
    (void)state;
    int64_t now = INT64_C(784111777) * NS_PER_S; /* 06 Nov 1994 08:49:37 */
    assert_true(pr_http_retry_after(" 120\r\n", now) == 120);
    assert_true(pr_http_retry_after("Sun, 06 Nov 1994 08:50:07 GMT", now) == 30);
    assert_true(pr_http_retry_after("Sun, 06 Nov 1994 08:00:00 GMT", now) == 0);
    assert_true(pr_http_retry_after("99999999", now) == 3600);
    assert_true(isnan(pr_http_retry_after("soon", now)));
    assert_true(isnan(pr_http_retry_after("-1", now)));
    assert_true(isnan(pr_http_retry_after("Sun, 06 ovD 1994 08:50:07 GMT", now)));
    assert_true(isnan(pr_http_retry_after("", now)));
}

static void test_text_becomes_a_part_of_a_url(void **state)
{
    (void)state;
    struct pr_buf out = {0};
    pr_http_escape(&out, "a b/c?d=\xc3\xa9&~._-");
    assert_string_equal(pr_buf_text(&out), "a%20b%2Fc%3Fd%3D%C3%A9%26~._-");
    pr_buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_comes_back),
        cmocka_unit_test(test_a_time_without_end_is_no_time_that_is_over),
        cmocka_unit_test(test_who_we_are_is_said_to_the_server),
        cmocka_unit_test(test_an_endless_answer_is_given_up),
        cmocka_unit_test(test_half_an_answer_is_none),
        cmocka_unit_test(test_silence_lasts_as_long_as_the_limit),
        cmocka_unit_test(test_a_request_can_be_given_up_by_another_thread),
        cmocka_unit_test(test_nobody_there_is_said_without_secrets),
        cmocka_unit_test(test_other_protocols_are_refused),
        cmocka_unit_test(test_retry_after_is_a_number_or_a_date),
        cmocka_unit_test(test_text_becomes_a_part_of_a_url),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
