/* SPDX-License-Identifier: Apache-2.0 */
/* --match: which rule a process belongs to, and the account of each rule. */
#include "recording.h"
#include "core/match.h"

/* --- rules ------------------------------------------------------------------------------------ */

static struct pr_matches rules;
static struct proctor_error err;

static int init(size_t count, char **text)
{
    struct pr_list list = {text, count};
    return pr_matches_init(&rules, &list, &err);
}
#define INIT(...) init(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *), (char *[]){__VA_ARGS__})

static void test_names_of_rules(void **state)
{
    (void)state;
    assert_int_equal(INIT("sort", "the-tool.1_=^t", "^a=b$", "x=y=z", "=q"), 0);
    static const char *const names[] = {"sort", "the-tool.1_", "^a=b$", "x", "=q"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_string_equal(rules.items[i].name, names[i]);
    assert_int_equal(regexec(&rules.items[1].regex, "tool", 0, NULL, 0), 0);
    assert_int_not_equal(regexec(&rules.items[1].regex, "a tool", 0, NULL, 0), 0);
    assert_int_equal(regexec(&rules.items[2].regex, "a=b", 0, NULL, 0), 0);
    assert_int_equal(regexec(&rules.items[3].regex, "y=z", 0, NULL, 0), 0);
    pr_matches_done(&rules);
    assert_int_equal(init(0, NULL), 0);
    assert_int_equal(rules.count, 0);
    pr_matches_done(&rules);
}

static void test_two_of_one_name(void **state)
{
    (void)state;
    assert_int_equal(INIT("a=x", "b=y", "a=z"), -EINVAL);
    assert_contains(err.message, "'a'");
    assert_contains(err.message, "NAME=");
    pr_matches_done(&rules);
    assert_int_equal(INIT("x", "x"), -EINVAL);
    pr_matches_done(&rules);
    assert_int_equal(INIT("x", "n=x"), 0); /* the same pattern under another name is allowed */
    pr_matches_done(&rules);
}

static void test_no_rules(void **state)
{
    (void)state;
    static const char *const bad[] = {"(", "[a", "*(", "a{2", "n=(", "a**("};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const char *pattern = strchr(bad[i], '=') ? strchr(bad[i], '=') + 1 : bad[i];
        assert_int_equal(pr_match_parse(bad[i], "--match", NULL, NULL, &err), -EINVAL);
        assert_contains(err.message, "--match");
        assert_contains(err.message, pattern);
        assert_contains(err.message, "regular expression");
    }
    assert_int_equal(pr_match_parse("", "PROCTOR_MATCH", NULL, NULL, &err), -EINVAL);
    assert_contains(err.message, "PROCTOR_MATCH");
    assert_int_equal(pr_match_parse("tool=", "--match", NULL, NULL, &err), -EINVAL);
    assert_contains(err.message, "'tool='");
    assert_contains(err.message, "NAME=REGEX");
}

/* --- who belongs where ------------------------------------------------------------------------ */

static struct recording r;

static int setup(void **state)
{
    (void)state;
    recording_new(&r);
    tree_process(r.dir, (struct fake_process){.pid = 1, .ppid = 0, .comm = "init"});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    recording_done(&r);
    return 0;
}

static double ticks(double n)
{
    return n / (double)r.s.host.ticks_per_second;
}

/* The tree of 100, with these rules. */
static void inside(const char *const *rule)
{
    for (; *rule; rule++)
        option(&r, OPTION_MATCH, *rule);
    recording_begin(&r, (struct pr_target_setting){.root = 100});
}
#define INSIDE(...) inside((const char *const[]){__VA_ARGS__, NULL})

/* The whole machine. */
static void everywhere(const char *rule)
{
    option(&r, OPTION_MATCH, rule);
    recording_begin(&r, (struct pr_target_setting){.kind = TARGET_MATCH});
}

static void cmdline(int pid, const char *text, size_t len)
{
    char name[64];
    snprintf(name, sizeof name, "proc/%d/cmdline", pid);
    tree_write_bytes(r.dir, name, text, len);
}

static double total(size_t rule, enum pr_metric_id id)
{
    return pr_stats_total(&r.s.matches.items[rule].stats, id);
}

static uint64_t instances(size_t rule)
{
    return r.s.matches.items[rule].instances;
}

