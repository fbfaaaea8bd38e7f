/* SPDX-License-Identifier: Apache-2.0 */
/* Network bytes by socket: whose a socket is, and what counts. */
#include "tree.h"
#include "core/net.h"
#include "source/net_owner.h"

enum { ESTABLISHED = 1, CLOSED = 7 };

static char dir[TREE_PATH];
static struct pr_host host;
static struct pr_entities set;
static struct pr_net_table n;
static struct pr_net_search search;
static char text[65536];
static struct pr_tick tick = {&host, 1000000000, text, sizeof text};
static unsigned dump;

static int setup(void **state)
{
    (void)state;
    struct proctor_error err;
    n = (struct pr_net_table){0};
    search = (struct pr_net_search){0};
    dump = 0;
    tree_new(dir);
    return pr_host_open(&host, dir, &err);
}

static int teardown(void **state)
{
    (void)state;
    pr_net_table_done(&n);
    pr_entities_done(&set);
    pr_host_close(&host);
    tree_done(dir);
    return 0;
}

static struct pr_entity *member(pid_t pid)
{
    struct pr_entity *e = pr_entities_add(&set, pid, 1000 + (uint64_t)pid);
    e->state = 'S';
    return e;
}

/* The process has these sockets open, up to a 0. */
static void holds(pid_t pid, const uint32_t *inodes)
{
    char name[TREE_PATH], link[64];
    snprintf(name, sizeof name, "proc/%d/fd", (int)pid);
    tree_delete(dir, name);
    snprintf(name, sizeof name, "proc/%d/fd/x", (int)pid);
    tree_write(dir, name, "");
    for (int fd = 0; inodes[fd]; fd++) {
        snprintf(name, sizeof name, "%s/proc/%d/fd/%d", dir, (int)pid, fd);
        snprintf(link, sizeof link, "socket:[%u]", inodes[fd]);
        assert_int_equal(symlink(link, name), 0);
    }
}
#define HOLDS(pid, ...) holds(pid, (const uint32_t[]){__VA_ARGS__, 0})

static void see(uint64_t cookie, uint32_t inode, uint64_t rx, uint64_t tx)
{
    struct pr_diag_socket s = {
        cookie, inode, (uint16_t)(10000 + cookie), ESTABLISHED, false, true, rx, tx, tx};
    pr_net_table_see(&n, &set, &s, dump, dump == 1);
}

static void listener(uint64_t cookie, uint32_t inode, uint16_t port)
{
    struct pr_diag_socket s = {cookie, inode, port, DIAG_LISTEN, false, true, 0, 0, 0};
    pr_net_table_see(&n, &set, &s, dump, dump == 1);
}

static void gone_from(uint64_t cookie, uint16_t port, uint64_t rx, uint64_t tx)
{
    struct pr_diag_socket s = {cookie, 0, port, CLOSED, false, true, rx, tx, tx};
    pr_net_table_gone(&n, &set, &s);
}

static void gone(uint64_t cookie, uint64_t rx, uint64_t tx)
{
    gone_from(cookie, (uint16_t)(10000 + cookie), rx, tx);
}

static void next_dump(void)
{
    dump++;
    n.reading += dump > 1;
    tick.now += 1000000000;
}

static void look(void)
{
    pr_net_search(&search, &n, &set, &tick, true);
}

#define assert_sums(received, sent, nobodys)                                                       \
    do {                                                                                           \
        assert_exactly(n.rx, received);                                                            \
        assert_exactly(n.tx, sent);                                                                \
        assert_exactly(n.unattributed, nobodys);                                                   \
    } while (0)

static void test_from_the_beginning_on(void **state)
{
    (void)state;
    next_dump();
    see(1, 11, 1000, 2000); /* before the recording */
    struct pr_entity *e = member(100);
    HOLDS(100, 11, 12);
    next_dump();
    see(1, 11, 1005, 2006);
    see(2, 12, 30, 40);
    look();
    assert_sums(35, 46, 0);
    assert_exactly(e->value[METRIC_NET_RX], 35);
    assert_exactly(e->value[METRIC_NET_TX], 46);
    assert_int_equal(pr_net_table_wanted(&n), 0);
    next_dump();
    see(1, 11, 1005, 2106);
    gone(2, 31, 45);
    assert_sums(36, 151, 0);
    assert_int_equal(n.count, 1);
}

/* A job that was given no socket has none of those before it, and what came to their ports is not
 * its either. */
static void test_empty_handed(void **state)
{
    (void)state;
    next_dump();
    see(1, 11, 1000, 2000);
    see(2, 0, 10, 20); /* not accepted yet, or closed */
    listener(3, 13, 80);
    pr_net_table_disown(&n);
    assert_int_equal(pr_net_table_wanted(&n), 0);
    gone(1, 1005, 2006);
    gone(2, 15, 26);
    gone_from(4, 80, 7, 7);
    assert_sums(0, 0, 0);
    gone(5, 3, 4);
    pr_net_table_settle(&n, &set);
    assert_sums(0, 0, 7);
}

