/* SPDX-License-Identifier: Apache-2.0 */
/* PSS by budget: whose comes first, what is said in between, and what would hold a process up. */
#include <math.h>

#include "recording.h"
#include "core/annotate.h"
#include "util/clock.h"

static struct recording r;
static struct fake_process job[3] = {
    {.pid = 100,
     .ppid = 1,
     .rss_pages = 1000,
     .vms_pages = 9000,
     .pss_kb = 2000,
     .private_kb = 1000},
    {.pid = 101,
     .ppid = 100,
     .rss_pages = 3000,
     .vms_pages = 9001,
     .pss_kb = 6000,
     .private_kb = 500},
    {.pid = 102,
     .ppid = 100,
     .rss_pages = 2000,
     .vms_pages = 9002,
     .pss_kb = 4000,
     .private_kb = 500},
};

static void begin(const char *budget, int count)
{
    option(&r, OPTION_BUDGET, budget);
    for (int i = 0; i < count; i++)
        tree_process(r.dir, job[i]);
    recording_begin(&r, (struct pr_target_setting){.root = 100});
}

static int setup(void **state)
{
    (void)state;
    recording_new(&r);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    recording_done(&r);
    return 0;
}

static struct pr_entity *member(int i)
{
    return pr_entities_find(&r.s.set, 100 + i);
}

/* After the first tick, at which all are read, nothing is known of anybody. */
static void forget(void)
{
    recording_tick(&r);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(member(i)->share.at, r.s.sampled);
        member(i)->share.at = 0;
        member(i)->value[METRIC_MEM_PSS] = member(i)->value[METRIC_MEM_USS] = NAN;
    }
}

/* Which one was read at this tick; -1 for none. There is budget for one. */
static int read_now(void)
{
    int which = -1;
    bool all = true;
    for (int i = 0; i < 3; i++) {
        struct pr_entity *e = member(i);
        all &= e && e->share.at;
        if (e && e->share.at)
            e->share.cost = NS_PER_S / 200;
    }
    r.s.allowance = all ? 10000 : 0;
    r.s.turns.due = -NS_PER_S;
    recording_tick(&r);
    for (int i = 0; i < 3; i++)
        if (member(i)->share.at == r.s.sampled) {
            assert_int_equal(which, -1);
            which = i;
        }
    return which;
}

static void test_whose_comes_first(void **state)
{
    (void)state;
    begin("0.001%", 3);
    forget();
    assert_int_equal(read_now(), 1); /* never read: the largest */
    assert_int_equal(read_now(), 2);
    assert_absent(value_of(&r, MEM_PSS)); /* too much of it is not known */
    assert_int_equal(read_now(), 0);
    struct fake_process grown = job[0];
    grown.rss_pages += 5000;
    tree_process(r.dir, grown);
    assert_int_equal(read_now(), 0); /* changed most */
    member(2)->share.at -= 120 * NS_PER_S;
    assert_int_equal(read_now(), 2); /* the oldest */
}

static void test_what_is_said_in_between(void **state)
{
    (void)state;
    begin("0.001%", 1);
    r.s.allowance = 10000;
    recording_tick(&r);
    assert_exactly(value_of(&r, MEM_PSS), 2000 << 10);
    assert_int_equal(r.s.now.mark[METRIC_MEM_PSS], MARK_NONE);
    assert_exactly(value_of(&r, MEM_PSS_AGE), 0);
    struct fake_process now = job[0];
    for (int pages = 1500; pages >= 0; pages -= 750) {
        now.rss_pages = (unsigned long)pages;
        now.pss_kb = 1; /* not read */
        tree_process(r.dir, now);
        r.s.allowance = -1000000;
        member(0)->share.at -= 7 * NS_PER_S;
        recording_tick(&r);
        double rss = pages * 4096.0;
        assert_exactly(value_of(&r, MEM_PSS), fmax(0, (2000 << 10) + rss - 1000 * 4096));
        assert_true(value_of(&r, MEM_USS) <= value_of(&r, MEM_PSS));
        assert_int_equal(r.s.now.mark[METRIC_MEM_PSS], MARK_ESTIMATED);
        assert_exactly(value_of(&r, MEM_PSS_AGE), pr_seconds(r.s.sampled - member(0)->share.at));
        assert_true(value_of(&r, MEM_PSS_AGE) >= 7);
    }
}