static void test_first_match_wins(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "make"});
    INSIDE("one=^tool-a$", "two=tool", "three=^.*$");
    recording_tick(&r);
    tree_process(r.dir,
                 (struct fake_process){.pid = 101, .ppid = 100, .comm = "tool-a", .utime = 1});
    tree_process(r.dir,
                 (struct fake_process){.pid = 102, .ppid = 100, .comm = "tool-b", .utime = 2});
    tree_process(r.dir, (struct fake_process){.pid = 103, .ppid = 100, .comm = "vi", .utime = 4});
    cmdline(103, "vi\0tool-a", 10);
    tree_process(r.dir, (struct fake_process){.pid = 104, .ppid = 1, .comm = "tool-a"});
    recording_tick(&r);
    assert_int_equal(instances(0), 1);
    assert_int_equal(instances(1), 1);
    assert_int_equal(instances(2), 2); /* make and vi, and not the tool outside of the tree */
    assert_near(total(0, METRIC_CPU_TIME), ticks(1), 1e-9);
    assert_near(total(1, METRIC_CPU_TIME), ticks(2), 1e-9);
    assert_near(total(2, METRIC_CPU_TIME), ticks(4), 1e-9);
    assert_near(value_of(&r, CPU_TIME), ticks(7), 1e-9);
}

/* A shell executes the tool: what it had used as a shell stays there. */
static void test_exec_changes_the_match(void **state)
{
    (void)state;
    struct fake_process p = {.pid = 101, .ppid = 100, .comm = "sh", .utime = 5};
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "make"});
    INSIDE("shells=^sh$", "tools=^tool$");
    recording_tick(&r);
    tree_process(r.dir, p);
    for (int i = 0; i < 6; i++) /* young no longer */
        recording_tick(&r);
    assert_near(total(0, METRIC_CPU_TIME), ticks(5), 1e-9);
    assert_absent(total(1, METRIC_CPU_TIME)); /* nobody yet: not 0 */
    p.comm = "tool";
    p.utime = 8;
    tree_process(r.dir, p);
    recording_tick(&r);
    p.utime = 20;
    tree_process(r.dir, p);
    recording_tick(&r);
    assert_near(total(0, METRIC_CPU_TIME) + total(1, METRIC_CPU_TIME), ticks(20), 1e-9);
    assert_near(total(1, METRIC_CPU_TIME), ticks(12), 1e-9); /* the interval in between: sh's */
    assert_int_equal(instances(0), 1);
    assert_int_equal(instances(1), 1);
    p.comm = "other";
    p.utime = 23;
    tree_process(r.dir, p);
    recording_tick(&r);
    p.utime = 99;
    tree_process(r.dir, p);
    recording_tick(&r);
    assert_near(total(1, METRIC_CPU_TIME), ticks(15), 1e-9);
}

/* It was forked a moment before the sample and had not executed its program yet. What it used until
 * the next sample is nearly all the program's. */
static void test_caught_between_fork_and_exec(void **state)
{
    (void)state;
    struct fake_process p = {.pid = 101, .ppid = 100, .comm = "make", .utime = 1};
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "make"});
    INSIDE("tools=^tool$");
    recording_tick(&r);
    tree_process(r.dir, p);
    recording_tick(&r);
    p.comm = "tool";
    p.utime = 101;
    tree_process(r.dir, p);
    recording_tick(&r);
    assert_near(total(0, METRIC_CPU_TIME), ticks(100), 1e-9);
    assert_int_equal(instances(0), 1);
}

/* Another script of the same interpreter goes by the same comm. */
static void test_a_script_is_noticed_soon(void **state)
{
    (void)state;
    struct fake_process p = {.pid = 101, .ppid = 100, .comm = "python3"};
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "make"});
    tree_process(r.dir, p);
    cmdline(101, "python3\0-c\0code", 16);
    INSIDE("^tool[.]py$");
    recording_tick(&r);
    assert_int_equal(instances(0), 0);
    cmdline(101, "python3\0tool.py", 16);
    recording_tick(&r);
    assert_int_equal(instances(0), 1);
}

/* --- what they used --------------------------------------------------------------------------- */

static void test_conserved_over_members_that_end(void **state)
{
    (void)state;
    double before = 0, sum = 0;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "make"});
    INSIDE("tools=^tool$");
    recording_tick(&r);
    for (int i = 1; i <= 20; i++) {
        struct fake_process p = {
            .pid = 200 + i, .ppid = 100, .comm = "tool", .utime = (unsigned)i, .wchar = 100};
        tree_process(r.dir, p);
        recording_tick(&r);
        p.utime += 3;
        tree_process(r.dir, p);
        recording_tick(&r);
        tree_remove(r.dir, p.pid);
        sum += i + 3;
        if (i % 2)
            recording_tick(&r); /* empty at times, at others the next one is there already */
        assert_true(total(0, METRIC_CPU_TIME) >= before);
        before = total(0, METRIC_CPU_TIME);
    }
    for (int i = 0; i < 3; i++)
        recording_tick(&r);
    assert_near(total(0, METRIC_CPU_TIME), ticks(sum), 1e-9);
    assert_near(total(0, METRIC_IO_WCHAR), 2000, 1e-9);
    assert_int_equal(instances(0), 20);
    assert_int_equal(r.s.matches.items[0].samples, 40);
}