static void test_what_is_gone_stays_counted(void **state)
{
    (void)state;
    member(100);
    HOLDS(100, 11);
    next_dump();
    next_dump();
    see(1, 11, 5, 7);
    look();
    pr_entities_vanish(&set, pr_entities_find(&set, 100));
    gone(1, 6, 9); /* its last words come after its holder's end */
    assert_sums(6, 9, 0);
}

/* Who is not found is somebody else's only when members were looked for after it was seen. */
static void test_others(void **state)
{
    (void)state;
    member(100);
    HOLDS(100, 99);
    next_dump();
    next_dump();
    see(1, 11, 5, 7);
    look();
    assert_int_equal(n.items[0].side, SIDE_UNKNOWN);
    member(101); /* born in between */
    HOLDS(101, 12);
    next_dump();
    see(1, 11, 50, 70);
    see(2, 12, 1, 2);
    look();
    assert_int_equal(n.items[0].side, SIDE_OTHER);
    gone(1, 500, 700);
    assert_sums(1, 2, 0);
    pr_net_table_settle(&n, &set);
    assert_sums(1, 2, 0);
}

static void test_a_child_that_was_found_later(void **state)
{
    (void)state;
    member(100);
    HOLDS(100, 99);
    next_dump();
    next_dump();
    see(1, 11, 5, 7);
    look();
    struct pr_entity *child = member(101);
    HOLDS(101, 11);
    next_dump();
    see(1, 11, 5, 8);
    look();
    assert_sums(5, 8, 0);
    assert_exactly(child->value[METRIC_NET_TX], 8);
}

static void test_gone_before_anybody_saw(void **state)
{
    (void)state;
    next_dump();
    gone(5, 10, 20);
    assert_sums(0, 0, 30);
    next_dump();
    see(6, 16, 1, 1); /* seen, but nobody was looked for in time */
    gone(6, 2, 3);
    assert_sums(0, 0, 35);
    see(7, 0, 4, 4); /* closed by its holder, and still busy at the end */
    pr_net_table_settle(&n, &set);
    assert_sums(0, 0, 43);
    pr_net_table_settle(&n, &set);
    assert_sums(0, 0, 43);
    n.nobody_here = true;
    gone(8, 100, 100);
    assert_sums(0, 0, 43);
}

static void test_accepted_and_gone(void **state)
{
    (void)state;
    struct pr_entity *e = member(100);
    HOLDS(100, 11);
    next_dump();
    listener(1, 11, 80);
    listener(2, 12, 443);
    gone_from(50, 80, 1, 2); /* whose 80 is is not known yet */
    assert_sums(0, 0, 0);
    next_dump();
    listener(1, 11, 80);
    listener(2, 12, 443);
    look();
    assert_sums(1, 2, 0);
    gone_from(51, 80, 10, 20);
    gone_from(52, 443, 100, 200); /* another server's */
    assert_sums(11, 22, 0);
    assert_exactly(e->value[METRIC_NET_RX], 11);
    gone_from(1, 80, 0, 0); /* the server itself */
    gone_from(53, 80, 1, 1);
    assert_sums(11, 22, 2);
}

static void test_a_port_with_several_listeners(void **state)
{
    (void)state;
    member(100);
    HOLDS(100, 11, 12);
    next_dump();
    listener(1, 11, 80);
    listener(2, 12, 80);
    next_dump();
    look();
    gone_from(50, 80, 1, 2);
    assert_sums(1, 2, 0);
    listener(3, 13, 80);
    next_dump();
    look();
    assert_int_equal(n.items[2].side, SIDE_OTHER);
    gone_from(51, 80, 10, 20); /* it may be anybody's */
    assert_sums(1, 2, 30);
    gone_from(3, 80, 0, 0);
    gone_from(52, 80, 4, 4);
    assert_sums(5, 6, 30);
}

static void test_an_inherited_socket_counts_once(void **state)
{
    (void)state;
    struct pr_entity *parent = member(100), *child = member(101);
    HOLDS(100, 11);
    HOLDS(101, 11);
    next_dump();
    next_dump();
    see(1, 11, 5, 7);
    look();
    assert_sums(5, 7, 0);
    assert_exactly(parent->value[METRIC_NET_RX], 5);
    assert_absent(child->value[METRIC_NET_RX]);
    pr_entities_vanish(&set, parent);
    next_dump();
    see(1, 11, 6, 7); /* the job's, whoever has it */
    assert_sums(6, 7, 0);
    look();
    next_dump();
    see(1, 11, 10, 7);
    assert_sums(10, 7, 0);
    assert_exactly(child->value[METRIC_NET_RX], 4);
}

static void test_a_socket_that_was_given_away(void **state)
{
    (void)state;
    struct pr_entity *e = member(100);
    HOLDS(100, 11);
    next_dump();
    next_dump();
    see(1, 11, 5, 7);
    look();
    pr_entities_vanish(&set, e);
    for (int i = 0; i < 3; i++) {
        next_dump();
        see(1, 11, 6, 7);
        look();
    }
    next_dump();
    see(1, 11, 600, 700);
    assert_sums(6, 7, 0);
}

