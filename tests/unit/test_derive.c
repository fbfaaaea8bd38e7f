/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "core/derive.h"

static struct pr_entities set;
static double job[METRIC_COUNT];
static unsigned char marks[METRIC_COUNT];
static const struct pr_limits limits = {.total = {[LIMIT_CPU] = 4, [LIMIT_MEMORY] = 1000}};

static void derive(const double *before, double dt, const struct pr_limits *with)
{
    struct pr_basis basis = {.dt = dt, .limits = with, .otherwise = true, .io_dt = dt};
    pr_derive(job, before, &basis, marks);
}

static int setup(void **state)
{
    (void)state;
    for (int i = 0; i < METRIC_COUNT; i++)
        job[i] = NAN;
    memset(marks, 0, sizeof marks);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_entities_done(&set);
    return 0;
}

static struct pr_entity *member(int pid, double rss, double pss)
{
    struct pr_entity *e = pr_entities_add(&set, pid, 1);
    e->state = 'S';
    e->value[METRIC_MEM_RSS] = rss;
    e->value[METRIC_MEM_PSS] = pss;
    e->value[METRIC_MEM_PSS_AGE] = isnan(pss) ? NAN : pid;
    e->value[METRIC_THREADS] = 2;
    return e;
}

static void test_sum_and_max(void **state)
{
    (void)state;
    member(1, 100, 50);
    member(3, 200, 150);
    pr_fold(&set, job, marks);
    assert_exactly(job[METRIC_MEM_RSS], 300);
    assert_exactly(job[METRIC_MEM_PSS], 200);
    assert_exactly(job[METRIC_MEM_PSS_AGE], 3);
    assert_exactly(job[METRIC_THREADS], 4);
    assert_absent(job[METRIC_FDS]); /* nobody's was read: absent, not 0 */
    for (int i = 0; i < METRIC_COUNT; i++)
        assert_int_equal(marks[i], i == METRIC_MEM_PSS ? MARK_ESTIMATED : MARK_NONE);
}

static void test_counters_are_the_ledgers(void **state)
{
    (void)state;
    member(1, 100, 50)->value[METRIC_CPU_TIME] = 5;
    job[METRIC_CPU_TIME] = 77;
    pr_fold(&set, job, marks);
    assert_exactly(job[METRIC_CPU_TIME], 77);
}

static void test_only_the_living_count(void **state)
{
    (void)state;
    member(1, 100, 50);
    struct pr_entity *zombie = member(2, 200, 150);
    zombie->state = 'Z';
    zombie->value[METRIC_THREADS] = 1;
    member(3, 400, 300)->life = LIFE_VANISHED;
    member(4, 800, 600)->life = LIFE_SETTLED;
    pr_fold(&set, job, marks);
    assert_exactly(job[METRIC_MEM_RSS], 100);
    assert_exactly(job[METRIC_THREADS], 2);
    assert_int_equal(marks[METRIC_MEM_RSS], MARK_NONE);
}

static void test_nobody_is_absent(void **state)
{
    (void)state;
    job[METRIC_MEM_RSS] = 5;
    pr_fold(&set, job, marks);
    assert_absent(job[METRIC_MEM_RSS]);
}

static void test_a_missing_member_makes_a_lower_bound(void **state)
{
    (void)state;
    member(1, 100, 50);
    member(2, NAN, NAN);
    pr_fold(&set, job, marks);
    assert_exactly(job[METRIC_MEM_RSS], 100);
    assert_int_equal(marks[METRIC_MEM_RSS], MARK_LOWER_BOUND);
    assert_int_equal(marks[METRIC_MEM_PSS_AGE], MARK_NONE); /* not a sum */
}

static void test_pss_of_a_small_part_is_none(void **state)
{
    (void)state;
    member(1, 1000, 900);
    member(2, 10, NAN);
    pr_fold(&set, job, marks);
    assert_exactly(job[METRIC_MEM_PSS], 900); /* nearly all is known */
    assert_int_equal(marks[METRIC_MEM_PSS], MARK_LOWER_BOUND);
    member(3, 1000, NAN);
    setup(NULL);
    pr_fold(&set, job, marks);
    assert_absent(job[METRIC_MEM_PSS]);
    assert_int_equal(marks[METRIC_MEM_PSS], MARK_NONE);
}

static void test_borrowed_memory_counts_once(void **state)
{
    (void)state;
    member(1, 100, 50);
    struct pr_entity *child = member(2, 100, NAN);
    child->no_mm = true;
    pr_fold(&set, job, marks);
    assert_exactly(job[METRIC_MEM_RSS], 100);
    assert_exactly(job[METRIC_MEM_PSS], 50);
    assert_exactly(job[METRIC_THREADS], 4);
    assert_int_equal(marks[METRIC_MEM_PSS], MARK_ESTIMATED);
}

