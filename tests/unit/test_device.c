/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "core/device.h"

static struct pr_devices set;
static double sum[METRIC_COUNT];

static int setup(void **state)
{
    (void)state;
    for (int id = 0; id < METRIC_COUNT; id++)
        sum[id] = NAN;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_devices_done(&set);
    return 0;
}

static struct pr_device_state *get(enum pr_device_kind kind, const char *name)
{
    struct pr_device_state *d = pr_devices_get(&set, kind, name, strlen(name));
    assert_non_null(d);
    return d;
}

static double value(const struct pr_device_state *d, enum pr_metric_id id)
{
    int slot = pr_device_slot(d->out.kind, id);
    assert_true(slot >= 0);
    return d->out.value[slot];
}

/* One reading of one device. */
static const struct pr_device_state *tick(enum pr_device_kind kind, const char *name,
                                          enum pr_metric_id id, double raw, double dt)
{
    pr_devices_begin(&set);
    struct pr_device_state *d = get(kind, name);
    pr_device_put(d, id, raw);
    pr_devices_settle(&set, dt, sum);
    return d;
}

/* A reading in which nobody is there. */
static void nobody(void)
{
    pr_devices_begin(&set);
    pr_devices_settle(&set, 1, sum);
}

static const struct pr_device_state *read_disk(double bytes)
{
    return tick(DEVICE_DISK, "sda", METRIC_SYSTEM_DISK_READ, bytes, 1);
}

static void test_slots(void **state)
{
    (void)state;
    static const char *const names[] = {"core", "disk", "filesystem", "interface", "gpu"};
    for (int kind = 0; kind < DEVICE_KINDS; kind++) {
        enum pr_metric_id id;
        int slot = 0;
        assert_string_equal(pr_device_kind_name((enum pr_device_kind)kind), names[kind]);
        for (; (id = pr_device_metric((enum pr_device_kind)kind, slot)) != METRIC_NONE; slot++)
            assert_int_equal(pr_device_slot((enum pr_device_kind)kind, id), slot);
        assert_in_range(slot, 1, DEVICE_VALUES);
    }
    assert_int_equal(pr_device_metric(DEVICE_CORE, DEVICE_VALUES), METRIC_NONE);
    assert_int_equal(pr_device_slot(DEVICE_DISK, METRIC_SYSTEM_NET_RX), -1);
    assert_int_equal(pr_device_slot(DEVICE_CORE, METRIC_SYSTEM_MEM_TOTAL), -1);
}

/* No metric of a kind is left out for want of a slot. */
static void test_every_metric_has_its_slot(void **state)
{
    (void)state;
    for (int id = 0; id < METRIC_COUNT; id++)
        for (int kind = 0; kind < DEVICE_KINDS; kind++)
            if (pr_metrics[id].scope & (unsigned)SCOPE_CORE << kind)
                assert_true(pr_device_slot((enum pr_device_kind)kind, (enum pr_metric_id)id) >= 0);
}

static void test_a_name_is_found_again(void **state)
{
    (void)state;
    struct pr_device_state *sda = get(DEVICE_DISK, "sda");
    assert_string_equal(sda->out.name, "sda");
    assert_true(sda->present);
    assert_true(sda->out.counted);
    get(DEVICE_DISK, "sdaa");
    get(DEVICE_DISK, "sd");
    get(DEVICE_INTERFACE, "sda");
    assert_int_equal(set.count, 4);
    assert_ptr_equal(get(DEVICE_DISK, "sda"), &set.items[0]);
    assert_ptr_equal(get(DEVICE_INTERFACE, "sda"), &set.items[3]);
    assert_ptr_equal(pr_devices_get(&set, DEVICE_DISK, "sdaXYZ", 3), &set.items[0]);
    assert_int_equal(set.count, 4);
}

static void test_a_long_name_is_cut(void **state)
{
    (void)state;
    char name[200];
    memset(name, 'x', sizeof name);
    struct pr_device_state *d = pr_devices_get(&set, DEVICE_DISK, name, sizeof name);
    assert_int_equal(strlen(d->out.name), DEVICE_NAME - 1);
    assert_ptr_equal(pr_devices_get(&set, DEVICE_DISK, name, sizeof name), &set.items[0]);
    assert_int_equal(set.count, 1);
}

