/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "sink/latest.h"
#include "util/clock.h"

static struct pr_latest l;
static struct proctor_snapshot s;

static int setup(void **state)
{
    (void)state;
    l = (struct pr_latest){0};
    s = (struct proctor_snapshot){0};
    pr_values_none(s.value, METRIC_COUNT);
    return pr_snapshot_reserve(&s, 1, 2) && pr_snapshot_reserve_matches(&s, 1) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    pr_latest_done(&l);
    pr_snapshot_done(&s);
    return 0;
}

static void take(double at)
{
    s.elapsed = (int64_t)(at * 1e9);
    assert_int_equal(pr_latest_take(&l, &s), 0);
}

static void test_what_was_not_read_stands_for_a_while(void **state)
{
    (void)state;
    s.value[METRIC_SYSTEM_MEM_FREE] = 7;
    take(0);
    assert_true(isnan(l.now.value[METRIC_MEM_RSS]));
    s.value[METRIC_SYSTEM_MEM_FREE] = NAN;
    take(1);
    assert_true(l.now.value[METRIC_SYSTEM_MEM_FREE] == 7);
    take(3);
    assert_true(l.now.value[METRIC_SYSTEM_MEM_FREE] == 7);
    take(3.1);
    assert_true(isnan(l.now.value[METRIC_SYSTEM_MEM_FREE]));
    s.value[METRIC_SYSTEM_MEM_FREE] = 8;
    take(3.2);
    assert_true(l.now.value[METRIC_SYSTEM_MEM_FREE] == 8);
    assert_int_equal(l.now.elapsed, s.elapsed);
}

/* An age that stood would be too small, and the value beside it older than is said. */
static void test_pss_does_not_stand(void **state)
{
    (void)state;
    s.value[METRIC_MEM_PSS] = 7;
    s.value[METRIC_MEM_PSS_AGE] = 2;
    s.value[METRIC_CPU_USAGE] = 1;
    take(0);
    assert_true(l.now.value[METRIC_MEM_PSS] == 7);
    pr_values_none(s.value, METRIC_COUNT);
    take(0.1);
    assert_true(isnan(l.now.value[METRIC_MEM_PSS]) && isnan(l.now.value[METRIC_MEM_PSS_AGE]));
    assert_true(l.now.value[METRIC_CPU_USAGE] == 1);
}

static void test_gpus_stand_and_other_devices_are_left_out(void **state)
{
    (void)state;
    s.devices[0] = (struct pr_device){.kind = DEVICE_DISK, .name = "sda"};
    s.devices[1] = (struct pr_device){.kind = DEVICE_GPU, .name = "0", .value = {0.5}};
    s.device_count = 2;
    take(0);
    assert_int_equal(l.now.device_count, 1);
    assert_string_equal(l.now.devices[0].name, "0");
    s.device_count = 1;
    take(2);
    assert_int_equal(l.now.device_count, 1);
    assert_true(l.now.devices[0].value[0] == 0.5);
    take(4);
    assert_int_equal(l.now.device_count, 0);
}

static void test_names_are_those_of_the_sample_and_members_stay_out(void **state)
{
    (void)state;
    s.matches[0] = (struct pr_match_values){.name = "a", .value = {3}};
    s.match_count = s.member_count = 1;
    take(0);
    assert_int_equal(l.now.match_count, 1);
    assert_true(l.now.matches[0].value[0] == 3);
    assert_int_equal(l.now.member_count, 0);
    s.match_count = 0;
    take(1);
    assert_int_equal(l.now.match_count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_not_read_stands_for_a_while),
        TEST(test_pss_does_not_stand),
        TEST(test_gpus_stand_and_other_devices_are_left_out),
        TEST(test_names_are_those_of_the_sample_and_members_stay_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
