/* SPDX-License-Identifier: Apache-2.0 */
/* Process groups, and how new processes are found for them: trees that change between ticks, and
 * the real /proc. */
#include <signal.h>
#include <sys/wait.h>

#include "recording.h"
#include "target/listing.h"
#include "util/clock.h"
#include "util/fs.h"

/* --- members, with a clock of our own --------------------------------------------------------- */

static char dir[TREE_PATH], text[32768];
static struct pr_host host;
static struct pr_entities set;
static struct pr_target *target;
static struct pr_tick t;
static struct proctor_error err;

static int setup(void **state)
{
    (void)state;
    tree_new(dir);
    assert_int_equal(pr_host_open(&host, dir, &err), 0);
    t = (struct pr_tick){&host, 1000 * NS_PER_S, text, sizeof text};
    tree_process(dir, (struct fake_process){.pid = 1, .ppid = 0, .comm = "init"});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (target)
        target->ops->free(target, true);
    target = NULL;
    pr_host_close(&host);
    pr_entities_done(&set);
    tree_done(dir);
    return 0;
}

static void process(int pid, int pgrp)
{
    tree_process(dir, (struct fake_process){.pid = pid, .ppid = 1, .pgrp = pgrp});
}

static void watch(pid_t self)
{
    struct pr_target_setting setting = {.kind = TARGET_GROUP, .root = 100, .self = self};
    assert_int_equal(pr_target_new(&setting, &host, &target, &err), 0);
}

/* What a tick does, so many milliseconds after the one before. */
static void update(int64_t milliseconds)
{
    t.now += milliseconds * 1000000;
    assert_int_equal(target->ops->update(target, &t, &set), 0);
    for (size_t i = 0; i < set.count; i++) {
        struct pr_entity *e = set.items[i];
        if (e->life == LIFE_ALIVE && pr_source_read(&t, e, SOURCE_pid_stat) < 0)
            pr_entities_vanish(&set, e);
    }
}

static struct pr_entity *member(int pid)
{
    return pr_entities_find(&set, pid);
}

static bool is_over(void)
{
    return target->ops->over(target, &set);
}

static void test_members(void **state)
{
    (void)state;
    process(100, 100);
    process(101, 100);
    process(102, 102);
    tree_process(dir, (struct fake_process){.pid = 103, .ppid = 100, .pgrp = 103});
    tree_process(dir, (struct fake_process){.pid = 104, .ppid = 103, .pgrp = 100});
    watch(101);
    assert_false(is_over()); /* not before the first look */
    update(0);
    assert_int_equal(set.count, 2); /* neither ourselves nor a child in another group */
    assert_true(member(100) && member(104));
    assert_false(member(104)->born_inside);
    process(105, 100);
    process(106, 106);
    update(100);
    assert_int_equal(set.count, 3);
    assert_true(member(105)->born_inside); /* all that it uses counts */
    assert_false(is_over());
}

/* Its leader is gone, and so is its process: the number is the group's as long as one is in it. */
static void test_a_group_without_its_leader(void **state)
{
    (void)state;
    process(105, 100);
    watch(0);
    update(0);
    assert_int_equal(set.count, 1);
    assert_false(is_over());
}

/* A shell forks, and the child finds its group a moment later. */
static void test_the_young_are_looked_at_again(void **state)
{
    (void)state;
    process(100, 100);
    watch(0);
    update(0);
    process(105, 55);
    update(100);
    assert_null(member(105));
    process(105, 100);
    update(100);
    assert_non_null(member(105));
    assert_false(member(105)->born_inside); /* what it used before was another's */
}

static void test_others_at_the_look_at_all(void **state)
{
    (void)state;
    process(100, 100);
    process(105, 55);
    watch(0);
    update(0);
    process(105, 100); /* it was there before us: nobody expects it to move */
    update(100);
    update(9800);
    assert_null(member(105));
    update(200);
    assert_non_null(member(105));
    assert_false(member(105)->born_inside);
    process(106, 55);
    update(100);
    update(2100);
    update(100);
    process(106, 100); /* young no longer */
    update(100);
    assert_null(member(106));
    update(8000);
    assert_non_null(member(106));
    assert_int_equal(set.count, 3);
}

