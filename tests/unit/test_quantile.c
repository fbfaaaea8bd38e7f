/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles computed while recording, beside those of all samples sorted. */
#include "check.h"
#include "core/quantile.h"

enum { SAMPLES = 20000 };

struct sample {
    double value, seconds;
};

static struct sample samples[SAMPLES];
static size_t count;
static struct pr_sketches *sketches;

static int setup(void **state)
{
    (void)state;
    srand48(20);
    count = 0;
    sketches = pr_sketches_new(3);
    assert_non_null(sketches);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_sketches_free(sketches);
    return 0;
}

static void add(double value, double seconds)
{
    samples[count++] = (struct sample){value, seconds};
    pr_sketch_add(sketches, 1, value, seconds);
}

/* Intervals are not all the same: some samples stand for a hundred times as long as others. */
static double some_time(void)
{
    return exp(log(0.01) * drand48());
}

static int by_value(const void *a, const void *b)
{
    double x = ((const struct sample *)a)->value, y = ((const struct sample *)b)->value;
    return (x > y) - (x < y);
}

/* Of all samples, sorted. */
static double exact(double share)
{
    double all = 0, sum = 0;
    for (size_t i = 0; i < count; i++)
        all += samples[i].seconds;
    for (size_t i = 0; i < count; i++)
        if ((sum += samples[i].seconds) >= share * all)
            return samples[i].value;
    return samples[count - 1].value;
}

/* Within the stated error; a sum that lands on the border may have rounded to either side. */
static void check(double error)
{
    double q[QUANTILES];
    pr_sketch_quantiles(sketches, 1, q);
    qsort(samples, count, sizeof *samples, by_value);
    for (int i = 0; i < QUANTILES; i++) {
        double low = exact(pr_quantile_share[i] - 1e-8), high = exact(pr_quantile_share[i] + 1e-8);
        if (!(q[i] >= low * (1 - error) && q[i] <= high * (1 + error)))
            fail_msg("%s is %.9g, and it should be %.9g", pr_quantile_name[i], q[i], low);
    }
}

static void test_names_say_which(void **state)
{
    (void)state;
    for (int i = 0; i < QUANTILES; i++)
        assert_exactly(strtod(pr_quantile_name[i] + 1, NULL), 100 * pr_quantile_share[i]);
    assert_true(SKETCH_ERROR <= 0.01);
}

static void test_nothing_is_absent(void **state)
{
    (void)state;
    double q[QUANTILES];
    pr_sketch_add(sketches, 1, 5, 0); /* it has not lasted */
    pr_sketch_quantiles(sketches, 1, q);
    for (int i = 0; i < QUANTILES; i++)
        assert_absent(q[i]);
}

static void test_random(void **state)
{
    (void)state;
    while (count < SAMPLES)
        add(1e6 * drand48(), some_time());
    check(SKETCH_ERROR);
}

/* A log-normal of ten powers of ten, and a Pareto without a mean. */
static void test_heavy_tails(void **state)
{
    (void)state;
    while (count < SAMPLES / 2)
        add(exp(10 * (drand48() + drand48() + drand48() - 1.5)), some_time());
    check(SKETCH_ERROR);
    while (count < SAMPLES)
        add(100 / pow(1 - drand48(), 1.2), some_time());
    check(SKETCH_ERROR);
}

/* Whatever the magnitude: from a microsecond to petabytes. */
static void test_magnitudes(void **state)
{
    (void)state;
    for (double scale = 1e-6; scale < 1e15; scale *= 10) {
        setup(NULL);
        while (count < 1000)
            add(scale * (1 + drand48()), some_time());
        check(SKETCH_ERROR);
        teardown(NULL);
    }
    setup(NULL);
}

static void test_a_constant_is_exact(void **state)
{
    (void)state;
    while (count < SAMPLES)
        add(123456789.123, some_time());
    check(0);
}

static void test_two_states_are_exact(void **state)
{
    (void)state;
    while (count < SAMPLES)
        add(drand48() < 0.93 ? 1.0 / 3 : 2e9 / 7, some_time());
    check(0);
}

