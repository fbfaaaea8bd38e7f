/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel's messages about sockets say, and the texts beside them. */
#include "check.h"
#include "source/net_diag.h"
#include "source/net_owner.h"
#include "source/net_space.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <arpa/inet.h>

enum { ESTABLISHED = 1 };

static _Alignas(8) char text[65536];

static size_t message(char *at, uint64_t cookie, uint32_t inode, const struct tcp_info *info,
                      size_t info_size)
{
    struct nlattr a = {(uint16_t)(sizeof a + info_size), INET_DIAG_INFO};
    struct inet_diag_msg m = {.idiag_state = ESTABLISHED, .idiag_inode = inode};
    struct nlmsghdr h = {.nlmsg_len = (uint32_t)(sizeof h + sizeof m + sizeof a + info_size),
                         .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                         .nlmsg_seq = 7};
    m.id.idiag_sport = htons(8080);
    m.id.idiag_cookie[0] = (uint32_t)cookie;
    m.id.idiag_cookie[1] = (uint32_t)(cookie >> 32);
    memcpy(at, &h, sizeof h);
    memcpy(at + sizeof h, &m, sizeof m);
    memcpy(at + sizeof h + sizeof m, &a, sizeof a);
    memcpy(at + sizeof h + sizeof m + sizeof a, info, info_size);
    return NLMSG_ALIGN(h.nlmsg_len);
}

static enum pr_diag_kind next(const char **p, size_t *len, struct pr_diag_socket *s)
{
    int error;
    return pr_diag_next(p, len, 7, s, &error);
}

static void test_a_message(void **state)
{
    (void)state;
    struct tcp_info info = {.tcpi_bytes_received = 1001,
                            .tcpi_bytes_acked = 5002,
                            .tcpi_bytes_sent = 6000,
                            .tcpi_bytes_retrans = 1000};
    const char *p = text;
    struct pr_diag_socket s;
    size_t len = message(text, 0x500000003, 77, &info, sizeof info);
    len += message(text + len, 4, 0, &info, sizeof info);
    assert_int_equal(next(&p, &len, &s), DIAG_SOCKET);
    assert_true(s.cookie == 0x500000003 && s.inode == 77 && s.port == 8080 && s.counted);
    assert_true(s.state == ESTABLISHED && !s.subflow);
    assert_true(s.rx == 1001 && s.tx == 5000 && s.sent == 6000);
    assert_int_equal(next(&p, &len, &s), DIAG_SOCKET);
    assert_true(s.cookie == 4 && s.inode == 0);
    assert_int_equal(next(&p, &len, &s), DIAG_END);
}

/* Before 4.19 there is no count of what was sent, before 4.1 none at all. */
static void test_older_kernels(void **state)
{
    (void)state;
    struct tcp_info info = {.tcpi_bytes_received = 10, .tcpi_bytes_acked = 21};
    struct pr_diag_socket s;
    const char *p = text;
    size_t len = message(text, 1, 5, &info, offsetof(struct tcp_info, tcpi_segs_out));
    assert_int_equal(next(&p, &len, &s), DIAG_SOCKET);
    assert_true(s.counted && s.rx == 10 && s.tx == 21);
    p = text;
    len = message(text, 1, 5, &info, offsetof(struct tcp_info, tcpi_pacing_rate));
    assert_int_equal(next(&p, &len, &s), DIAG_SOCKET);
    assert_false(s.counted);
}

static void test_every_length_of_a_message(void **state)
{
    (void)state;
    struct tcp_info info = {.tcpi_bytes_received = 1};
    size_t whole = message(text, 1, 5, &info, sizeof info);
    for (size_t cut = 0; cut < whole; cut++) {
        char *exact = malloc(cut ? cut : 1);
        memcpy(exact, text, cut);
        const char *p = exact;
        size_t len = cut;
        struct pr_diag_socket s;
        assert_int_equal(next(&p, &len, &s), DIAG_END); /* its length says more */
        if (cut >= sizeof(struct nlmsghdr)) {
            ((struct nlmsghdr *)(void *)exact)->nlmsg_len = (uint32_t)cut;
            enum pr_diag_kind kind = next(&p, &len, &s);
            assert_true(kind == DIAG_OTHER || (kind == DIAG_SOCKET && !s.counted));
        }
        free(exact);
    }
}

