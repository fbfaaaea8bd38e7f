/* SPDX-License-Identifier: Apache-2.0 */
/* What gives way where recording would cost more than --budget: an interval that nobody asked for.
 * And what counts as recording. */
#include <stdatomic.h>

#include "recording.h"
#include "util/clock.h"

enum { TICKS = 40 };

static struct recording r;

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

static const struct pr_event *first_budget_event(void)
{
    for (size_t i = 0; i < r.s.events.count; i++)
        if (r.s.events.item[i].type == EVENT_BUDGET)
            return &r.s.events.item[i];
    return NULL;
}

/* Ticks of a job of some processes, at an interval of 1 ms that came from there. */
static void record(enum pr_origin origin, const char *budget)
{
    option(&r, OPTION_BUDGET, budget);
    r.config.origin[OPTION_INTERVAL] = (uint8_t)origin;
    for (int pid = 100; pid < 110; pid++)
        tree_process(r.dir, (struct fake_process){.pid = pid, .ppid = pid > 100 ? 100 : 1});
    recording_begin(&r, (struct pr_target_setting){.root = 100});
    assert_int_equal(r.s.step, 1000000);
    for (int i = 0; i < TICKS; i++)
        recording_tick(&r);
}

static void test_the_default_interval_is_stretched(void **state)
{
    (void)state;
    record(ORIGIN_DEFAULT, "0.001%");
    assert_true(r.s.step > 1000000);
    const struct pr_event *event = first_budget_event();
    assert_non_null(event);
    assert_contains(event->text, "interval");
    assert_contains(event->text, "0.001%");
    assert_int_equal(r.s.events.problems, 0);       /* it is no trouble */
    assert_true(r.s.next > r.s.sampled - r.s.step); /* the schedule goes on from the change */
}

static void test_an_interval_that_was_asked_for_stays(void **state)
{
    (void)state;
    record(ORIGIN_OPTION, "0.001%");
    assert_int_equal(r.s.step, 1000000);
    assert_null(first_budget_event());
}

static void test_an_interval_within_the_budget_stays(void **state)
{
    (void)state;
    record(ORIGIN_DEFAULT, "100000%");
    assert_int_equal(r.s.step, 1000000);
    assert_null(first_budget_event());
}

/* It doubles, it does not run away. */
static void test_a_stretched_interval_has_an_end(void **state)
{
    (void)state;
    record(ORIGIN_DEFAULT, "0.001%");
    for (int i = 0; i < 100; i++) {
        r.s.stretched = r.s.sampled - 1000 * r.s.step; /* as if that much time had passed */
        r.s.stretched_cpu = r.s.own_cpu - 1000 * r.s.step;
        pr_session_tick(&r.s);
    }
    assert_true(r.s.step <= INT64_C(120) * 1000000000);
    assert_true(r.s.events.total < 100);
}

#define WRITING (20 * NS_PER_S / 1000)
#define WRITES  4

static atomic_int written;

static void write_long(struct pr_sink *sink, const struct proctor_snapshot *snapshot)
{
    (void)sink, (void)snapshot;
    int64_t began = pr_clock_thread_cpu();
    if (written == WRITES)
        return;
    while (pr_clock_thread_cpu() - began < WRITING)
        ;
    written++;
}

static void close_nothing(struct pr_sink *sink)
{
    (void)sink;
}

/* All but the first: with that, outputs are opened. */
static void test_what_the_writer_uses_is_in_the_budget(void **state)
{
    (void)state;
    static const struct pr_sink_ops ops = {.write = write_long, .close = close_nothing};
    static struct pr_sink sink = {&ops};
    struct pr_sink **sinks = malloc(sizeof *sinks);
    assert_non_null(sinks);
    sinks[0] = &sink;
    option(&r, OPTION_BUDGET, "1%");
    option(&r, OPTION_NO_PSS, "yes");
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1});
    recording_begin(&r, (struct pr_target_setting){.root = 100});
    r.s.queue = pr_queue_new(sinks, 1, &r.s.events);
    assert_non_null(r.s.queue);
    written = 0;
    for (int i = 1; i <= WRITES; i++) {
        recording_tick(&r);
        for (int k = 0; k < 10000 && written < i; k++)
            usleep(1000);
        usleep(5000); /* and it has said so */
    }
    pr_session_tick(&r.s);
    assert_int_equal(written, WRITES); /* the one after that takes no time */
    assert_true(r.s.turns.written >= (WRITES - 1) * WRITING);
    assert_true(r.s.turns.written < WRITES * WRITING);
    double earned = 0.01 * (double)(r.s.sampled - r.s.start_boot);
    double used = (double)(r.s.own_cpu - r.s.first_cpu + r.s.turns.written);
    assert_float_equal((double)r.s.allowance, earned - used, 1000);
    /* As if all of that had been in the last five seconds, for which there are 50 ms. */
    int64_t step = r.s.step;
    r.config.origin[OPTION_INTERVAL] = ORIGIN_DEFAULT;
    r.s.stretched = r.s.sampled - 5 * NS_PER_S;
    r.s.stretched_cpu = r.s.own_cpu;
    pr_session_tick(&r.s);
    assert_int_equal(r.s.step, 2 * step);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_default_interval_is_stretched),
        TEST(test_an_interval_that_was_asked_for_stays),
        TEST(test_an_interval_within_the_budget_stays),
        TEST(test_a_stretched_interval_has_an_end),
        TEST(test_what_the_writer_uses_is_in_the_budget),
    };
    return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