static void test_few_samples_are_exact(void **state)
{
    (void)state;
    while (count < SKETCH_VALUES) {
        add(drand48(), some_time());
        check(0);
    }
    add(drand48(), some_time());
    check(SKETCH_ERROR);
}

/* Mostly two modes with noise, far apart. */
static void test_two_modes(void **state)
{
    (void)state;
    while (count < SAMPLES)
        add(drand48() < 0.6 ? 0.01 + 0.001 * drand48() : 50 + drand48(), some_time());
    check(SKETCH_ERROR);
}

/* Idle for most of the time: that is 0, and not a small number. */
static void test_zero_is_zero(void **state)
{
    (void)state;
    double q[QUANTILES];
    while (count < SAMPLES)
        add(drand48() < 0.94 ? 0 : 1 + drand48(), 1);
    check(SKETCH_ERROR);
    pr_sketch_quantiles(sketches, 1, q);
    assert_exactly(q[0], 0);
    assert_exactly(q[1], 0);
    assert_true(q[2] >= 1);
}

/* One long sample outweighs many short ones. */
static void test_time_counts_and_not_samples(void **state)
{
    (void)state;
    double q[QUANTILES];
    for (int i = 0; i < 900; i++)
        add(1 + i, 0.001);
    add(5000, 100);
    check(SKETCH_ERROR);
    pr_sketch_quantiles(sketches, 1, q);
    assert_near(q[0], 5000, 5000 * SKETCH_ERROR);
}

/* A short interval is not lost after a year of others. */
static void test_a_long_run_counts_short_times(void **state)
{
    (void)state;
    double q[QUANTILES];
    for (int i = 0; i < 40; i++)
        pr_sketch_add(sketches, 1, 1 + i, i == 0 ? 3e7 : 0.01);
    for (int i = 0; i < 4000000; i++)
        pr_sketch_add(sketches, 1, 1, 0.01);
    for (int i = 0; i < 4000000; i++)
        pr_sketch_add(sketches, 1, 30, 1.0);
    pr_sketch_quantiles(sketches, 1, q);
    assert_near(q[0], 1, SKETCH_ERROR);
    assert_near(q[1], 30, 30 * SKETCH_ERROR);
}

static void test_beyond_the_range(void **state)
{
    (void)state;
    double q[QUANTILES];
    for (int i = 0; i < 100; i++)
        pr_sketch_add(sketches, 1, i % 3 ? 1e-300 * (i + 1) : 1e300 / (i + 1), 1);
    pr_sketch_add(sketches, 1, INFINITY, 1);
    pr_sketch_quantiles(sketches, 1, q);
    assert_true(q[0] > 0 && q[0] < 1e-7);
    assert_true(q[3] > 1e16 && isfinite(q[3]));
}

/* Series share memory, and nothing else: each has all that it can need. */
static void test_all_buckets_of_all_series(void **state)
{
    (void)state;
    double q[QUANTILES];
    for (int series = 0; series < 3; series++)
        for (double v = ldexp(1, -25); v < ldexp(1, 57); v *= 1.005)
            pr_sketch_add(sketches, series, v, series + 1);
    for (int series = 0; series < 3; series++) {
        pr_sketch_quantiles(sketches, series, q);
        assert_near(log2(q[0]), 16, 0.05);
        assert_near(log2(q[1]), -25 + 0.9 * 82, 0.05);
    }
    assert_null(pr_sketches_new(1000)); /* more than can be numbered */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_names_say_which),
        TEST(test_nothing_is_absent),
        TEST(test_random),
        TEST(test_heavy_tails),
        TEST(test_magnitudes),
        TEST(test_a_constant_is_exact),
        TEST(test_two_states_are_exact),
        TEST(test_few_samples_are_exact),
        TEST(test_two_modes),
        TEST(test_zero_is_zero),
        TEST(test_time_counts_and_not_samples),
        TEST(test_a_long_run_counts_short_times),
        TEST(test_beyond_the_range),
        TEST(test_all_buckets_of_all_series),
    };
    return cmocka_run_group_tests_name("quantile", tests, NULL, NULL);
}
