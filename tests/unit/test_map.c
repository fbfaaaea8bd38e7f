/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "util/map.h"

static void test_set_get_remove(void **state)
{
    (void)state;
    struct pr_map m = {0};
    uint64_t v = 9;
    assert_false(pr_map_get(&m, 1, &v));
    pr_map_remove(&m, 1);
    assert_true(pr_map_set(&m, 1, 10));
    assert_true(pr_map_set(&m, UINT64_MAX, 0));
    assert_true(pr_map_set(&m, 1, 11));
    assert_int_equal(m.count, 2);
    assert_true(pr_map_get(&m, 1, &v));
    assert_int_equal(v, 11);
    assert_true(pr_map_get(&m, UINT64_MAX, &v));
    assert_int_equal(v, 0);
    v = 9;
    assert_false(pr_map_get(&m, 2, &v));
    assert_int_equal(v, 9);
    pr_map_remove(&m, 1);
    pr_map_remove(&m, 1);
    assert_int_equal(m.count, 1);
    assert_false(pr_map_get(&m, 1, &v));
    pr_map_done(&m);
    assert_false(pr_map_get(&m, UINT64_MAX, &v));
    pr_map_done(&m);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Against a plain array, with many collisions and removals in clusters. */
static void test_like_an_array(void **state)
{
    (void)state;
    enum { KEYS = 700, STEPS = 200000 };
    static uint64_t value[KEYS + 1];
    static bool there[KEYS + 1];
    struct pr_map m = {0};
    uint64_t seed = 42, v;
    size_t count = 0;
    for (int i = 0; i < STEPS; i++) {
        uint64_t key = next_random(&seed) % KEYS + 1;
        if (next_random(&seed) % 2) {
            count += !there[key];
            there[key] = true;
            value[key] = next_random(&seed);
            assert_true(pr_map_set(&m, key, value[key]));
        } else {
            count -= there[key];
            there[key] = false;
            pr_map_remove(&m, key);
        }
        assert_int_equal(m.count, count);
        if (i % 1000)
            continue;
        for (uint64_t k = 1; k <= KEYS; k++) {
            assert_int_equal(pr_map_get(&m, k, &v), there[k]);
            assert_true(!there[k] || v == value[k]);
        }
    }
    pr_map_done(&m);
}

static void test_reserved_room_does_not_move(void **state)
{
    (void)state;
    struct pr_map m = {0};
    assert_true(pr_map_reserve(&m, 1000));
    const struct pr_map_slot *slots = m.slots;
    for (uint64_t k = 1; k <= 1000; k++)
        assert_true(pr_map_set(&m, k << 32, k));
    assert_ptr_equal(m.slots, slots);
    /* Entries that come and go at a steady number never need more. */
    for (uint64_t k = 1; k <= 100000; k++) {
        pr_map_remove(&m, k << 32);
        assert_true(pr_map_set(&m, (k + 1000) << 32, k));
    }
    assert_ptr_equal(m.slots, slots);
    assert_int_equal(m.count, 1000);
    pr_map_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_get_remove),
        cmocka_unit_test(test_like_an_array),
        cmocka_unit_test(test_reserved_room_does_not_move),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