/* Nobody is held up for more than 10 ms but once a minute, however much budget there is. */
static void test_a_large_process_is_read_once_a_minute(void **state)
{
    (void)state;
    struct fake_process large = job[0];
    large.rss_pages = 1000000; /* 35 ms */
    tree_process(r.dir, large);
    recording_begin(&r, (struct pr_target_setting){.root = 100});
    recording_tick(&r);
    struct pr_entity *e = member(0);
    assert_int_equal(e->share.at, r.s.sampled);
    e->share.cost = 35 * NS_PER_S / 1000; /* as a real one would have taken */
    for (int i = 0; i < 5; i++) {
        recording_tick(&r);
        assert_true(e->share.at < r.s.sampled);
        assert_false(isnan(value_of(&r, MEM_PSS)));
    }
    e->share.stalled_at -= 60 * NS_PER_S;
    recording_tick(&r);
    assert_int_equal(e->share.at, r.s.sampled);
}

/* What a job says of a phase; a sample is taken for it. */
static void tell(enum pr_request_verb verb)
{
    struct pr_request request;
    unsigned long before = r.s.taken;
    assert_true(pr_request_make(&request, verb, "load", NULL));
    assert_true(pr_annotate(&r.s, &request, pr_clock_boot(), 0));
    assert_int_equal(r.s.taken, before + 1);
}

/* More than the longest tick could earn. */
static void use_budget_up(void)
{
    r.s.allowance = -1000 * NS_PER_S;
    r.s.turns.due = -1e12;
}

/* In a phase it waits for the end of that, where no budget is asked for; but not for ever. */
static void test_a_large_process_is_read_at_the_end_of_a_phase(void **state)
{
    (void)state;
    struct fake_process large = job[0];
    large.rss_pages = 1000000;
    tree_process(r.dir, large);
    recording_begin(&r, (struct pr_target_setting){.root = 100});
    recording_tick(&r);
    struct pr_entity *e = member(0);
    e->share.cost = 35 * NS_PER_S / 1000;
    tell(REQUEST_BEGIN);
    e->share.stalled_at -= 60 * NS_PER_S;
    recording_tick(&r);
    assert_true(e->share.at < r.s.sampled);
    use_budget_up();
    tell(REQUEST_END);
    assert_int_equal(r.s.phases.ended, 1);
    assert_int_equal(e->share.at, r.s.sampled);
    e->share.cost = 35 * NS_PER_S / 1000;
    tell(REQUEST_BEGIN);
    tell(REQUEST_END); /* once a minute */
    assert_true(e->share.at < r.s.sampled);
    tell(REQUEST_BEGIN);
    r.s.allowance = 0;
    e->share.stalled_at -= 120 * NS_PER_S;
    recording_tick(&r);
    assert_int_equal(e->share.at, r.s.sampled);
}

/* What the next reading takes is what the last one took, and what has come or gone since. */
static void test_a_reading_takes_as_long_as_the_last_and_growth(void **state)
{
    (void)state;
    static const struct {
        long grown; /* pages, of a microsecond each */
        int ms;     /* that the last reading took */
        bool stalls;
    } rows[] = {{1000, 8, false}, {3000, 8, true}, {-3000, 12, false}, {-1000, 12, true}};
    struct fake_process now = job[0];
    begin("100000%", 1);
    recording_tick(&r);
    struct pr_entity *e = member(0);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        now.rss_pages = 5000;
        tree_process(r.dir, now);
        e->share.stalled_at = 0;
        recording_tick(&r);
        assert_exactly(e->share.rss, 5000 * 4096);
        e->share.cost = rows[i].ms * NS_PER_S / 1000;
        e->share.stalled_at = r.s.sampled; /* so that what holds it up has to wait */
        r.s.turns.page_cost = 1000;
        now.rss_pages = (unsigned long)(5000 + rows[i].grown);
        tree_process(r.dir, now);
        recording_tick(&r);
        assert_int_equal(e->share.at < r.s.sampled, rows[i].stalls);
    }
}

/* Of whom nothing was read, nothing is said. */
static void test_never_read_is_absent(void **state)
{
    (void)state;
    begin("0.001%", 2);
    recording_tick(&r);
    tree_process(r.dir, job[2]);
    r.s.allowance = -10000000;
    r.s.turns.due = -1e9;
    recording_tick(&r);
    struct pr_entity *e = member(2);
    assert_non_null(e);
    assert_int_equal(e->share.at, 0);
    assert_absent(e->value[METRIC_MEM_PSS]);
    assert_absent(e->value[METRIC_MEM_USS]);
    assert_absent(e->value[METRIC_MEM_PSS_AGE]);
    assert_exactly(e->value[METRIC_MEM_RSS], 2000 * 4096);
    assert_false(isnan(member(0)->value[METRIC_MEM_PSS_AGE]));
}

