/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "core/limits.h"
#include "core/stats.h"

static struct pr_stats st;
static struct proctor_snapshot snap;

static int setup(void **state)
{
    (void)state;
    pr_stats_init(&st);
    pr_stats_want_quantiles(&st, METRIC_COUNT);
    memset(&snap, 0, sizeof snap);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_stats_done(&st);
    return 0;
}

static void clear(void)
{
    memset(snap.mark, 0, sizeof snap.mark);
    for (int i = 0; i < METRIC_COUNT; i++)
        snap.value[i] = NAN;
}

/* One sample `interval` seconds after the one before. */
static void add(enum pr_metric_id id, double v, double interval)
{
    snap.interval = (int64_t)(interval * 1e9);
    snap.elapsed += snap.interval;
    snap.value[id] = v;
    pr_stats_add(&st, &snap);
    clear();
}

static void test_nothing_is_absent(void **state)
{
    (void)state;
    for (int id = 0; id < METRIC_COUNT; id++) {
        assert_absent(pr_stats_total(&st, (enum pr_metric_id)id));
        assert_absent(pr_stats_mean(&st, (enum pr_metric_id)id));
        assert_absent(pr_stats_peak(&st, (enum pr_metric_id)id));
    }
}

static void test_gauge(void **state)
{
    (void)state;
    clear();
    add(METRIC_MEM_RSS, 10, 0);
    add(METRIC_MEM_RSS, 40, 1);
    add(METRIC_MEM_RSS, 20, 3);
    add(METRIC_MEM_RSS, NAN, 4);
    const struct pr_stat *m = &st.metric[METRIC_MEM_RSS];
    assert_exactly(m->min, 10);
    assert_exactly(m->max, 40);
    assert_exactly(m->last, 20);
    assert_exactly(m->at, 1);
    assert_int_equal(m->known, 3);
    assert_exactly(pr_stats_peak(&st, METRIC_MEM_RSS), 40);
    assert_exactly(pr_stats_mean(&st, METRIC_MEM_RSS), (40 * 1 + 20 * 3) / 4.0); /* by time */
    assert_exactly(st.seconds, 8);
}

/* The machine is not read with each sample: a value of it stands for the time since the last. */
static void test_the_machine_stands_for_longer(void **state)
{
    (void)state;
    double q[QUANTILES];
    clear();
    for (int i = 0; i < 20; i++) {
        bool read = i % 10 == 9;
        snap.machine_interval = (int64_t)5e8;
        snap.value[METRIC_MEM_CGROUP] = read ? 100 : NAN;
        snap.value[METRIC_SYSTEM_MEM_USED] = read ? 300 + i : NAN;
        add(METRIC_MEM_RSS, 10, 0.05);
    }
    assert_near(st.metric[METRIC_MEM_RSS].integral, 10, 1e-9);
    assert_near(st.metric[METRIC_MEM_CGROUP].integral, 100, 1e-9);
    assert_near(st.metric[METRIC_SYSTEM_MEM_USED].integral, 314, 1e-9);
    assert_true(pr_stats_quantiles(&st, METRIC_SYSTEM_MEM_USED, q));
    assert_exactly(q[0], 309);
    assert_exactly(q[1], 319);
}

static void test_the_first_of_equal_maxima_is_where_it_was(void **state)
{
    (void)state;
    clear();
    add(METRIC_MEM_RSS, 40, 1);
    add(METRIC_MEM_RSS, 40, 1);
    assert_exactly(st.metric[METRIC_MEM_RSS].at, 1);
}

static void test_one_sample_has_a_mean(void **state)
{
    (void)state;
    clear();
    add(METRIC_MEM_RSS, 10, 0);
    assert_exactly(pr_stats_mean(&st, METRIC_MEM_RSS), 10);
}

static void test_counter(void **state)
{
    (void)state;
    clear();
    add(METRIC_CPU_TIME, 1, 0);
    add(METRIC_CPU_TIME, 5, 1);
    add(METRIC_CPU_TIME, NAN, 1);
    assert_exactly(pr_stats_total(&st, METRIC_CPU_TIME), 5);
}

/* A rate's mean is its counter's total over the time: nothing between samples escapes. */
static void test_mean_of_a_rate(void **state)
{
    (void)state;
    struct pr_limits limits = {.total = {[LIMIT_CPU] = 4, [LIMIT_MEMORY] = NAN}};
    clear();
    snap.value[METRIC_CPU_USAGE] = 1;
    add(METRIC_CPU_TIME, 4, 2);
    add(METRIC_CPU_TIME, 16, 2);
    assert_exactly(pr_stats_mean(&st, METRIC_CPU_USAGE), 4);
    assert_exactly(pr_stats_mean(&st, METRIC_CPU_PERCENT), 400);
    assert_exactly(pr_stats_peak(&st, METRIC_CPU_USAGE), 4); /* at least the mean */
    assert_absent(pr_stats_mean(&st, METRIC_CPU_RATIO));
    st.limits = &limits;
    assert_exactly(pr_stats_mean(&st, METRIC_CPU_RATIO), 1);
}