/* A tool that waits for others has their times beside its own, and they do not count. */
static void test_own_use_only(void **state)
{
    (void)state;
    struct fake_process p = {.pid = 101, .ppid = 100, .comm = "tool", .utime = 2};
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "make"});
    INSIDE("tools=^tool$");
    recording_tick(&r);
    tree_process(r.dir, p);
    recording_tick(&r);
    p.cutime = 500;
    p.cminflt = 77;
    p.utime = 3;
    tree_process(r.dir, p);
    recording_tick(&r);
    assert_near(total(0, METRIC_CPU_TIME), ticks(3), 1e-9);
    assert_near(total(0, METRIC_FAULTS_MINOR), 0, 1e-9);
    assert_near(value_of(&r, CPU_TIME), ticks(503), 1e-9);
}

/* The I/O of children is in what the kernel says of a process itself once it has waited for them.
 * Workers of one tool, and their parent, do not count twice. */
static void test_io_of_reaped_workers_counts_once(void **state)
{
    (void)state;
    struct fake_process parent = {
        .pid = 101, .ppid = 100, .comm = "tool", .wchar = 1000, .minflt = 50};
    struct fake_process worker = {
        .pid = 102, .ppid = 101, .comm = "tool", .wchar = 50000, .minflt = 40, .utime = 9};
    struct fake_process other = {
        .pid = 103, .ppid = 101, .comm = "gzip", .wchar = 7000, .minflt = 30, .utime = 5};
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "make"});
    INSIDE("tools=^tool$", "gzip");
    recording_tick(&r);
    tree_process(r.dir, parent);
    tree_process(r.dir, worker);
    tree_process(r.dir, other);
    recording_tick(&r);
    assert_near(total(0, METRIC_IO_WCHAR), 51000, 1e-9);
    tree_remove(r.dir, 102);
    tree_remove(r.dir, 103);
    parent.wchar = 1000 + 50000 + 7000 + 30; /* thirty more of its own */
    parent.cminflt = 70;
    parent.cutime = 14;
    tree_process(r.dir, parent);
    for (int i = 0; i < 3; i++)
        recording_tick(&r);
    assert_near(total(0, METRIC_IO_WCHAR), 51030, 1e-9);
    assert_near(total(1, METRIC_IO_WCHAR), 7000, 1e-9);
    assert_near(total(0, METRIC_CPU_TIME), ticks(9), 1e-9);
    assert_near(value_of(&r, IO_WCHAR), 58030, 1e-9);
}

static void test_totals_say_how_good_they_are(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "tool", .wchar = 1});
    tree_write(r.dir, "proc/100/schedstat", "1 2 3\n");
    INSIDE("tool");
    recording_tick(&r);
    const struct pr_stat *stat = r.s.matches.items[0].stats.metric;
    assert_int_equal(pr_said_mark(&stat[METRIC_CTX_VOLUNTARY].said), MARK_LOWER_BOUND);
    assert_int_equal(pr_said_mark(&stat[METRIC_SCHED_DELAY].said), MARK_LOWER_BOUND);
    assert_int_equal(pr_said_mark(&stat[METRIC_IO_WCHAR].said), MARK_WITH_REAPED);
    assert_int_equal(pr_said_mark(&stat[METRIC_CPU_TIME].said), MARK_NONE);
}