static void test_growth_keeps_all(void **state)
{
    (void)state;
    char name[16];
    for (int round = 0; round < 3; round++) {
        pr_devices_begin(&set);
        for (int i = 0; i < 100; i++) { /* backwards at last: their order is no condition */
            int core = round == 2 ? 99 - i : i;
            snprintf(name, sizeof name, "%d", core);
            pr_device_put(get(DEVICE_CORE, name), METRIC_SYSTEM_CPU_USER, core + round * 7);
        }
        pr_devices_settle(&set, 1, sum);
        assert_int_equal(set.count, 100);
    }
    for (int i = 0; i < 100; i++)
        assert_exactly(value(&set.items[i], METRIC_SYSTEM_CPU_USER), 14);
}

static void test_counters_count_from_the_first_reading(void **state)
{
    (void)state;
    assert_exactly(value(read_disk(1e12), METRIC_SYSTEM_DISK_READ), 0);
    assert_exactly(sum[METRIC_SYSTEM_DISK_READ], 0);
    assert_exactly(value(read_disk(1e12 + 512), METRIC_SYSTEM_DISK_READ), 512);
    assert_exactly(value(read_disk(1e12 + 1024), METRIC_SYSTEM_DISK_READ), 1024);
    assert_exactly(sum[METRIC_SYSTEM_DISK_READ], 1024);
}

static void test_a_counter_that_was_reset_begins_anew(void **state)
{
    (void)state;
    read_disk(1000);
    read_disk(5000);
    const struct pr_device_state *d = read_disk(100);
    assert_exactly(value(d, METRIC_SYSTEM_DISK_READ), 4000);
    assert_absent(value(d, METRIC_SYSTEM_DISK_READ_RATE)); /* nobody knows how much it was */
    d = read_disk(350);
    assert_exactly(value(d, METRIC_SYSTEM_DISK_READ), 4250);
    assert_exactly(value(d, METRIC_SYSTEM_DISK_READ_RATE), 250);
    assert_exactly(sum[METRIC_SYSTEM_DISK_READ], 4250);
}

/* Idle time falls by a tick now and then, and comes back to where it was: that is no growth. */
static void test_a_time_that_falls_is_caught_up_with(void **state)
{
    (void)state;
    static const double raw[] = {100, 110, 109.98, 110, 110.5};
    static const double want[] = {0, 10, 10, 10, 10.5};
    for (size_t i = 0; i < COUNT_OF(raw); i++)
        assert_near(value(tick(DEVICE_CORE, "0", METRIC_SYSTEM_CPU_IDLE, raw[i], 1),
                          METRIC_SYSTEM_CPU_IDLE),
                    want[i], 1e-9);
}

static void test_a_device_that_vanishes_and_returns(void **state)
{
    (void)state;
    read_disk(1000);
    read_disk(1500);
    for (int i = 0; i < 9; i++)
        nobody();
    assert_false(set.items[0].present);
    assert_exactly(sum[METRIC_SYSTEM_DISK_READ], 500);
    const struct pr_device_state *d = read_disk(2500);
    assert_int_equal(set.count, 1);
    assert_exactly(value(d, METRIC_SYSTEM_DISK_READ), 1500);
    assert_exactly(sum[METRIC_SYSTEM_DISK_READ], 1500);
    /* It grew by that while it was away, not within this interval. */
    assert_absent(value(d, METRIC_SYSTEM_DISK_READ_RATE));
    assert_exactly(value(read_disk(2600), METRIC_SYSTEM_DISK_READ_RATE), 100);
}

/* A reading that was skipped does not make it one that was away: its interval is the longer. */
static void test_a_skipped_reading(void **state)
{
    (void)state;
    read_disk(1000);
    pr_devices_begin(&set);
    const struct pr_device_state *d = tick(DEVICE_DISK, "sda", METRIC_SYSTEM_DISK_READ, 2000, 2);
    assert_exactly(value(d, METRIC_SYSTEM_DISK_READ_RATE), 500);
}

static void test_only_those_that_count_are_in_the_sum(void **state)
{
    (void)state;
    for (int i = 1; i <= 2; i++) {
        pr_devices_begin(&set);
        struct pr_device_state *bond = get(DEVICE_INTERFACE, "bond0");
        bond->out.counted = false;
        pr_device_put(bond, METRIC_SYSTEM_NET_RX, i * 30);
        pr_device_put(get(DEVICE_INTERFACE, "eth0"), METRIC_SYSTEM_NET_RX, i * 10);
        pr_device_put(get(DEVICE_INTERFACE, "eth1"), METRIC_SYSTEM_NET_RX, i * 20);
        pr_devices_settle(&set, 1, sum);
    }
    assert_exactly(sum[METRIC_SYSTEM_NET_RX], 30);
    assert_exactly(value(&set.items[0], METRIC_SYSTEM_NET_RX), 30);
    assert_absent(sum[METRIC_SYSTEM_NET_TX]);
    assert_absent(value(&set.items[1], METRIC_SYSTEM_NET_TX));
}