/* What is not of now is said to be so: what was not read again of somebody who has run. */
static void test_aged_values_are_marked(void **state)
{
    (void)state;
    struct pr_entity *fresh = member(1, 100, NAN), *aged = member(2, 100, NAN);
    fresh->value[METRIC_FDS] = aged->value[METRIC_FDS] = 5;
    fresh->value[METRIC_MEM_SWAP] = aged->value[METRIC_MEM_SWAP] = 7;
    fresh->value[METRIC_MEM_RSS_PEAK] = aged->value[METRIC_MEM_RSS_PEAK] = 100;
    fresh->value[METRIC_FDS_RATIO] = 0.5;
    aged->value[METRIC_FDS_RATIO] = 0.25;
    pr_fold(&set, job, marks);
    assert_int_equal(marks[METRIC_FDS], MARK_NONE);
    assert_int_equal(marks[METRIC_FDS_RATIO], MARK_NONE);
    aged->aged = true;
    pr_fold(&set, job, marks);
    assert_exactly(job[METRIC_FDS], 10);
    assert_int_equal(marks[METRIC_FDS], MARK_AGED);
    assert_int_equal(marks[METRIC_MEM_SWAP], MARK_AGED);
    assert_int_equal(marks[METRIC_MEM_RSS], MARK_NONE);
    assert_int_equal(marks[METRIC_THREADS], MARK_NONE);
    assert_exactly(job[METRIC_FDS_RATIO], 0.5);
    assert_int_equal(marks[METRIC_FDS_RATIO], MARK_AGED); /* the other may have more by now */
    assert_int_equal(marks[METRIC_MEM_RSS_PEAK], MARK_NONE);
    set.crowd = true;
    pr_fold(&set, job, marks);
    assert_int_equal(marks[METRIC_FDS], MARK_AGED_CROWD);
    assert_int_equal(marks[METRIC_FDS_RATIO], MARK_AGED_CROWD);
    aged->aged = false;
    pr_fold(&set, job, marks);
    assert_int_equal(marks[METRIC_FDS_RATIO], MARK_NONE);
}

/* Where PSS is given, its age is too. */
static void test_borrowed_memory_does_not_hide_the_age(void **state)
{
    (void)state;
    member(1, 100, 50);
    member(2, 100, NAN)->no_mm = true;
    pr_fold(&set, job, marks);
    assert_exactly(job[METRIC_MEM_PSS], 50);
    assert_exactly(job[METRIC_MEM_PSS_AGE], 1);
}

static void test_rates_and_ratios(void **state)
{
    (void)state;
    double before[METRIC_COUNT];
    for (int i = 0; i < METRIC_COUNT; i++)
        before[i] = NAN;
    job[METRIC_CPU_TIME] = 13;
    before[METRIC_CPU_TIME] = 10;
    job[METRIC_IO_READ] = 5000;
    before[METRIC_IO_READ] = 1000;
    job[METRIC_MEM_PSS] = 250;
    job[METRIC_MEM_RSS] = 500;
    derive(before, 2, &limits);
    assert_exactly(job[METRIC_CPU_USAGE], 1.5);
    assert_exactly(job[METRIC_CPU_PERCENT], 150);
    assert_exactly(job[METRIC_CPU_RATIO], 1.5 / 4);
    assert_exactly(job[METRIC_IO_READ_RATE], 2000);
    assert_absent(job[METRIC_IO_WRITE_RATE]);
    assert_exactly(job[METRIC_MEM_RATIO], 0.25);
    assert_int_equal(marks[METRIC_MEM_RATIO], MARK_NONE);
    assert_exactly(job[METRIC_MEM_RSS_PEAK], 500); /* at least what was sampled */
}

static void test_ratio_from_rss_is_said(void **state)
{
    (void)state;
    double before[METRIC_COUNT] = {0};
    job[METRIC_MEM_RSS] = 500;
    derive(before, 1, &limits);
    assert_exactly(job[METRIC_MEM_RATIO], 0.5);
    assert_int_equal(marks[METRIC_MEM_RATIO], MARK_FROM_RSS);
    const struct pr_basis basis = {.dt = 1, .limits = &limits, .otherwise = true};
    pr_derive(job, before, &basis, NULL); /* a member has no marks */
    setup(NULL);
    derive(before, 1, &limits);
    assert_absent(job[METRIC_MEM_RATIO]);
    assert_int_equal(marks[METRIC_MEM_RATIO], MARK_NONE);
}

/* What is estimated, or a lower bound, is no more than that as a share of something. */
static void test_a_ratio_is_marked_as_what_it_is_of(void **state)
{
    (void)state;
    static const enum pr_mark each[] = {MARK_ESTIMATED, MARK_LOWER_BOUND, MARK_NONE};
    double before[METRIC_COUNT] = {0};
    for (size_t i = 0; i < COUNT_OF(each); i++) {
        setup(NULL);
        job[METRIC_MEM_RSS] = 500;
        job[METRIC_MEM_PSS] = 250;
        job[METRIC_CPU_TIME] = 1;
        marks[METRIC_MEM_PSS] = (unsigned char)each[i];
        derive(before, 1, &limits);
        assert_exactly(job[METRIC_MEM_RATIO], 0.25);
        assert_int_equal(marks[METRIC_MEM_RATIO], each[i]);
        assert_int_equal(marks[METRIC_CPU_RATIO], MARK_NONE);
    }
}

