/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "check.h"
#include "report/rank.h"

#define COUNT(list) (sizeof list / sizeof *list)

static void near(double found, double wanted)
{
    assert_true(fabs(found - wanted) < 1e-12);
}

/* Of groups that lie apart two of all ways to divide them are as far apart. */
static void test_apart(void **state)
{
    (void)state;
    const double a[] = {1, 2, 3, 4, 5}, b[] = {6, 7, 8, 9, 10};
    near(pr_rank_p(a, 3, b, 3), 2 / 20.0);
    near(pr_rank_p(b, 4, a, 4), 2 / 70.0);
    near(pr_rank_p(a, 5, b, 5), 2 / 252.0);
    near(pr_rank_p(a, 3, b, 5), 2 / 56.0);
    near(pr_rank_least(3, 3), 0.1);
    near(pr_rank_least(4, 4), 2 / 70.0);
    near(pr_rank_least(1, 1), 1);
}

static void test_ties_and_nothing(void **state)
{
    (void)state;
    const double same[] = {1, 1, 1, 1}, a[] = {1, 2, 2}, b[] = {2, 2, 3};
    near(pr_rank_p(same, 4, same, 4), 1);
    /* Ranks 1, 3.5 four times, 6: of the 20 ways 6 have the 1 without the 6 and 6 the other way
     * round. */
    near(pr_rank_p(a, 3, b, 3), 12 / 20.0);
    assert_true(isnan(pr_rank_p(a, 0, b, 3)));
    assert_true(isnan(pr_rank_p(a, 3, b, 0)));
}

/* Where both could be told, the approximation is near what is exact: one figure more decides. */
static void test_many(void **state)
{
    (void)state;
    double v[RANK_EXACT + 2];
    for (size_t i = 0; i < COUNT(v); i++)
        v[i] = (double)(i * 17 % COUNT(v)) + (i < COUNT(v) / 2 ? 0 : 6);
    double exact = pr_rank_p(v, RANK_EXACT / 2, v + COUNT(v) / 2, RANK_EXACT / 2),
           normal = pr_rank_p(v, COUNT(v) / 2, v + COUNT(v) / 2, COUNT(v) / 2);
    assert_true(exact > 0.001 && exact < 0.9);
    assert_true(fabs(exact - normal) < 0.05);
    for (size_t i = 0; i < COUNT(v); i++)
        v[i] = i < COUNT(v) / 2 ? 0 : 1;
    assert_true(pr_rank_p(v, COUNT(v) / 2, v + COUNT(v) / 2, COUNT(v) / 2) < 1e-8);
    for (size_t i = 0; i < COUNT(v); i++)
        v[i] = 5;
    near(pr_rank_p(v, COUNT(v) / 2, v + COUNT(v) / 2, COUNT(v) / 2), 1);
}

static void test_median(void **state)
{
    (void)state;
    double v[] = {3, 1, 2, 10};
    near(pr_median(v, 4), 2.5);
    near(v[0], 1);
    near(pr_median(v, 3), 2);
    assert_true(isnan(pr_median(v, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_ties_and_nothing),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
