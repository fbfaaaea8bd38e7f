/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "core/average.h"
#include "core/mean.h"

static double value[METRIC_COUNT];

static void absent(double *v)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        v[i] = NAN;
}

static void test_gauges_mean_counters_last(void **state)
{
    (void)state;
    struct pr_mean m[METRIC_COUNT] = {0};
    for (int i = 1; i <= 3; i++) {
        absent(value);
        value[METRIC_MEM_RSS] = 100 * i;
        value[METRIC_CPU_USAGE] = i;
        value[METRIC_CPU_TIME] = i;
        value[METRIC_MEM_RSS_PEAK] = 100 * i;
        pr_mean_add(m, value, METRIC_COUNT);
    }
    pr_mean_take(m, value, METRIC_COUNT);
    assert_exactly(value[METRIC_MEM_RSS], 200);
    assert_exactly(value[METRIC_CPU_USAGE], 2);
    assert_exactly(value[METRIC_CPU_TIME], 3);
    assert_exactly(value[METRIC_MEM_RSS_PEAK], 300); /* a high-water mark is no gauge */
    assert_absent(value[METRIC_FDS]);
}

static void test_absent_samples_are_left_out(void **state)
{
    (void)state;
    struct pr_mean m[METRIC_COUNT] = {0};
    absent(value);
    pr_mean_add(m, value, METRIC_COUNT);
    value[METRIC_MEM_RSS] = 10;
    pr_mean_add(m, value, METRIC_COUNT);
    value[METRIC_MEM_RSS] = NAN;
    pr_mean_add(m, value, METRIC_COUNT);
    pr_mean_take(m, value, METRIC_COUNT);
    assert_exactly(value[METRIC_MEM_RSS], 10); /* not a third of it */
}

static void test_taking_starts_anew(void **state)
{
    (void)state;
    struct pr_mean m[METRIC_COUNT] = {0};
    absent(value);
    value[METRIC_MEM_RSS] = 10;
    pr_mean_add(m, value, METRIC_COUNT);
    pr_mean_take(m, value, METRIC_COUNT);
    value[METRIC_MEM_RSS] = 50;
    pr_mean_add(m, value, METRIC_COUNT);
    pr_mean_take(m, value, METRIC_COUNT);
    assert_exactly(value[METRIC_MEM_RSS], 50);
    pr_mean_take(m, value, METRIC_COUNT);
    assert_absent(value[METRIC_MEM_RSS]);
}

static struct proctor_snapshot sample_of(double rss, double cpu)
{
    struct proctor_snapshot s = {.interval = 1000, .elapsed = 5000};
    absent(s.value);
    s.value[METRIC_MEM_RSS] = rss;
    s.value[METRIC_CPU_TIME] = cpu;
    return s;
}

static void test_average_publishes_every_nth(void **state)
{
    (void)state;
    struct pr_average a = {0};
    struct pr_entities set = {0};
    struct proctor_snapshot s = sample_of(10, 1);
    assert_ptr_equal(pr_average_add(&a, 1, &s, &set), &s);
    assert_null(pr_average_add(&a, 3, &s, &set));
    s = sample_of(20, 2);
    assert_null(pr_average_add(&a, 3, &s, &set));
    s = sample_of(60, 3);
    const struct proctor_snapshot *out = pr_average_add(&a, 3, &s, &set);
    assert_non_null(out);
    assert_exactly(out->value[METRIC_MEM_RSS], 30);
    assert_exactly(out->value[METRIC_CPU_TIME], 3);
    assert_int_equal(out->interval, 3000); /* of all three */
    s = sample_of(NAN, 4);
    s.last = true;
    out = pr_average_add(&a, 3, &s, &set); /* the last one does not wait */
    assert_non_null(out);
    assert_exactly(out->value[METRIC_CPU_TIME], 4);
    assert_absent(out->value[METRIC_MEM_RSS]);
    assert_int_equal(out->interval, 1000);
    pr_snapshot_done(&a.out);
}

/* Members that came and went in between have means of their own. */
static void test_average_of_members(void **state)
{
    (void)state;
    struct pr_average a = {0};
    struct pr_entities set = {.with_mean = true};
    struct pr_entity *old = pr_entities_add(&set, 1, 1), *new = NULL;
    struct proctor_snapshot s = sample_of(0, 0);
    old->value[METRIC_MEM_RSS] = 10;
    assert_null(pr_average_add(&a, 2, &s, &set));
    old->value[METRIC_MEM_RSS] = 30;
    new = pr_entities_add(&set, 2, 1);
    new->value[METRIC_MEM_RSS] = 7;
    assert_true(pr_snapshot_reserve(&s, 2, 0));
    s.member_count = 2;
    for (size_t i = 0; i < 2; i++) {
        s.members[i] = (struct pr_member){.pid = set.items[i]->pid};
        memcpy(s.members[i].value, set.items[i]->value, sizeof s.members[i].value);
    }
    const struct proctor_snapshot *out = pr_average_add(&a, 2, &s, &set);
    assert_int_equal(out->member_count, 2);
    assert_exactly(out->members[0].value[METRIC_MEM_RSS], 20);
    assert_exactly(out->members[1].value[METRIC_MEM_RSS], 7);
    pr_snapshot_done(&s);
    pr_snapshot_done(&a.out);
    pr_entities_done(&set);
}