static void test_who_left_does_not_count(void **state)
{
    (void)state;
    struct pr_entity *e = member(100);
    HOLDS(100, 11);
    next_dump();
    next_dump();
    see(1, 11, 5, 7);
    look();
    e->left = true;
    see(1, 11, 50, 70);
    e->left = false;
    see(1, 11, 51, 72);
    assert_sums(6, 9, 0);
}

static void test_the_number_of_another_socket(void **state)
{
    (void)state;
    struct pr_entity *e = member(100);
    HOLDS(100, 11);
    next_dump();
    next_dump();
    see(1, 11, 5, 7);
    look();
    next_dump();
    see(2, 11, 100,
        100); /* the same inode: another socket, before we hear that the first is gone */
    HOLDS(100, 12);
    look();
    gone(1, 6, 7);
    assert_int_equal(n.count, 1);
    next_dump();
    see(2, 11, 200, 200);
    look();
    assert_sums(6, 7, 0);
    HOLDS(100, 11, 12); /* now it is handed over: from here on it counts */
    next_dump();
    see(3, 12, 1, 1);
    look();
    see(2, 11, 201, 202);
    assert_sums(8, 10, 0);
    assert_exactly(e->value[METRIC_NET_RX], 8);
}

static void test_connected_anew(void **state)
{
    (void)state;
    member(100);
    HOLDS(100, 11);
    next_dump();
    next_dump();
    see(1, 11, 50, 70);
    look();
    see(1, 11, 3, 4);
    assert_sums(53, 74, 0);
}

/* Where somebody's descriptors may not be seen, nothing is known not to be his. */
static void test_a_blind_search_decides_nothing(void **state)
{
    (void)state;
    member(100);
    tree_write(dir, "proc/100/fd", "no directory\n");
    next_dump();
    see(1, 11, 5, 7);
    next_dump();
    see(1, 11, 6, 8);
    look();
    assert_true(search.blind);
    assert_int_equal(n.items[0].side, SIDE_UNKNOWN);
    pr_net_table_settle(&n, &set);
    assert_sums(0, 0, 2);
}

static void test_lost_events(void **state)
{
    (void)state;
    member(100);
    HOLDS(100, 11);
    next_dump();
    next_dump();
    see(1, 11, 5, 7);
    see(2, 12, 3, 3);
    look();
    next_dump();
    see(3, 13, 1, 1);
    pr_net_table_sweep(&n, &set, dump);
    assert_int_equal(n.count, 1);
    assert_sums(5, 7, 6);
}

static void test_ten_thousand(void **state)
{
    (void)state;
    member(100);
    HOLDS(100, 11);
    next_dump();
    next_dump();
    for (uint64_t i = 1; i <= 10000; i++)
        see(i, (uint32_t)(10 + i), i, 0);
    look();
    assert_int_equal(n.count, 10000);
    for (uint64_t i = 10000; i > 1; i -= 2)
        gone(i, i, 0);
    assert_int_equal(n.count, 5000);
    next_dump();
    for (uint64_t i = 1; i <= 10000; i += 2)
        see(i, (uint32_t)(10 + i), 2 * i, 0);
    look();
    assert_int_equal(pr_net_table_wanted(&n), 0);
    for (uint64_t i = 1; i <= 10000; i += 2)
        gone(i, 2 * i, 0);
    assert_int_equal(n.count + n.by_cookie.count + n.by_inode.count, 0);
    assert_exactly(n.rx, 2);
    assert_exactly(n.unattributed, 2.0 * 5000 * 5001 / 2); /* the even ones: nobody was sure */
}

static void test_not_under_another_root(void **state)
{
    (void)state;
    struct pr_net *net;
    assert_int_equal(pr_net_open(&net, &host, false), -ENOTSUP);
    assert_contains(pr_net_reason(net), "--root");
    pr_net_read(net, &set, &tick, true, true);
    pr_net_settle(net, &set);
    assert_absent(pr_net_sum(net).rx);
    assert_absent(pr_net_sum(net).unattributed);
    assert_int_equal(pr_net_descriptors(net), 0);
    pr_net_close(net, true);
    pr_net_close(NULL, true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_from_the_beginning_on),
        TEST(test_what_is_gone_stays_counted),
        TEST(test_others),
        TEST(test_a_child_that_was_found_later),
        TEST(test_gone_before_anybody_saw),
        TEST(test_accepted_and_gone),
        TEST(test_a_port_with_several_listeners),
        TEST(test_an_inherited_socket_counts_once),
        TEST(test_a_socket_that_was_given_away),
        TEST(test_who_left_does_not_count),
        TEST(test_the_number_of_another_socket),
        TEST(test_connected_anew),
        TEST(test_a_blind_search_decides_nothing),
        TEST(test_lost_events),
        TEST(test_ten_thousand),
        TEST(test_empty_handed),
        TEST(test_not_under_another_root),
    };
    return cmocka_run_group_tests_name("net", tests, NULL, NULL);
}
