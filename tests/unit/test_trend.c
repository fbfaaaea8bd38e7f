/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "report/trend.h"

/* The same numbers each time, from 0 to 1. */
static double chance(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 40) / (double)(1 << 24);
}

static struct pr_trend fit(const double *y, size_t count)
{
    double x[TREND_MOST];
    struct pr_trend t;
    for (size_t i = 0; i < count; i++)
        x[i] = 10 * (double)i;
    assert_true(pr_trend_fit(x, y, count, &t));
    assert_true(t.low <= t.slope && t.slope <= t.high);
    return t;
}

static void test_a_line_is_exact(void **state)
{
    double y[TREND_MOST];
    (void)state;
    for (size_t i = 0; i < TREND_MOST; i++)
        y[i] = 5 + 3 * (double)i;
    struct pr_trend t = fit(y, TREND_MOST);
    assert_near(t.slope, 0.3, 1e-12);
    assert_near(t.low, 0.3, 1e-12);
    assert_near(t.high, 0.3, 1e-12);
}

/* Wild values here and there move neither the slope nor its bounds by much. */
static void test_outliers_do_not_matter(void **state)
{
    double y[TREND_MOST];
    (void)state;
    for (size_t i = 0; i < TREND_MOST; i++)
        y[i] = 3 * (double)i + (i % 10 == 5 ? 10000 : 0);
    struct pr_trend t = fit(y, TREND_MOST);
    assert_near(t.slope, 0.3, 0.01);
    assert_true(t.low > 0);
}

static void test_a_saw_tooth_does_not_grow(void **state)
{
    double y[TREND_MOST];
    (void)state;
    for (size_t i = 0; i < TREND_MOST; i++)
        y[i] = (double)(i % 17);
    struct pr_trend t = fit(y, TREND_MOST);
    assert_true(t.low <= 0 && t.high >= 0);
}

/* Of many series that are only noise about one in twenty seems to have a slope; and none of the
 * true slopes lies outside of its bounds more often than that. */
static void test_the_confidence_is_what_it_says(void **state)
{
    uint64_t seed = 1;
    int wrong[2] = {0, 0};
    const int turns = 400;
    (void)state;
    for (int turn = 0; turn < turns; turn++)
        for (int k = 0; k < 2; k++) {
            double y[60], slope = k * 0.05;
            for (size_t i = 0; i < 60; i++)
                y[i] = slope * 10 * (double)i + 20 * (chance(&seed) + chance(&seed) - 1);
            struct pr_trend t = fit(y, 60);
            wrong[k] += t.low > slope || t.high < slope;
        }
    for (int k = 0; k < 2; k++)
        assert_in_range(wrong[k], 1, turns / 12);
}

/* What is there stays for a while: a walk without aim ends above its begin every other time, and
 * is taken for growth in less than one case of four. (Nearly every time that it
 * ends above, if points were taken to be independent.) */
static void test_a_walk_is_seldom_taken_for_growth(void **state)
{
    uint64_t seed = 7;
    int found = 0;
    (void)state;
    for (int turn = 0; turn < 300; turn++) {
        double y[TREND_MOST], at = 0;
        for (size_t i = 0; i < TREND_MOST; i++)
            y[i] = at += chance(&seed) - 0.5;
        found += fit(y, TREND_MOST).low > 0;
    }
    assert_in_range(found, 0, 300 / 4);
}

static void test_too_few_points_say_nothing(void **state)
{
    double x[TREND_MOST + 1] = {0}, y[TREND_MOST + 1] = {0};
    struct pr_trend t;
    (void)state;
    assert_false(pr_trend_fit(x, y, 0, &t));
    assert_false(pr_trend_fit(x, y, TREND_LEAST - 1, &t));
    assert_false(pr_trend_fit(x, y, TREND_MOST + 1, &t));
    assert_false(pr_trend_fit(x, y, TREND_LEAST, &t)); /* all at one moment */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_is_exact),
        cmocka_unit_test(test_outliers_do_not_matter),
        cmocka_unit_test(test_a_saw_tooth_does_not_grow),
        cmocka_unit_test(test_the_confidence_is_what_it_says),
        cmocka_unit_test(test_a_walk_is_seldom_taken_for_growth),
        cmocka_unit_test(test_too_few_points_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
