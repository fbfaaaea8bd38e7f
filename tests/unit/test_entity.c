/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "core/entity.h"

static void test_a_new_member_is_blank(void **state)
{
    (void)state;
    struct pr_entities set = {0};
    struct pr_entity *e = pr_entities_add(&set, 10, 500);
    assert_int_equal(e->pid, 10);
    assert_int_equal(e->start, 500);
    assert_int_equal(e->life, LIFE_ALIVE);
    assert_true(e->first);
    for (int i = 0; i < PROC_METRICS; i++) {
        assert_absent(e->value[i]);
        assert_absent(e->previous[i]);
        assert_exactly(e->reaped[i], 0);
    }
    for (int i = 0; i < SOURCE_COUNT; i++)
        assert_int_equal(e->fd[i], -1);
    assert_int_equal(set.started, 1);
    pr_entities_done(&set);
    pr_entities_done(&set);
}

static void test_find(void **state)
{
    (void)state;
    struct pr_entities set = {0};
    assert_null(pr_entities_find(&set, 10));
    struct pr_entity *e = pr_entities_add(&set, 10, 500);
    assert_ptr_equal(pr_entities_find(&set, 10), e);
    assert_null(pr_entities_find(&set, 11));
    assert_null(pr_entities_find(&set, 0));
    assert_null(pr_entities_find(&set, -1));
    pr_entities_vanish(&set, e);
    pr_entities_vanish(&set, e);
    assert_int_equal(set.exited, 1);
    assert_null(pr_entities_find(&set, 10));
    assert_ptr_equal(pr_entities_find_any(&set, 10), e);
    pr_entities_sweep(&set); /* not settled: stays */
    assert_ptr_equal(pr_entities_find_any(&set, 10), e);
    e->life = LIFE_SETTLED;
    pr_entities_sweep(&set);
    assert_null(pr_entities_find_any(&set, 10));
    assert_int_equal(set.count, 0);
    pr_entities_done(&set);
}

/* Identity is (pid, start): the newest with a pid is the one that is found, and the old one's end
 * does not take the new one out. */
static void test_pid_reuse(void **state)
{
    (void)state;
    struct pr_entities set = {0};
    struct pr_entity *old = pr_entities_add(&set, 10, 500);
    pr_entities_vanish(&set, old);
    struct pr_entity *new = pr_entities_add(&set, 10, 900);
    assert_ptr_not_equal(old, new);
    assert_ptr_equal(pr_entities_find(&set, 10), new);
    old->life = LIFE_SETTLED;
    pr_entities_sweep(&set);
    assert_int_equal(set.count, 1);
    assert_ptr_equal(pr_entities_find(&set, 10), new);
    assert_int_equal(set.started, 2);
    assert_int_equal(set.exited, 1);
    pr_entities_done(&set);
}

static void test_sweep_keeps_the_order(void **state)
{
    (void)state;
    struct pr_entities set = {0};
    for (int pid = 1; pid <= 100; pid++)
        pr_entities_add(&set, pid, 1);
    for (size_t i = 0; i < 100; i += 3)
        set.items[i]->life = LIFE_SETTLED;
    pr_entities_sweep(&set);
    assert_int_equal(set.count, 66);
    for (size_t i = 1; i < set.count; i++)
        assert_true(set.items[i - 1]->pid < set.items[i]->pid);
    pr_entities_done(&set);
}

static void test_dropped_ones_are_used_again(void **state)
{
    (void)state;
    struct pr_entities set = {0};
    struct pr_entity *e = pr_entities_add(&set, 10, 500);
    e->value[METRIC_CPU_TIME] = 7;
    e->reaped[METRIC_CPU_TIME] = 7;
    e->receipts_new = 3;
    e->share.at = 1;
    e->life = LIFE_SETTLED;
    pr_entities_sweep(&set);
    struct pr_entity *again = pr_entities_add(&set, 11, 600);
    assert_ptr_equal(again, e);
    assert_absent(again->value[METRIC_CPU_TIME]);
    assert_exactly(again->reaped[METRIC_CPU_TIME], 0);
    assert_exactly(again->receipts_new, 0);
    assert_int_equal(again->share.at, 0);
    assert_null(again->heir);
    pr_entities_done(&set);
}

static void test_many(void **state)
{
    (void)state;
    struct pr_entities set = {0};
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 500; i++)
            assert_non_null(pr_entities_add(&set, round * 500 + i + 1, 1));
        for (size_t i = 0; i < set.count; i++)
            set.items[i]->life = LIFE_SETTLED;
        pr_entities_sweep(&set);
        assert_int_equal(set.count, 0);
        assert_int_equal(set.by_pid.count, 0);
    }
    assert_in_range(set.spare_count, 500, 507); /* and some that were in stock */
    assert_int_equal(set.started, 10000);
    pr_entities_done(&set);
}

/* 20,000 processes are 25 MB. What only --average and --match need is there only with them. */
static void test_members_are_small(void **state)
{
    (void)state;
    assert_true(sizeof(struct pr_entity) <= 1280);
    for (int with = 0; with < 2; with++) {
        struct pr_entities set = {.with_mean = with, .with_names = with};
        struct pr_entity *e = pr_entities_add(&set, 1, 1);
        assert_int_equal(e->mean != NULL, with);
        assert_int_equal(e->named != NULL, with);
        pr_entities_done(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_member_is_blank),
        cmocka_unit_test(test_members_are_small),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_pid_reuse),
        cmocka_unit_test(test_sweep_keeps_the_order),
        cmocka_unit_test(test_dropped_ones_are_used_again),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests_name("entity", tests, NULL, NULL);
}