static void test_of_single_processes(void **state)
{
    (void)state;
    struct fake_process a = {.pid = 101, .ppid = 100, .comm = "tool", .rss_pages = 100},
                        b = {.pid = 102, .ppid = 100, .comm = "tool", .rss_pages = 70};
    tree_process(r.dir,
                 (struct fake_process){.pid = 100, .ppid = 1, .comm = "make", .rss_pages = 9000});
    INSIDE("tools=^tool$");
    double page = (double)r.s.host.page_size;
    tree_process(r.dir, a);
    tree_process(r.dir, b);
    recording_tick(&r);
    a.rss_pages = 10;
    b.rss_pages = 120;
    tree_process(r.dir, a);
    tree_process(r.dir, b);
    recording_tick(&r);
    const struct pr_match *m = &r.s.matches.items[0];
    const struct pr_stat *rss = &m->each[METRIC_MEM_RSS];
    assert_exactly(rss->max, 120 * page);
    assert_int_equal(rss->known, 4);
    double time = m->last_seen - m->first_seen; /* of the second sample; the first had some, too */
    assert_true(time > 0 && rss->weight >= 2 * time);
    assert_near(rss->integral, (170 * (rss->weight / 2 - time) + 130 * time) * page, 1e-6 * page);
    assert_near(pr_stat_mean(rss), rss->integral / rss->weight, 1e-9);
    assert_exactly(pr_stats_peak(&m->stats, METRIC_MEM_RSS), 170 * page);
    assert_exactly(m->stats.metric[METRIC_MEM_RSS].min, 130 * page);
    assert_exactly(m->stats.metric[METRIC_MEM_RSS].last, 130 * page);
    assert_int_equal(m->each[METRIC_CPU_TIME].known, 0); /* of counters there is none */
}

static void test_absent_io_stays_absent(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "make"});
    tree_process(r.dir, (struct fake_process){
                            .pid = 101, .ppid = 100, .comm = "tool", .no_io = true, .utime = 1});
    INSIDE("tools=^tool$");
    for (int i = 0; i < 3; i++)
        recording_tick(&r);
    assert_absent(total(0, METRIC_IO_WCHAR));
    assert_false(isnan(total(0, METRIC_CPU_TIME)));
    tree_remove(r.dir, 101);
    recording_tick(&r);
    recording_tick(&r);
    assert_absent(total(0, METRIC_IO_WCHAR));
    assert_int_equal(r.s.matches.items[0].stats.metric[METRIC_IO_WCHAR].known, 0);
}

/* --- the whole machine ------------------------------------------------------------------------ */

static void test_empty_and_filled_and_empty(void **state)
{
    (void)state;
    struct fake_process p = {.pid = 101, .ppid = 1, .comm = "tool", .utime = 4, .rss_pages = 50};
    everywhere("^tool$");
    double page = (double)r.s.host.page_size;
    recording_tick(&r);
    assert_false(pr_session_over(&r.s));
    assert_exactly(value_of(&r, PROCS), 0);
    assert_absent(value_of(&r, CPU_TIME));
    for (int round = 1; round <= 3; round++) {
        p.pid = 101 + round;
        tree_process(r.dir, p);
        recording_tick(&r);
        assert_exactly(value_of(&r, PROCS), 1);
        assert_exactly(value_of(&r, MEM_RSS), 50 * page);
        assert_near(value_of(&r, CPU_TIME), ticks(4 * round), 1e-9);
        tree_remove(r.dir, p.pid);
        for (int i = 0; i < 3; i++)
            recording_tick(&r);
        assert_false(pr_session_over(&r.s));
        assert_exactly(value_of(&r, PROCS), 0);
        assert_absent(value_of(&r, MEM_RSS));
        assert_near(value_of(&r, CPU_TIME), ticks(4 * round), 1e-9); /* it stays */
        assert_near(total(0, METRIC_CPU_TIME), ticks(4 * round), 1e-9);
        assert_int_equal(instances(0), round);
    }
    pr_session_end(&r.s);
    assert_near(value_of(&r, CPU_TIME), ticks(12), 1e-9);
}

/* Who was there, and who executes the tool later: from then on. */
static void test_found_late(void **state)
{
    (void)state;
    struct fake_process old = {.pid = 101, .ppid = 1, .comm = "tool", .utime = 40},
                        late = {.pid = 102, .ppid = 1, .comm = "sh", .utime = 3};
    tree_process(r.dir, old);
    everywhere("^tool$");
    recording_tick(&r);
    tree_process(r.dir, late);
    recording_tick(&r);
    late.comm = "tool";
    late.utime = 5;
    tree_process(r.dir, late);
    recording_tick(&r);
    assert_near(r.s.ledger.before[METRIC_CPU_TIME], ticks(45), 1e-9);
    assert_exactly(value_of(&r, PROCS), 2);
    old.utime = 50;
    late.utime = 7;
    tree_process(r.dir, old);
    tree_process(r.dir, late);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(12), 1e-9);
    assert_near(total(0, METRIC_CPU_TIME), ticks(12), 1e-9);
}

/* It becomes another program and then the tool again: in between it does not count, neither in the
 * job nor in the account of its name. */