/* The last sample of a run has no gauges. What is to be said about them stays. */
static void test_a_mark_outlives_the_last_sample(void **state)
{
    (void)state;
    clear();
    snap.mark[METRIC_MEM_RATIO] = MARK_FROM_RSS;
    add(METRIC_MEM_RATIO, 0.5, 1);
    add(METRIC_MEM_RATIO, NAN, 1);
    assert_int_equal(pr_said_mark(&st.metric[METRIC_MEM_RATIO].said), MARK_FROM_RSS);
}

static void test_a_bound_that_became_exact_is_exact(void **state)
{
    (void)state;
    clear();
    snap.mark[METRIC_CTX_VOLUNTARY] = MARK_LOWER_BOUND;
    add(METRIC_CTX_VOLUNTARY, 5, 1);
    assert_int_equal(pr_said_mark(&st.metric[METRIC_CTX_VOLUNTARY].said), MARK_LOWER_BOUND);
    add(METRIC_CTX_VOLUNTARY, 50, 1);
    assert_int_equal(pr_said_mark(&st.metric[METRIC_CTX_VOLUNTARY].said), MARK_NONE);
}

/* A peak and a mean have the values in them that were of before. */
static void test_what_was_aged_stays_aged(void **state)
{
    (void)state;
    static const struct {
        enum pr_metric_id id;
        enum pr_mark mark, said; /* of one more sample; of all until then */
    } rows[] = {
        {METRIC_FDS, MARK_AGED, MARK_AGED},
        {METRIC_FDS, MARK_NONE, MARK_AGED},
        {METRIC_FDS, MARK_LOWER_BOUND, MARK_LOWER_BOUND}, /* which says more */
        {METRIC_FDS, MARK_NONE, MARK_AGED},
        {METRIC_FDS, MARK_AGED_CROWD, MARK_AGED_CROWD},
        {METRIC_FDS, MARK_AGED, MARK_AGED_CROWD},
        {METRIC_MEM_PSS, MARK_ESTIMATED, MARK_ESTIMATED},
        {METRIC_MEM_PSS, MARK_NONE, MARK_ESTIMATED},
        {METRIC_MEM_RATIO, MARK_FROM_RSS, MARK_FROM_RSS}, /* a peak may be of these */
        {METRIC_MEM_RATIO, MARK_ESTIMATED, MARK_FROM_RSS},
        {METRIC_MEM_RATIO, MARK_NONE, MARK_FROM_RSS},
        {METRIC_IO_READ, MARK_AGED, MARK_AGED}, /* a total */
        {METRIC_IO_READ, MARK_NONE, MARK_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        clear();
        snap.mark[rows[i].id] = (unsigned char)rows[i].mark;
        add(rows[i].id, 5, 1);
        assert_int_equal(pr_said_mark(&st.metric[rows[i].id].said), rows[i].said);
    }
}

/* A peak has the mark of its sample, whatever others had. */
static void test_a_peak_has_its_own_mark(void **state)
{
    (void)state;
    static const struct {
        double value;
        enum pr_mark mark, of_peak;
    } rows[] = {
        {5, MARK_ESTIMATED, MARK_ESTIMATED}, {7, MARK_NONE, MARK_NONE},
        {7, MARK_ESTIMATED, MARK_NONE}, /* no higher than what was read */
        {6, MARK_ESTIMATED, MARK_NONE},      {8, MARK_LOWER_BOUND, MARK_LOWER_BOUND},
    };
    clear();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        snap.mark[METRIC_MEM_PSS] = (unsigned char)rows[i].mark;
        add(METRIC_MEM_PSS, rows[i].value, 1);
        assert_int_equal(st.metric[METRIC_MEM_PSS].said.peak, rows[i].of_peak);
    }
    struct pr_said both = {MARK_NONE, MARK_FROM_RSS, 0}, later = {MARK_AGED, MARK_ESTIMATED, 0};
    pr_said_merge(&both, &later);
    assert_int_equal(pr_said_mark(&both), MARK_FROM_RSS);
    pr_said_merge(&later, &both);
    assert_int_equal(pr_said_mark(&later), MARK_FROM_RSS);
}