/* A young one ends, and another gets its pid: that one is young, too, and not late. */
static void test_young_pid_reused(void **state)
{
    (void)state;
    process(100, 100);
    watch(0);
    update(0);
    process(105, 55);
    update(1900);
    tree_reuse(dir, (struct fake_process){.pid = 105, .ppid = 1, .pgrp = 56, .start = 9000});
    update(1900);
    tree_process(dir, (struct fake_process){.pid = 105, .ppid = 1, .pgrp = 100, .start = 9000});
    update(1900);
    assert_non_null(member(105));
    tree_remove(dir, 105);
    update(100);
    tree_reuse(dir, (struct fake_process){.pid = 105, .ppid = 1, .pgrp = 100, .start = 9500});
    update(100);
    assert_int_equal(member(105)->start, 9500);
    assert_true(member(105)->born_inside);
}

/* Hundreds come and go while they are young: nobody of them is kept in mind. */
static void test_many_young(void **state)
{
    (void)state;
    process(100, 100);
    watch(0);
    update(0);
    for (int round = 0; round < 5; round++) {
        for (int pid = 200; pid < 500; pid++)
            process(pid, 55);
        update(10);
        for (int pid = 200; pid < 500; pid++)
            if (pid % 3)
                tree_remove(dir, pid);
        update(10);
    }
    for (int pid = 200; pid < 500; pid++)
        if (pid % 3 == 0)
            process(pid, 100);
    update(10);
    assert_int_equal(set.count, 101);
}

static void test_a_member_that_leaves_and_returns(void **state)
{
    (void)state;
    process(100, 100);
    process(101, 100);
    watch(0);
    update(0);
    process(101, 101);
    update(100); /* reads that it is elsewhere */
    update(100);
    assert_true(member(101)->left);
    assert_false(pr_entity_is_here(member(101)));
    process(101, 100);
    update(100);
    update(100);
    assert_false(member(101)->left);
    assert_int_equal(set.started, 2);
}

static void test_pid_reused_outside(void **state)
{
    (void)state;
    process(100, 100);
    process(101, 100);
    watch(0);
    update(0);
    tree_reuse(dir, (struct fake_process){.pid = 101, .ppid = 1, .pgrp = 55, .start = 9000});
    update(100);
    assert_null(member(101));
    assert_int_equal(set.exited, 1);
}

static void test_over(void **state)
{
    (void)state;
    process(100, 100);
    process(101, 100);
    watch(0);
    update(0);
    tree_remove(dir, 100);
    update(100);
    assert_false(is_over());
    tree_process(dir, (struct fake_process){.pid = 101, .ppid = 1, .pgrp = 100, .state = 'Z'});
    update(100);
    assert_true(is_over()); /* nobody waits for it, but it is gone */
}

static void test_over_when_the_last_one_has_left(void **state)
{
    (void)state;
    process(100, 100);
    process(101, 100);
    watch(0);
    update(0);
    tree_remove(dir, 100);
    process(101, 101);
    update(100);
    update(100);
    assert_true(is_over());
}

/* There was one when we were told to watch, and nobody any more at the first look. */
static void test_over_before_the_first_look(void **state)
{
    (void)state;
    process(100, 100);
    watch(0);
    tree_remove(dir, 100);
    update(0);
    assert_true(is_over());
}

/* Its first thread has ended, the others work on: Z, and alive. */
static void test_a_member_whose_first_thread_has_ended(void **state)
{
    (void)state;
    tree_process(
        dir, (struct fake_process){.pid = 105, .ppid = 1, .pgrp = 100, .state = 'Z', .threads = 3});
    watch(0);
    update(0);
    assert_non_null(member(105));
    assert_false(is_over());
}