#define MANY 130

/* With budget for one at a time it is everybody's turn, and whoever was not read comes first. */
static void test_of_many_each_has_its_turn(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++)
        tree_process(
            r.dir,
            (struct fake_process){
                .pid = 1000 + i, .ppid = 100, .rss_pages = 100, .vms_pages = 200, .pss_kb = 300});
    begin("0.001%", 1);
    recording_tick(&r);
    for (size_t i = 0; i < r.s.set.count; i++)
        r.s.set.items[i]->share.at = 0;
    size_t known = 0, before = 0, ticks = 0;
    for (; known < MANY + 1 && ticks < 3 * MANY; ticks++, before = known) {
        r.s.allowance = known = 0;
        r.s.turns.due = -1e9;
        recording_tick(&r);
        for (size_t i = 0; i < r.s.set.count; i++)
            known += r.s.set.items[i]->share.at != 0;
        assert_true(known <= before + 1);
    }
    assert_int_equal(known, MANY + 1);
}

/* Where all else uses the budget up, everybody is read once all the same, one by one. */
static void test_nobody_stays_unknown(void **state)
{
    (void)state;
    begin("0.001%", 3);
    forget();
    for (int i = 0; i < 3; i++) {
        r.s.allowance = -10000000;
        r.s.turns.due = 0;
        recording_tick(&r);
        assert_int_equal(member(0)->share.at != 0, i >= 2);
        assert_true(member(1)->share.at != 0);
        assert_int_equal(member(2)->share.at != 0, i >= 1);
    }
    int64_t then = member(0)->share.at;
    r.s.turns.due = 1e9;
    r.s.allowance = -10000000;
    recording_tick(&r); /* and not again, */
    assert_int_equal(member(0)->share.at, then);
    assert_true(r.s.turns.rested > r.s.sampled); /* nor is it asked again soon, */
    member(2)->share.at = 0;
    r.s.allowance = -10000000;
    recording_tick(&r);
    assert_int_equal(member(2)->share.at, 0);
    member(2)->looks = 0;
    recording_tick(&r); /* unless somebody comes, */
    assert_int_equal(member(2)->share.at, r.s.sampled);
    member(2)->share.at = 0;
    member(2)->no_mm = true;
    r.s.turns.rested = INT64_MAX;
    r.s.turns.due = 0;
    recording_tick(&r); /* or has memory of its own now */
    assert_int_equal(member(2)->share.at, r.s.sampled);
    member(2)->share.at -= 61 * NS_PER_S;
    struct fake_process grown = job[0]; /* it comes first, and cannot be paid for */
    grown.rss_pages += 5000;
    tree_process(r.dir, grown);
    r.s.turns.due = 0;
    recording_tick(&r); /* but for what is older than a minute */
    assert_int_equal(member(2)->share.at, r.s.sampled);
    assert_int_equal(member(0)->share.at, then);
    r.s.turns.due = -1e18;
    recording_tick(&r);
    assert_true(r.s.turns.due > -1e9); /* no debt lasts for ever */
}

/* What a page costs is learned from what was measured, a quarter from each reading. */
static void test_costs_are_learned(void **state)
{
    (void)state;
    begin("100000%", 1);
    recording_tick(&r);
    assert_exactly(r.s.turns.page_cost, 0); /* of a thousand pages nothing is learned */
    struct fake_process now = job[0];
    now.rss_pages = 100000;
    tree_process(r.dir, now);
    recording_tick(&r);
    const struct pr_share *share = &member(0)->share;
    assert_int_equal(share->at, r.s.sampled);
    assert_true(share->cost > 0);
    assert_exactly(r.s.turns.page_cost, (double)share->cost / 100000);
    r.s.turns.page_cost = 20;
    recording_tick(&r);
    assert_int_equal(share->at, r.s.sampled);
    assert_exactly(r.s.turns.page_cost, (3 * 20 + (double)share->cost / 100000) / 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_whose_comes_first),
        TEST(test_what_is_said_in_between),
        TEST(test_a_large_process_is_read_once_a_minute),
        TEST(test_a_large_process_is_read_at_the_end_of_a_phase),
        TEST(test_a_reading_takes_as_long_as_the_last_and_growth),
        TEST(test_never_read_is_absent),
        TEST(test_of_many_each_has_its_turn),
        TEST(test_nobody_stays_unknown),
        TEST(test_costs_are_learned),
    };
    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