/* However long the run: the curve is full, and its peaks are kept. */
static void test_curve(void **state)
{
    (void)state;
    clear();
    for (int i = 0; i < SPARK_WIDTH; i++)
        add(METRIC_CPU_USAGE, i, 1);
    assert_int_equal(st.cpu.used, SPARK_WIDTH);
    for (int i = 0; i < SPARK_WIDTH; i++)
        assert_exactly(st.cpu.point[i], i);
    for (int i = 0; i < 10000; i++) {
        add(METRIC_CPU_USAGE, i == 5000 ? 999 : 1, 1);
        assert_true(st.cpu.used <= SPARK_WIDTH && st.cpu.used >= SPARK_WIDTH / 2);
    }
    double most = 0;
    int where = -1;
    for (unsigned i = 0; i < st.cpu.used; i++)
        if (st.cpu.point[i] > most)
            most = st.cpu.point[where = (int)i];
    assert_exactly(most, 999);
    assert_near((double)where / st.cpu.used, 0.5, 0.06);
    /* PSS and RSS have a curve each. */
    teardown(NULL);
    setup(NULL);
    clear();
    snap.value[METRIC_MEM_RSS] = 7;
    add(METRIC_MEM_PSS, 5, 1);
    add(METRIC_MEM_RSS, 9, 1);
    add(METRIC_MEM_RSS, NAN, 1);
    assert_int_equal(st.memory.used, 1);
    assert_exactly(st.memory.point[0], 5);
    assert_int_equal(st.rss.used, 2);
    assert_exactly(st.rss.point[0], 7);
    assert_exactly(st.rss.point[1], 9);
}

static void test_quantiles_are_weighted_by_time(void **state)
{
    (void)state;
    double q[QUANTILES];
    clear();
    add(METRIC_MEM_RSS, 1, 0); /* where it began */
    assert_true(pr_stats_quantiles(&st, METRIC_MEM_RSS, q));
    assert_exactly(q[0], 1); /* as the mean: it is all that is known */
    for (int i = 0; i < 90; i++)
        add(METRIC_MEM_RSS, 500 + i, 0.01);
    add(METRIC_MEM_RSS, 300, 9.1);
    add(METRIC_MEM_RSS, NAN, 100);
    assert_true(pr_stats_quantiles(&st, METRIC_MEM_RSS, q));
    assert_near(q[0], 300, 300 * SKETCH_ERROR);
    assert_near(q[1], 300, 300 * SKETCH_ERROR);
    assert_near(q[2], 544, 5);
    assert_exactly(st.metric[METRIC_MEM_RSS].min, 1);
}

/* The middle of a bucket may lie beyond all that was ever there. */
static void test_quantiles_lie_between_the_extremes(void **state)
{
    (void)state;
    double q[QUANTILES];
    clear();
    for (int i = 0; i < 100; i++)
        add(METRIC_MEM_RSS, 1024 + i / 1000.0, 1);
    assert_true(pr_stats_quantiles(&st, METRIC_MEM_RSS, q));
    for (int i = 0; i < QUANTILES; i++)
        assert_exactly(q[i], 1024 + 0.099);
}

static void test_who_has_quantiles(void **state)
{
    (void)state;
    double q[QUANTILES];
    int rows = 0;
    assert_true(pr_metric_has_quantiles(METRIC_CPU_USAGE)); /* a rate */
    assert_true(pr_metric_has_quantiles(METRIC_CPU_RATIO));
    assert_true(pr_metric_has_quantiles(METRIC_SYSTEM_MEM_USED));
    assert_false(pr_stats_quantiles(&st, METRIC_CPU_TIME, q));
    assert_false(pr_stats_quantiles(&st, METRIC_MEM_RSS_PEAK, q));
    for (int id = 0; id < METRIC_COUNT; id++) {
        assert_int_equal(pr_quantile_rows(id), rows);
        rows += pr_metric_has_quantiles((enum pr_metric_id)id);
    }
    assert_int_equal(pr_quantile_rows(METRIC_COUNT), rows);
    pr_stats_done(&st); /* as where there was no memory for them */
    clear();
    add(METRIC_MEM_RSS, 1, 1);
    assert_false(pr_stats_quantiles(&st, METRIC_MEM_RSS, q));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_absent),
        TEST(test_gauge),
        TEST(test_the_machine_stands_for_longer),
        TEST(test_the_first_of_equal_maxima_is_where_it_was),
        TEST(test_one_sample_has_a_mean),
        TEST(test_counter),
        TEST(test_mean_of_a_rate),
        TEST(test_a_mark_outlives_the_last_sample),
        TEST(test_a_bound_that_became_exact_is_exact),
        TEST(test_what_was_aged_stays_aged),
        TEST(test_a_peak_has_its_own_mark),
        TEST(test_curve),
        TEST(test_quantiles_are_weighted_by_time),
        TEST(test_quantiles_lie_between_the_extremes),
        TEST(test_who_has_quantiles),
    };
    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