static void refused(pid_t group)
{
    char number[16];
    struct pr_target_setting setting = {.kind = TARGET_GROUP, .root = group, .self = 77};
    struct pr_target *none = NULL;
    snprintf(number, sizeof number, "%d", (int)group);
    assert_int_equal(pr_target_new(&setting, &host, &none, &err), -ESRCH);
    assert_null(none);
    assert_contains(err.message, number);
    assert_contains(err.message, "ps -eo pgid,comm");
}

static void test_no_such_group(void **state)
{
    (void)state;
    refused(100);
    process(100, 102); /* a process, but no group */
    refused(100);
    tree_process(dir, (struct fake_process){.pid = 101, .ppid = 1, .pgrp = 100, .state = 'Z'});
    refused(100);
    process(77, 100); /* ourselves alone */
    refused(100);
    process(2, 0);
    tree_write(dir, "proc/2/stat", /* a kernel thread is in group 0 */
               "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 10 0 0 0\n");
    refused(0);
    refused(-1);
}

/* --- is there anything to look at? ------------------------------------------------------------ */

static bool is_due(struct pr_listing *l, int64_t milliseconds)
{
    t.now += milliseconds * 1000000;
    bool due = pr_listing_due(l, &t);
    if (!due)
        return false;
    assert_int_equal(pr_listing_look(l, &t, 0), 0);
    for (size_t i = 0; i < l->count; i++)
        pr_listing_placed(l, &t, &l->candidates[i], false);
    pr_listing_end(l);
    return true;
}

static void write_loadavg(const char *content)
{
    tree_write(dir, "proc/loadavg", content);
}

/* A loadavg that is held, as that of the real /proc is. */
static void open_listing(struct pr_listing *l, bool again)
{
    pr_listing_open(l, &host, again);
    l->loadavg = pr_fs_open(host.proc, "loadavg");
    assert_true(l->loadavg >= 0);
}

static void test_last_pid(void **state)
{
    (void)state;
    struct pr_listing l;
    write_loadavg("0.20 0.18 0.12 1/80 11206\n");
    open_listing(&l, false);
    assert_true(is_due(&l, 0));
    assert_false(is_due(&l, 10));
    assert_false(is_due(&l, 100000)); /* a tree does not look at all again */
    write_loadavg("9.99 0.18 0.12 1/80 11206\n");
    assert_false(is_due(&l, 10));
    write_loadavg("9.99 0.18 0.12 1/80 35\n"); /* pids wrap around */
    assert_true(is_due(&l, 10));
    assert_false(is_due(&l, 10));
    pr_listing_done(&l, true);
}

/* File systems of containers make one up: nothing can be learned from it. */
static void test_fake_loadavg(void **state)
{
    (void)state;
    static const char *const fakes[] = {"0.20 0.18 0.12 1/80 0\n", "0.20 0.18 0.12\n", "", "\n",
                                        "0.20 0.18 0.12 1/80 x\n", "nonsense"};
    for (size_t i = 0; i < COUNT_OF(fakes); i++) {
        struct pr_listing l;
        write_loadavg(fakes[i]);
        open_listing(&l, false);
        for (int k = 0; k < 4; k++)
            assert_true(is_due(&l, 10));
        pr_listing_done(&l, true);
    }
}

/* Where processes may change to belong, the young are looked at for two seconds, and all others
 * every ten. */
static void test_when_to_look_again(void **state)
{
    (void)state;
    struct pr_listing l;
    write_loadavg("0 0 0 1/80 100\n");
    open_listing(&l, true);
    assert_true(is_due(&l, 0));
    assert_false(is_due(&l, 9990));
    assert_true(is_due(&l, 10));
    assert_false(is_due(&l, 10));
    process(200, 200);
    write_loadavg("0 0 0 1/80 200\n");
    assert_true(is_due(&l, 10));
    assert_true(is_due(&l, 1000));
    assert_true(is_due(&l, 1000)); /* for the last time */
    assert_false(is_due(&l, 10));
    process(201, 201);
    write_loadavg("0 0 0 1/80 201\n");
    assert_true(is_due(&l, 10));
    tree_remove(dir, 201);
    assert_true(is_due(&l, 10)); /* it has ended, which we learn now */
    assert_false(is_due(&l, 10));
    pr_listing_done(&l, true);
}

