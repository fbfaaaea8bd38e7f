/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "report/curves.h"

static struct pr_curves *made(double interval, int *ret_curve)
{
    struct pr_curves *c = calloc(1, sizeof *c);
    assert_non_null(c);
    pr_curves_init(c, interval);
    *ret_curve = pr_curves_new(c);
    assert_int_equal(*ret_curve, 0);
    return c;
}

static void end(struct pr_curves *c)
{
    assert_false(c->failed);
    pr_curves_done(c);
    free(c);
}

static double sum_of(const struct pr_curves *c, int curve)
{
    double sum = 0;
    for (size_t i = 0; i < c->count; i++)
        sum += c->items[curve].cell[i].sum;
    return sum;
}

static double most_of(const struct pr_curves *c, int curve)
{
    double most = -INFINITY;
    for (size_t i = 0; i < c->count; i++)
        if (c->items[curve].cell[i].weight > 0)
            most = fmax(most, c->items[curve].cell[i].max);
    return most;
}

/* Whatever the number of samples: the integral stays, and so does the one that is far above all. */
static void test_sum_and_spike_survive(void **state)
{
    static const int counts[] = {1, 2, 1999, 2000, 2001, 4001, 10000, 123457, 2592000};
    (void)state;
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        int k, spike = counts[n] / 2;
        double want = 0;
        struct pr_curves *c = made(1, &k);
        for (int t = 1; t <= counts[n]; t++) {
            double v = t - 1 == spike ? 1000 : t % 7;
            pr_curves_sample(c, t, 1);
            pr_curves_put(c, k, v, 1.5);
            want += v;
        }
        assert_true(c->count <= CURVE_BUCKETS);
        assert_true(counts[n] < 1999 ? c->count == (size_t)counts[n] : c->count >= 1000);
        assert_near(sum_of(c, k), want, want * 1e-6);
        assert_near(c->items[k].integral, want, want * 1e-9);
        assert_exactly(most_of(c, k), 1000);
        assert_exactly(c->items[k].most_at, spike + 1);
        for (size_t i = 1; i < c->count; i++)
            assert_true(pr_curves_at(c, i) > pr_curves_at(c, i - 1));
        end(c);
    }
}

static void test_gaps_stay_empty(void **state)
{
    static const int counts[] = {300, 30000};
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        int k, from = counts[n] / 3, to = counts[n] / 2;
        struct pr_curves *c = made(1, &k);
        for (int t = 1; t <= counts[n]; t++)
            if (t <= from || t > to) {
                pr_curves_sample(c, t, 1);
                pr_curves_put(c, k, 1, 3);
            }
        double lost = 0, known = 0;
        for (size_t i = 0; i < c->count; i++)
            *(c->items[k].cell[i].weight > 0 ? &known : &lost) += pr_curves_span(c, i);
        double width = fmax(1, c->width);
        assert_near(lost, to - from, 2 * width);
        assert_near(known + lost, counts[n], 1e-6 * counts[n]);
        assert_int_equal(c->late_count, 1);
        end(c);
    }
}

/* What was reduced before keeps its least and most, however it is reduced once more. */
static void test_reductions_can_be_put(void **state)
{
    static const int counts[] = {10, 5000};
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        int k;
        struct pr_curves *c = made(1, &k);
        for (int t = 1; t <= counts[n]; t++) {
            double begin, end;
            pr_curves_sample(c, t, 1);
            pr_curves_put_cell(c, k, 2, t == 7 ? -5 : 1, t == 3 ? 9 : 3);
            pr_curves_bounds(c, c->count - 1, &begin, &end);
            assert_true(begin < t && end == t);
        }
        pr_curves_sample(c, counts[n] + 1, 1);
        pr_curves_put_cell(c, k, NAN, NAN, NAN);
        assert_near(sum_of(c, k), 2.0 * counts[n], 1e-6 * counts[n]);
        assert_exactly(most_of(c, k), 9);
        assert_exactly(c->items[k].most_at, 3);
        assert_exactly(c->items[k].least, -5);
        assert_int_equal(c->items[k].known, counts[n]);
        end(c);
    }
}

/* The machine is read at every fifth sample: its value stands for the four before. */
static void test_what_is_read_less_often_reaches_back(void **state)
{
    int k;
    (void)state;
    struct pr_curves *c = made(0.1, &k);
    for (int t = 1; t <= 20; t++) {
        pr_curves_sample(c, t * 0.1, 0.1);
        pr_curves_put(c, k, t % 5 ? NAN : t, 3);
    }
    assert_int_equal(c->count, 20);
    assert_absent(pr_curve_mean(&c->items[k].cell[0])); /* nothing was known before */
    for (size_t i = 5; i < 20; i++)
        assert_near(pr_curve_mean(&c->items[k].cell[i]), (double)(i / 5 * 5 + 5), 1e-9);
    end(c);
}

static void test_a_slower_pace_is_no_gap(void **state)
{
    int k;
    (void)state;
    struct pr_curves *c = made(1, &k);
    for (int t = 1; t <= 10; t++) {
        pr_curves_sample(c, t, 1);
        pr_curves_put(c, k, 1, 1.5);
    }
    for (int t = 1; t <= 10; t++) {
        pr_curves_sample(c, 10 + 8 * t, 8);
        pr_curves_put(c, k, 1, 1.5);
    }
    int lost = 0;
    for (size_t i = 0; i < c->count; i++)
        lost += !(c->items[k].cell[i].weight > 0);
    assert_int_equal(lost, 1); /* the first that was late */
    end(c);
}

static void test_fewer_where_they_are_too_many(void **state)
{
    int k;
    (void)state;
    struct pr_curves *c = made(1, &k);
    for (int t = 1; t <= 1500; t++) {
        pr_curves_sample(c, t, 1);
        pr_curves_put(c, k, t == 700 ? 99 : 1, 1.5);
    }
    assert_exactly(c->width, 0);
    pr_curves_shrink(c, 200);
    assert_true(c->count <= 200 && c->count >= 100);
    assert_near(sum_of(c, k), 1499 + 99, 1e-3);
    assert_exactly(most_of(c, k), 99);
    end(c);
}

/* A file may say anything. */
static void test_nonsense_is_left_out(void **state)
{
    int k;
    (void)state;
    struct pr_curves *c = made(NAN, &k);
    static const double times[] = {5, 5, 4, -1, NAN, 6, INFINITY, 7};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        pr_curves_sample(c, times[i], 1);
        pr_curves_put(c, k, i == 5 ? INFINITY : 1, 1.5);
    }
    assert_true(c->count >= 2 && c->count <= 10);
    end(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_and_spike_survive),
        cmocka_unit_test(test_gaps_stay_empty),
        cmocka_unit_test(test_reductions_can_be_put),
        cmocka_unit_test(test_what_is_read_less_often_reaches_back),
        cmocka_unit_test(test_a_slower_pace_is_no_gap),
        cmocka_unit_test(test_fewer_where_they_are_too_many),
        cmocka_unit_test(test_nonsense_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