/* What it had while it did not count is not made up for. */
static void test_one_that_counts_from_now_on(void **state)
{
    (void)state;
    read_disk(0);
    set.items[0].out.counted = false;
    read_disk(700);
    set.items[0].out.counted = true;
    assert_exactly(value(read_disk(1000), METRIC_SYSTEM_DISK_READ), 1000);
    assert_exactly(sum[METRIC_SYSTEM_DISK_READ], 300);
}

/* Times of cores are not summed: the kernel has the machine's own line. */
static void test_cores_have_no_sum(void **state)
{
    (void)state;
    tick(DEVICE_CORE, "0", METRIC_SYSTEM_CPU_USER, 1, 1);
    tick(DEVICE_CORE, "0", METRIC_SYSTEM_CPU_USER, 2, 1);
    assert_absent(sum[METRIC_SYSTEM_CPU_USER]);
}

static void test_gauges_are_of_those_that_are_there(void **state)
{
    (void)state;
    tick(DEVICE_FILESYSTEM, "/a", METRIC_SYSTEM_DISK_SPACE_FREE, 100, 1);
    assert_exactly(sum[METRIC_SYSTEM_DISK_SPACE_FREE], 100);
    const struct pr_device_state *d =
        tick(DEVICE_FILESYSTEM, "/b", METRIC_SYSTEM_DISK_SPACE_FREE, 40, 1);
    assert_exactly(value(d, METRIC_SYSTEM_DISK_SPACE_FREE), 40);
    assert_exactly(sum[METRIC_SYSTEM_DISK_SPACE_FREE], 40);
    nobody();
    assert_absent(sum[METRIC_SYSTEM_DISK_SPACE_FREE]);
}

static void test_rates(void **state)
{
    (void)state;
    const struct pr_device_state *d = tick(DEVICE_DISK, "sda", METRIC_SYSTEM_DISK_WRITE, 4096, NAN);
    assert_absent(value(d, METRIC_SYSTEM_DISK_WRITE_RATE));
    d = tick(DEVICE_DISK, "sda", METRIC_SYSTEM_DISK_WRITE, 8192, 0.5);
    assert_exactly(value(d, METRIC_SYSTEM_DISK_WRITE_RATE), 8192);
    assert_absent(value(d, METRIC_SYSTEM_DISK_READ_RATE));
    d = tick(DEVICE_DISK, "sda", METRIC_SYSTEM_DISK_WRITE, 8192, 0.5);
    assert_exactly(value(d, METRIC_SYSTEM_DISK_WRITE_RATE), 0);
    const struct pr_device_state *core = tick(DEVICE_CORE, "0", METRIC_SYSTEM_CPU_TIME, 3, 1);
    assert_absent(value(core, METRIC_SYSTEM_CPU_USAGE));
    core = tick(DEVICE_CORE, "0", METRIC_SYSTEM_CPU_TIME, 4.5, 2);
    assert_exactly(value(core, METRIC_SYSTEM_CPU_USAGE), 0.75);
}

/* A metric that this kind does not have goes nowhere. */
static void test_put_what_it_has_not(void **state)
{
    (void)state;
    struct pr_device_state *d = get(DEVICE_DISK, "sda");
    pr_device_put(d, METRIC_SYSTEM_NET_RX, 5);
    pr_device_put(d, METRIC_SYSTEM_MEM_TOTAL, 5);
    for (int slot = 0; slot < DEVICE_VALUES; slot++)
        assert_absent(d->raw[slot]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_slots),
        TEST(test_every_metric_has_its_slot),
        TEST(test_a_name_is_found_again),
        TEST(test_a_long_name_is_cut),
        TEST(test_growth_keeps_all),
        TEST(test_counters_count_from_the_first_reading),
        TEST(test_a_counter_that_was_reset_begins_anew),
        TEST(test_a_time_that_falls_is_caught_up_with),
        TEST(test_a_device_that_vanishes_and_returns),
        TEST(test_a_skipped_reading),
        TEST(test_only_those_that_count_are_in_the_sum),
        TEST(test_one_that_counts_from_now_on),
        TEST(test_cores_have_no_sum),
        TEST(test_gauges_are_of_those_that_are_there),
        TEST(test_rates),
        TEST(test_put_what_it_has_not),
    };
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