static void test_another_program_for_a_while(void **state)
{
    (void)state;
    struct fake_process p = {.pid = 101, .ppid = 1, .comm = "tool", .utime = 10};
    everywhere("^tool$");
    recording_tick(&r);
    tree_process(r.dir, p);
    recording_tick(&r);
    p.comm = "other";
    tree_process(r.dir, p);
    recording_tick(&r);
    for (int i = 0; i < 3; i++) {
        p.utime += 100;
        tree_process(r.dir, p);
        recording_tick(&r);
    }
    assert_exactly(value_of(&r, PROCS), 0);
    assert_near(value_of(&r, CPU_TIME), ticks(10), 1e-9);
    assert_near(total(0, METRIC_CPU_TIME), ticks(10), 1e-9);
    p.comm = "tool";
    tree_process(r.dir, p);
    for (int i = 0; i < 3; i++)
        recording_tick(&r);
    assert_exactly(value_of(&r, PROCS), 1);
    p.utime += 7;
    tree_process(r.dir, p);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(17), 1e-9);
    assert_near(total(0, METRIC_CPU_TIME), ticks(17), 1e-9);
    assert_int_equal(instances(0), 1); /* one process, whatever it did in between */
}

/* In a group a member may be away without another name. */
static void test_away_from_the_group(void **state)
{
    (void)state;
    struct fake_process p = {
        .pid = 101, .ppid = 1, .pgrp = 100, .comm = "tool", .utime = 10, .wchar = 10};
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "make"});
    option(&r, OPTION_MATCH, "tool");
    recording_begin(&r, (struct pr_target_setting){.kind = TARGET_GROUP, .root = 100});
    recording_tick(&r);
    tree_process(r.dir, p);
    recording_tick(&r);
    p.pgrp = 101;
    tree_process(r.dir, p);
    recording_tick(&r);
    p.utime = 110;
    p.wchar = 1010;
    tree_process(r.dir, p);
    recording_tick(&r);
    p.pgrp = 100;
    tree_process(r.dir, p);
    recording_tick(&r);
    recording_tick(&r);
    p.utime = 113;
    p.wchar = 1013;
    tree_process(r.dir, p);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(13), 1e-9);
    assert_near(total(0, METRIC_CPU_TIME), ticks(13), 1e-9);
    assert_near(total(0, METRIC_IO_WCHAR), 13, 1e-9);
    assert_int_equal(instances(0), 1);
}

/* Each counts for itself: a matching parent that waits for a matching child does not get its use
 * again, and times of others that it has waited for are nobody's. */
static void test_parents_and_children_by_name(void **state)
{
    (void)state;
    struct fake_process a = {.pid = 101, .ppid = 1, .comm = "tool", .utime = 10, .minflt = 5},
                        b = {.pid = 102, .ppid = 101, .comm = "tool", .utime = 20, .minflt = 9};
    everywhere("^tool$");
    recording_tick(&r);
    tree_process(r.dir, a);
    tree_process(r.dir, b);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(30), 1e-9);
    tree_remove(r.dir, 102);
    a.cminflt = 9 + 100; /* and somebody of another name */
    a.cutime = 20 + 400;
    tree_process(r.dir, a);
    for (int i = 0; i < 3; i++)
        recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(30), 1e-9);
    assert_near(total(0, METRIC_CPU_TIME), ticks(30), 1e-9);
}

static void test_self_and_zombies_do_not_match(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 101, .ppid = 1, .comm = "tool"});
    tree_process(r.dir, (struct fake_process){.pid = 102, .ppid = 1, .comm = "tool", .state = 'Z'});
    tree_process(r.dir, (struct fake_process){.pid = 103, .ppid = 1, .comm = "tool"});
    option(&r, OPTION_MATCH, "tool");
    recording_begin(&r, (struct pr_target_setting){.kind = TARGET_MATCH, .self = 101});
    recording_tick(&r);
    assert_int_equal(instances(0), 1);
    assert_exactly(value_of(&r, PROCS), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_rules),
        cmocka_unit_test(test_two_of_one_name),
        cmocka_unit_test(test_no_rules),
        TEST(test_first_match_wins),
        TEST(test_exec_changes_the_match),
        TEST(test_caught_between_fork_and_exec),
        TEST(test_a_script_is_noticed_soon),
        TEST(test_conserved_over_members_that_end),
        TEST(test_own_use_only),
        TEST(test_io_of_reaped_workers_counts_once),
        TEST(test_totals_say_how_good_they_are),
        TEST(test_of_single_processes),
        TEST(test_absent_io_stays_absent),
        TEST(test_empty_and_filled_and_empty),
        TEST(test_found_late),
        TEST(test_another_program_for_a_while),
        TEST(test_away_from_the_group),
        TEST(test_parents_and_children_by_name),
        TEST(test_self_and_zombies_do_not_match),
    };
    return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