/* PSS is known, but not in this sample: RSS in its place would be a jump that never was. */
static void test_ratio_does_not_change_its_meaning(void **state)
{
    (void)state;
    double before[METRIC_COUNT] = {0};
    const struct pr_basis basis = {.dt = 1, .limits = &limits, .otherwise = false};
    job[METRIC_MEM_RSS] = 500;
    pr_derive(job, before, &basis, marks);
    assert_absent(job[METRIC_MEM_RATIO]);
    assert_int_equal(marks[METRIC_MEM_RATIO], MARK_NONE);
}

/* Where all of it is read once in several samples, so are its rates, over the time of these. */
static void test_rates_of_io_stand_until_all_was_read(void **state)
{
    (void)state;
    double before[METRIC_COUNT] = {0};
    static const struct {
        double dt, io_dt, io, cpu, io_rate, cpu_rate;
    } samples[] = {
        {1, 1, 10, 1, 10, 1},      {1, 0, 10, 3, 10, 2}, {1, 0, 25, 4, 10, 1},
        {NAN, 0, 30, 4, NAN, NAN}, {1, 4, 50, 5, 10, 1}, {1, 1, 53, 5, 3, 0},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        setup(NULL);
        job[METRIC_IO_WRITE] = samples[i].io;
        job[METRIC_CPU_TIME] = samples[i].cpu;
        const struct pr_basis basis = {
            .dt = samples[i].dt, .limits = &limits, .io_dt = samples[i].io_dt};
        pr_derive(job, before, &basis, marks);
        if (isnan(samples[i].io_rate)) {
            assert_absent(job[METRIC_IO_WRITE_RATE]);
            assert_absent(job[METRIC_CPU_USAGE]);
        } else {
            assert_exactly(job[METRIC_IO_WRITE_RATE], samples[i].io_rate);
            assert_exactly(job[METRIC_CPU_USAGE], samples[i].cpu_rate);
        }
        /* Of some alone there is a rate where all was read for this sample. */
        struct pr_basis own = pr_basis_of_member(&basis);
        assert_int_equal(own.io_dt > 0, samples[i].io_dt > 0 && samples[i].io_dt <= samples[i].dt);
        pr_derive_next(before, job, basis.io_dt);
    }
}

static void test_without_an_interval_there_is_no_rate(void **state)
{
    (void)state;
    static const double intervals[] = {NAN, 0, -1};
    double before[METRIC_COUNT] = {0};
    for (size_t i = 0; i < COUNT_OF(intervals); i++) {
        job[METRIC_CPU_TIME] = 5;
        derive(before, intervals[i], &limits);
        assert_absent(job[METRIC_CPU_USAGE]);
        assert_absent(job[METRIC_CPU_RATIO]);
    }
}

static void test_a_rate_is_never_negative(void **state)
{
    (void)state;
    double before[METRIC_COUNT] = {0};
    job[METRIC_CPU_TIME] = 5;
    before[METRIC_CPU_TIME] = 6;
    derive(before, 1, &limits);
    assert_exactly(job[METRIC_CPU_USAGE], 0);
    job[METRIC_CPU_TIME] = NAN;
    derive(before, 1, &limits);
    assert_absent(job[METRIC_CPU_USAGE]); /* not 0 */
}

static void test_unknown_limit_unknown_ratio(void **state)
{
    (void)state;
    const struct pr_limits none = {.total = {NAN, NAN}};
    double before[METRIC_COUNT] = {0};
    job[METRIC_CPU_TIME] = 5;
    job[METRIC_MEM_RSS] = 5;
    derive(before, 1, &none);
    assert_exactly(job[METRIC_CPU_USAGE], 5);
    assert_absent(job[METRIC_CPU_RATIO]);
    assert_absent(job[METRIC_MEM_RATIO]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sum_and_max),
        TEST(test_counters_are_the_ledgers),
        TEST(test_only_the_living_count),
        TEST(test_nobody_is_absent),
        TEST(test_a_missing_member_makes_a_lower_bound),
        TEST(test_pss_of_a_small_part_is_none),
        TEST(test_borrowed_memory_counts_once),
        TEST(test_aged_values_are_marked),
        TEST(test_borrowed_memory_does_not_hide_the_age),
        TEST(test_rates_and_ratios),
        TEST(test_ratio_from_rss_is_said),
        TEST(test_a_ratio_is_marked_as_what_it_is_of),
        TEST(test_ratio_does_not_change_its_meaning),
        TEST(test_rates_of_io_stand_until_all_was_read),
        TEST(test_without_an_interval_there_is_no_rate),
        TEST(test_a_rate_is_never_negative),
        TEST(test_unknown_limit_unknown_ratio),
    };
    return cmocka_run_group_tests_name("derive", tests, NULL, NULL);
}