static struct pr_entity *only_member(struct pr_entities *set, struct proctor_snapshot *s)
{
    assert_true(pr_snapshot_reserve(s, 1, 0));
    s->member_count = 1;
    s->members[0] = (struct pr_member){.pid = 1};
    return pr_entities_add(set, 1, 1);
}

/* What is not of now is in no mean, and what is said of one value is said of the mean; a counter is
 * that of the last sample. */
static void test_average_of_what_was_of_before(void **state)
{
    (void)state;
    static struct pr_average a;
    struct pr_entities set = {.with_mean = true};
    struct proctor_snapshot s = sample_of(10, 1);
    struct pr_entity *e = only_member(&set, &s);
    s.value[METRIC_FDS] = s.value[METRIC_MEM_RATIO] = s.value[METRIC_CTX_VOLUNTARY] = 9;
    for (int sample = 1; sample <= 6; sample++) { /* three are of before, then one is of now */
        e->aged = sample != 4;
        e->value[METRIC_FDS] = e->value[METRIC_CTX_VOLUNTARY] = sample;
        e->value[METRIC_MEM_RSS] = sample * 10;
        s.mark[METRIC_FDS] = e->aged && sample < 6 ? MARK_AGED : MARK_NONE;
        s.mark[METRIC_MEM_RATIO] = sample == 4 ? MARK_FROM_RSS : MARK_NONE;
        s.mark[METRIC_CTX_VOLUNTARY] = sample < 6 ? MARK_LOWER_BOUND : MARK_NONE;
        pr_entity_now(e, s.members[0].value);
        const struct proctor_snapshot *out = pr_average_add(&a, 3, &s, &set);
        assert_true((out != NULL) == (sample % 3 == 0));
        if (!out)
            continue;
        assert_int_equal(out->mark[METRIC_FDS], MARK_AGED);
        assert_int_equal(out->mark[METRIC_MEM_RATIO], sample == 3 ? MARK_NONE : MARK_FROM_RSS);
        assert_int_equal(out->mark[METRIC_CTX_VOLUNTARY],
                         sample == 3 ? MARK_LOWER_BOUND : MARK_NONE);
        assert_exactly(out->members[0].value[METRIC_MEM_RSS], sample == 3 ? 20 : 50);
        assert_absent(out->members[0].value[METRIC_CTX_VOLUNTARY]);
        if (sample == 3)
            assert_absent(out->members[0].value[METRIC_FDS]);
        else
            assert_exactly(out->members[0].value[METRIC_FDS], 4);
    }
    pr_snapshot_done(&s);
    pr_snapshot_done(&a.out);
    pr_entities_done(&set);
}

/* Who has left and comes back has no mean of what it was before. */
static void test_average_of_who_was_away(void **state)
{
    (void)state;
    static struct pr_average a;
    struct pr_entities set = {.with_mean = true};
    struct proctor_snapshot s = sample_of(10, 1);
    struct pr_entity *e = only_member(&set, &s);
    for (int sample = 1; sample <= 6; sample++) {
        e->left = sample == 2 || sample == 3;
        e->value[METRIC_MEM_RSS] = sample == 1 ? 1000 : sample;
        s.member_count = !e->left;
        pr_entity_now(e, s.members[0].value);
        const struct proctor_snapshot *out = pr_average_add(&a, 3, &s, &set);
        if (sample == 3)
            assert_int_equal(out->member_count, 0);
        if (sample == 6)
            assert_exactly(out->members[0].value[METRIC_MEM_RSS], 5);
    }
    pr_snapshot_done(&s);
    pr_snapshot_done(&a.out);
    pr_entities_done(&set);
}

static void test_average_of_names(void **state)
{
    (void)state;
    static struct pr_average a;
    struct pr_entities set = {0};
    struct proctor_snapshot s = sample_of(0, 0);
    assert_true(pr_snapshot_reserve_matches(&s, 2));
    s.match_count = 2;
    for (int sample = 1; sample <= 4; sample++) {
        for (size_t i = 0; i < 2; i++) {
            s.matches[i].name = i ? "b" : "a";
            pr_values_none(s.matches[i].value, PROC_METRICS);
            s.matches[i].value[METRIC_MEM_RSS] = i ? NAN : sample * 10;
            s.matches[i].value[METRIC_CPU_TIME] = sample;
        }
        const struct proctor_snapshot *out = pr_average_add(&a, 2, &s, &set);
        assert_true((out != NULL) == (sample % 2 == 0));
        if (!out)
            continue;
        assert_int_equal(out->match_count, 2);
        assert_string_equal(out->matches[1].name, "b");
        assert_exactly(out->matches[0].value[METRIC_MEM_RSS], sample * 10 - 5);
        assert_absent(out->matches[1].value[METRIC_MEM_RSS]);
        assert_exactly(out->matches[1].value[METRIC_CPU_TIME], sample);
    }
    pr_snapshot_done(&s);
    pr_snapshot_done(&a.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gauges_mean_counters_last),
        cmocka_unit_test(test_absent_samples_are_left_out),
        cmocka_unit_test(test_taking_starts_anew),
        cmocka_unit_test(test_average_publishes_every_nth),
        cmocka_unit_test(test_average_of_members),
        cmocka_unit_test(test_average_of_what_was_of_before),
        cmocka_unit_test(test_average_of_who_was_away),
        cmocka_unit_test(test_average_of_names),
    };
    return cmocka_run_group_tests_name("mean", tests, NULL, NULL);
}