static void test_hostile_messages(void **state)
{
    (void)state;
    struct tcp_info info = {0};
    struct nlmsghdr *h = (void *)text;
    struct nlattr *a = (void *)(text + sizeof *h + sizeof(struct inet_diag_msg));
    struct pr_diag_socket s;
    static const uint32_t lengths[] = {0, 1, 15, 0x7fffffff, 0xffffffff};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        size_t len = message(text, 1, 5, &info, sizeof info);
        const char *p = text;
        h->nlmsg_len = lengths[i];
        assert_int_equal(next(&p, &len, &s), DIAG_END);
        len = message(text, 1, 5, &info, sizeof info);
        a->nla_len = (uint16_t)lengths[i];
        assert_int_equal(next(&p, &len, &s), DIAG_SOCKET);
        assert_false(s.counted);
    }
    size_t len =
        message(text, 0, 5, &info, sizeof info); /* without a name it cannot be told apart */
    const char *p = text;
    assert_int_equal(next(&p, &len, &s), DIAG_OTHER);
    len = message(text, 1, 5, &info, sizeof info);
    p = text;
    h->nlmsg_seq = 6;
    assert_int_equal(next(&p, &len, &s), DIAG_OTHER);
}

static void test_ends_and_errors(void **state)
{
    (void)state;
    struct nlmsghdr h = {.nlmsg_len = sizeof h + 4, .nlmsg_type = NLMSG_DONE, .nlmsg_seq = 7};
    const int codes[] = {-ENOENT, 0, 12345};
    struct pr_diag_socket s;
    const char *p = text;
    size_t len = sizeof h + 4;
    int error = 0;
    memcpy(text, &h, sizeof h);
    assert_int_equal(next(&p, &len, &s), DIAG_DONE);
    h.nlmsg_type = NLMSG_ERROR;
    for (int i = 0; i < 3; i++) {
        memcpy(text, &h, sizeof h);
        memcpy(text + sizeof h, &codes[i], sizeof *codes);
        p = text;
        len = sizeof h + 4;
        assert_int_equal(pr_diag_next(&p, &len, 7, &s, &error), DIAG_FAILED);
        assert_int_equal(error, i ? -EIO : -ENOENT);
    }
}

static void test_links(void **state)
{
    (void)state;
    assert_int_equal(pr_net_link_inode("socket:[123]", 12), 123);
    static const char *const others[] = {
        "socket:[123",  "socket:[]",   "socket:123]",    "pipe:[123]", "",
        "socket:[12]x", "socket:[-1]", "/tmp/socket:[1]"};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_int_equal(pr_net_link_inode(others[i], strlen(others[i])), 0);
}

static void test_device_sums(void **state)
{
    (void)state;
    static const char file[] = "Inter-|   Receive  |  Transmit\n face |bytes\n"
                               "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
                               "  eth0: 100 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n"
                               " veth1:   3 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0\n";
    double bytes[2];
    assert_true(pr_net_dev_sum(file, sizeof file - 1, bytes));
    assert_exactly(bytes[0], 103);
    assert_exactly(bytes[1], 24);
    assert_false(pr_net_dev_sum("", 0, bytes));
    assert_false(pr_net_dev_sum("no such\n", 8, bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message),
        cmocka_unit_test(test_older_kernels),
        cmocka_unit_test(test_every_length_of_a_message),
        cmocka_unit_test(test_hostile_messages),
        cmocka_unit_test(test_ends_and_errors),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_device_sums),
    };
    return cmocka_run_group_tests_name("net_diag", tests, NULL, NULL);
}
