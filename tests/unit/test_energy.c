/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"
#include "core/energy.h"

static char dir[TREE_PATH];
static struct pr_host host;
static struct pr_energy e;

static int setup(void **state)
{
    (void)state;
    struct proctor_error err;
    tree_new(dir);
    tree_swap(dir, "powercap");
    return pr_host_open(&host, dir, &err);
}

static int teardown(void **state)
{
    (void)state;
    pr_energy_close(&e);
    pr_energy_close(&e);
    pr_host_close(&host);
    tree_done(dir);
    return 0;
}

static void zone(int number, unsigned long long microjoules)
{
    char name[64], text[32];
    snprintf(name, sizeof name, "sys/class/powercap/intel-rapl:%d/energy_uj", number);
    snprintf(text, sizeof text, "%llu\n", microjoules);
    tree_write(dir, name, text);
}

/* The machine's busy CPU time, in seconds: 15.15 in the fixture (user, nice, system, irq). */
static void busy(double seconds)
{
    char text[128];
    snprintf(text, sizeof text, "cpu  %.0f 0 0 99999 55 0 0 77 0 0\n",
             seconds * (double)host.ticks_per_second);
    tree_write(dir, "proc/stat", text);
}

static void open_at(double seconds)
{
    busy(seconds);
    pr_energy_open(&e, &host);
}

static void test_packages_only(void **state)
{
    (void)state;
    pr_energy_open(&e, &host);
    assert_int_equal(e.zones, 2);
    assert_near(e.busy, 15.15 * 100 / (double)host.ticks_per_second, 1e-9);
    assert_exactly(pr_energy_read(&e, &host, 0), 0);
}

static void test_share_of_the_busy_time(void **state)
{
    (void)state;
    open_at(100);
    zone(0, 1000000 + 30000000);
    zone(1, 5000000 + 10000000);
    zone(2, 999000000); /* psys holds the packages already */
    busy(104);
    assert_near(pr_energy_read(&e, &host, 1), 40.0 / 4, 1e-9);
    /* It adds up. */
    zone(0, 1000000 + 40000000);
    busy(106);
    assert_near(pr_energy_read(&e, &host, 2), 10 + 10, 1e-9);
    /* All idle but us: no more than all of it, even where our clock is finer than the machine's. */
    zone(0, 1000000 + 47000000);
    busy(107);
    assert_near(pr_energy_read(&e, &host, 1.05), 20 + 7, 1e-9);
}

static void test_an_idle_job_uses_none(void **state)
{
    (void)state;
    open_at(100);
    zone(0, 31000000);
    busy(104);
    assert_exactly(pr_energy_read(&e, &host, 0), 0);
    zone(0, 41000000);
    busy(108);
    assert_exactly(pr_energy_read(&e, &host, NAN), 0);
}

static void test_wrap_around(void **state)
{
    (void)state;
    zone(0, 262143328850 - 2000000);
    open_at(100);
    zone(0, 3000000);
    busy(101);
    assert_near(pr_energy_read(&e, &host, 1), 5, 1e-6);
}

static void test_wrap_around_without_a_known_range(void **state)
{
    (void)state;
    tree_delete(dir, "sys/class/powercap/intel-rapl:0/max_energy_range_uj");
    zone(0, 200000000);
    open_at(100);
    zone(0, 3000000);
    busy(101);
    assert_near(pr_energy_read(&e, &host, 1), 3, 1e-6); /* at least that */
}

static void test_no_powercap(void **state)
{
    (void)state;
    tree_delete(dir, "sys/class");
    pr_energy_open(&e, &host);
    assert_int_equal(e.zones, 0);
    assert_absent(pr_energy_read(&e, &host, 1));
    assert_contains(e.reason, "powercap");
}

/* Since 2020 only root may read energy_uj. Here it is a directory: root may read anything else. */
static void test_unreadable_is_absent(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        char name[80];
        snprintf(name, sizeof name, "sys/class/powercap/intel-rapl:%d/energy_uj", i);
        tree_delete(dir, name);
        snprintf(name, sizeof name, "sys/class/powercap/intel-rapl:%d/energy_uj/x", i);
        tree_write(dir, name, "");
    }
    pr_energy_open(&e, &host);
    assert_int_equal(e.zones, 0);
    assert_absent(pr_energy_read(&e, &host, 1));
    assert_contains(e.reason, "/sys/class/powercap/intel-rapl:1/energy_uj");
    assert_contains(e.reason, "not readable");
}

static void test_a_zone_that_becomes_unreadable_keeps_the_rest(void **state)
{
    (void)state;
    open_at(100);
    zone(1, 5000000 + 4000000);
    tree_write(dir, "sys/class/powercap/intel-rapl:0/energy_uj", "");
    busy(102);
    assert_near(pr_energy_read(&e, &host, 1), 2, 1e-9);
}

/* The machine's time comes in ticks of 10 ms, and samples can come more often: what was used while
 * no tick passed is not lost. The job was alone on the machine, so all of it is the job's. */
static void test_short_intervals_lose_nothing(void **state)
{
    (void)state;
    open_at(100);
    double joules = 0;
    for (int i = 1; i <= 100; i++) { /* a watt, every millisecond for 0.1 s */
        zone(0, 1000000 + (unsigned long long)i * 1000);
        busy(100 + (double)(i / 10) / 100);
        joules = pr_energy_read(&e, &host, 0.001);
    }
    assert_near(joules, 0.1, 0.011);
}

static void test_machine_time_that_cannot_be_read(void **state)
{
    (void)state;
    open_at(100);
    tree_write(dir, "proc/stat", "intr 5\n");
    zone(0, 11000000);
    assert_exactly(pr_energy_read(&e, &host, 1), 0);
    tree_write(dir, "proc/stat", "cpu  1 2");
    assert_exactly(pr_energy_read(&e, &host, 1), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_packages_only),
        TEST(test_share_of_the_busy_time),
        TEST(test_an_idle_job_uses_none),
        TEST(test_wrap_around),
        TEST(test_wrap_around_without_a_known_range),
        TEST(test_no_powercap),
        TEST(test_unreadable_is_absent),
        TEST(test_a_zone_that_becomes_unreadable_keeps_the_rest),
        TEST(test_short_intervals_lose_nothing),
        TEST(test_machine_time_that_cannot_be_read),
    };
    return cmocka_run_group_tests_name("energy", tests, NULL, NULL);
}