/* --- the account ------------------------------------------------------------------------------ */

static struct recording r;

static int begin_recording(void **state)
{
    (void)state;
    recording_new(&r);
    return 0;
}

static int end_recording(void **state)
{
    (void)state;
    recording_done(&r);
    return 0;
}

static double ticks(double n)
{
    return n / (double)r.s.host.ticks_per_second;
}

static void record(void)
{
    recording_begin(&r, (struct pr_target_setting){.kind = TARGET_GROUP, .root = 100});
    recording_tick(&r);
}

static void test_late_joiners_count_from_then(void **state)
{
    (void)state;
    struct fake_process a = {.pid = 100, .ppid = 1, .pgrp = 100, .utime = 7},
                        b = {.pid = 101, .ppid = 1, .pgrp = 55, .utime = 30, .wchar = 500};
    tree_process(r.dir, a);
    record();
    assert_near(r.s.ledger.before[METRIC_CPU_TIME], ticks(7), 1e-9);
    tree_process(r.dir, b); /* born while we record, into another group */
    recording_tick(&r);
    b.pgrp = 100;
    b.utime = 40;
    b.wchar = 600;
    tree_process(r.dir, b);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), 0, 1e-9);
    assert_near(r.s.ledger.before[METRIC_CPU_TIME], ticks(47), 1e-9);
    b.utime = 45;
    b.wchar = 650;
    tree_process(r.dir, b);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(5), 1e-9);
    assert_near(value_of(&r, IO_WCHAR), 50, 1e-9);
    tree_process(r.dir, (struct fake_process){.pid = 102, .ppid = 101, .pgrp = 100, .utime = 3});
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(8), 1e-9); /* from its birth */
    assert_exactly(value_of(&r, PROCS), 3);
}

static void test_time_away_does_not_count(void **state)
{
    (void)state;
    struct fake_process a = {.pid = 100, .ppid = 1, .pgrp = 100, .rss_pages = 20},
                        b = {.pid = 101,
                             .ppid = 1,
                             .pgrp = 100,
                             .utime = 10,
                             .wchar = 100,
                             .rss_pages = 50};
    tree_process(r.dir, a);
    tree_process(r.dir, b);
    record();
    b.utime = 20;
    b.wchar = 200;
    b.pgrp = 101; /* until the sample that finds it elsewhere it counts */
    tree_process(r.dir, b);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(10), 1e-9);
    b.utime = 120;
    b.wchar = 1200;
    tree_process(r.dir, b);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(10), 1e-9);
    assert_near(value_of(&r, IO_WCHAR), 100, 1e-9);
    assert_exactly(value_of(&r, PROCS), 1);
    assert_exactly(value_of(&r, MEM_RSS), 20 * (double)r.s.host.page_size);
    assert_int_equal(r.s.departed, 1);
    b.pgrp = 100;
    tree_process(r.dir, b);
    recording_tick(&r); /* reads that it is back */
    b.utime = 150;
    b.wchar = 1500;
    tree_process(r.dir, b);
    recording_tick(&r);
    assert_exactly(value_of(&r, PROCS), 2);
    assert_exactly(value_of(&r, MEM_RSS), 70 * (double)r.s.host.page_size);
    double back = value_of(&r, CPU_TIME);
    assert_near(back, ticks(10), 1e-9);
    b.utime = 157;
    b.wchar = 1507;
    tree_process(r.dir, b);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), back + ticks(7), 1e-9);
    assert_near(value_of(&r, IO_WCHAR), 107, 1e-9);
    assert_near(r.s.ledger.before[METRIC_CPU_TIME], ticks(10 + 130), 1e-9);
}

/* A leaver ends and a member has waited for it: the kernel gives all of its use to that member, and
 * what it had used as a member is not added to that once more. */
static void test_who_left_is_reaped_by_a_member(void **state)
{
    (void)state;
    struct fake_process a = {.pid = 100, .ppid = 1, .pgrp = 100, .minflt = 10},
                        b = {.pid = 101, .ppid = 100, .pgrp = 100, .minflt = 40, .utime = 10};
    tree_process(r.dir, a);
    record();
    tree_process(r.dir, b);
    recording_tick(&r);
    b.pgrp = 101;
    tree_process(r.dir, b);
    recording_tick(&r);
    b.utime = 90;
    b.minflt = 60;
    tree_process(r.dir, b);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(10), 1e-9);
    tree_remove(r.dir, 101);
    a.cminflt = 60;
    a.cutime = 95;
    tree_process(r.dir, a);
    recording_tick(&r);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(95), 1e-9);
    assert_int_equal(r.s.ledger.unabsorbed, 0);
}

static void test_who_left_and_ends_elsewhere(void **state)
{
    (void)state;
    struct fake_process a = {.pid = 100, .ppid = 1, .pgrp = 100},
                        b = {.pid = 101, .ppid = 1, .pgrp = 100, .minflt = 40, .utime = 10};
    tree_process(r.dir, a);
    record();
    tree_process(r.dir, b);
    recording_tick(&r);
    b.pgrp = 101;
    tree_process(r.dir, b);
    recording_tick(&r);
    b.utime = 90;
    tree_process(r.dir, b);
    recording_tick(&r);
    tree_remove(r.dir, 101);
    for (int i = 0; i < 3; i++)
        recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(10), 1e-9);
    assert_false(pr_session_over(&r.s));
    tree_remove(r.dir, 100);
    recording_tick(&r);
    assert_true(pr_session_over(&r.s));
    pr_session_end(&r.s);
    assert_near(value_of(&r, CPU_TIME), ticks(10), 1e-9);
    assert_int_equal(r.s.left_count, 0);
}

/* --- the real /proc --------------------------------------------------------------------------- */

static pid_t sleeper(pid_t group)
{
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, group);
        for (;;)
            pause();
    }
    setpgid(pid, group); /* whoever comes first */
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_real_processes(void **state)
{
    (void)state;
    pid_t leader = sleeper(0), second = sleeper(leader);
    struct pr_target_setting setting = {.kind = TARGET_GROUP, .root = leader};
    pr_host_close(&host);
    assert_int_equal(pr_host_open(&host, "/", &err), 0);
    assert_int_equal(pr_target_new(&setting, &host, &target, &err), 0);
    update(0);
    assert_int_equal(set.count, 2);
    pid_t third = sleeper(leader), stranger = sleeper(0);
    update(10);
    assert_int_equal(set.count, 3);
    assert_non_null(member(third));
    end(leader); /* the group outlives it */
    update(10);
    assert_false(is_over());
    end(second);
    end(third);
    update(10);
    assert_true(is_over());
    end(stranger);
    for (size_t i = 0; i < set.count; i++)
        pr_source_release(&host, set.items[i]);
}

#define TEST(name)    cmocka_unit_test_setup_teardown(name, setup, teardown)
#define ACCOUNT(name) cmocka_unit_test_setup_teardown(name, begin_recording, end_recording)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_members),
        TEST(test_a_group_without_its_leader),
        TEST(test_the_young_are_looked_at_again),
        TEST(test_others_at_the_look_at_all),
        TEST(test_young_pid_reused),
        TEST(test_many_young),
        TEST(test_a_member_that_leaves_and_returns),
        TEST(test_pid_reused_outside),
        TEST(test_over),
        TEST(test_over_when_the_last_one_has_left),
        TEST(test_over_before_the_first_look),
        TEST(test_a_member_whose_first_thread_has_ended),
        TEST(test_no_such_group),
        TEST(test_last_pid),
        TEST(test_fake_loadavg),
        TEST(test_when_to_look_again),
        ACCOUNT(test_late_joiners_count_from_then),
        ACCOUNT(test_time_away_does_not_count),
        ACCOUNT(test_who_left_is_reaped_by_a_member),
        ACCOUNT(test_who_left_and_ends_elsewhere),
        TEST(test_real_processes),
    };
    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
