/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c over the sources that are there: what makes a reading into a result. */
#include "tree.h"
#include "core/machine.h"
#include "util/clock.h"

static char dir[TREE_PATH], text[65536];
static struct pr_host host;
static struct pr_machine m;

static int setup(void **state)
{
    (void)state;
    struct proctor_error err;
    tree_new(dir);
    tree_swap(dir, "no-psi");
    assert_int_equal(pr_host_open(&host, dir, &err), 0);
    pr_machine_init(&m, &host, ~0u);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_machine_done(&m, true);
    pr_machine_done(&m, true);
    pr_host_close(&host);
    tree_done(dir);
    return 0;
}

static void read_at(double seconds)
{
    struct pr_tick t = {&host, (int64_t)(seconds * (double)NS_PER_S), text, sizeof text};
    pr_machine_read(&m, &t);
}

/* Pressure by the CPU, in seconds: a counter of the machine that is no sum. */
static void pressure(double seconds)
{
    char line[128];
    snprintf(line, sizeof line, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%.0f\n",
             seconds * 1e6);
    tree_write(dir, "proc/pressure/cpu", line);
}

static double cpu_pressure(void)
{
    return m.value[METRIC_SYSTEM_PSI_CPU];
}

static void test_counters_count_from_the_first_reading(void **state)
{
    (void)state;
    pressure(1000);
    read_at(1);
    assert_exactly(cpu_pressure(), 0);
    pressure(1001.5);
    read_at(2);
    assert_near(cpu_pressure(), 1.5, 1e-9);
    pressure(1004);
    read_at(3);
    assert_near(cpu_pressure(), 4, 1e-9);
}

static void test_counters_never_fall(void **state)
{
    (void)state;
    static const double raw[] = {100, 103, 102, 0, 102.5, 105};
    static const double want[] = {0, 3, 3, 3, 3, 5};
    for (size_t i = 0; i < COUNT_OF(raw); i++) {
        pressure(raw[i]);
        read_at(1 + (double)i);
        assert_near(cpu_pressure(), want[i], 1e-9);
    }
}

/* One that could not be read for a while goes on where it was. */
static void test_a_gap(void **state)
{
    (void)state;
    pressure(100);
    read_at(1);
    pressure(102);
    read_at(2);
    tree_delete(dir, "proc/pressure");
    read_at(3);
    assert_absent(cpu_pressure());
    pressure(110);
    read_at(4);
    assert_near(cpu_pressure(), 10, 1e-9);
}

static void cpu(double user)
{
    char line[128];
    snprintf(line, sizeof line, "cpu  %.0f 0 0 0 0 0 0 0 0 0\n",
             user * (double)host.ticks_per_second);
    tree_write(dir, "proc/stat", line);
}

static void test_rates_of_the_machine(void **state)
{
    (void)state;
    cpu(10);
    read_at(1);
    assert_absent(m.value[METRIC_SYSTEM_CPU_USAGE]);
    cpu(13);
    read_at(3);
    assert_near(m.value[METRIC_SYSTEM_CPU_USAGE], 1.5, 1e-9);
    assert_near(m.value[METRIC_SYSTEM_CPU_TIME], 3, 1e-9);
}

/* What grew over a gap did not grow within the last interval. */
static void test_no_rate_over_a_gap(void **state)
{
    (void)state;
    cpu(10);
    read_at(1);
    tree_delete(dir, "proc/stat");
    for (int i = 2; i < 10; i++)
        read_at(i);
    cpu(20);
    read_at(10);
    assert_near(m.value[METRIC_SYSTEM_CPU_TIME], 10, 1e-9);
    assert_absent(m.value[METRIC_SYSTEM_CPU_USAGE]);
    cpu(21);
    read_at(12);
    assert_near(m.value[METRIC_SYSTEM_CPU_USAGE], 0.5, 1e-9);
}

static void test_an_absent_file_has_a_reason(void **state)
{
    (void)state;
    tree_delete(dir, "proc/meminfo");
    read_at(1);
    assert_absent(m.value[METRIC_SYSTEM_MEM_TOTAL]);
    assert_string_equal(pr_machine_reason(&m, METRIC_SYSTEM_MEM_TOTAL),
                        "/proc/meminfo: No such file or directory");
    assert_null(pr_machine_reason(&m, METRIC_SYSTEM_CPU_USER));
    assert_null(pr_machine_reason(&m, METRIC_CPU_TIME));
    /* The first reason stays. */
    tree_write(dir, "proc/meminfo", "nothing\n");
    read_at(2);
    assert_contains(pr_machine_reason(&m, METRIC_SYSTEM_MEM_FREE), "No such file");
}

static void test_a_file_with_something_else(void **state)
{
    (void)state;
    tree_write(dir, "proc/meminfo", "MemTotal: many kB\n");
    tree_write(dir, "proc/stat", "intr 5\n");
    read_at(1);
    assert_absent(m.value[METRIC_SYSTEM_MEM_TOTAL]);
    assert_contains(pr_machine_reason(&m, METRIC_SYSTEM_MEM_TOTAL), "/proc/meminfo: ");
    assert_contains(pr_machine_reason(&m, METRIC_SYSTEM_CPU_TIME), "/proc/stat: ");
}

static void test_a_captured_tree_may_change(void **state)
{
    (void)state;
    tree_write(dir, "proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 40 kB\n");
    read_at(1);
    assert_exactly(m.value[METRIC_SYSTEM_MEM_USED], 60 * 1024);
    tree_delete(dir, "proc/meminfo"); /* another file, not other text in it */
    read_at(2);
    assert_absent(m.value[METRIC_SYSTEM_MEM_USED]);
    tree_write(dir, "proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 30 kB\n");
    read_at(3);
    assert_exactly(m.value[METRIC_SYSTEM_MEM_USED], 70 * 1024);
    assert_int_equal(host.holding, 0);
}

/* A file of the kernel is held, and one that it does not have is not asked for again. */
static void test_what_a_kernel_has_not(void **state)
{
    (void)state;
    host.held = true;
    tree_delete(dir, "proc/meminfo");
    read_at(1);
    assert_true(m.source[MACHINE_sys_meminfo].failed);
    tree_write(dir, "proc/meminfo", "MemTotal: 100 kB\n");
    read_at(2);
    assert_absent(m.value[METRIC_SYSTEM_MEM_TOTAL]);
    assert_true(m.source[MACHINE_sys_stat].fd >= 0);
    assert_true(host.holding >= 2); /* stat and loadavg */
}

static void test_no_more_are_held_than_may_be(void **state)
{
    (void)state;
    host.held = true;
    host.hold_limit = 1;
    read_at(1);
    read_at(2);
    assert_int_equal(host.holding, 1);
    assert_int_equal(m.source[MACHINE_sys_meminfo].fd, -1);
    assert_false(isnan(m.value[METRIC_SYSTEM_MEM_TOTAL]));
}

static void test_a_skipped_sample(void **state)
{
    (void)state;
    cpu(10);
    read_at(1);
    pr_machine_skip(&m);
    for (int id = 0; id < METRIC_COUNT; id++)
        assert_absent(m.value[id]);
    for (size_t i = 0; i < m.devices.count; i++)
        assert_false(m.devices.items[i].present);
    cpu(14);
    read_at(3);
    assert_near(m.value[METRIC_SYSTEM_CPU_TIME], 4, 1e-9);
    assert_near(m.value[METRIC_SYSTEM_CPU_USAGE], 2, 1e-9); /* over both intervals */
}

/* Seconds; when somebody of the job has run, when it was read, and now. */
static bool is_due(double ran, double then, double now)
{
    m.ran_at = (int64_t)(ran * (double)NS_PER_S);
    return pr_machine_due(&m, (int64_t)(then * (double)NS_PER_S),
                          (int64_t)(now * (double)NS_PER_S));
}

static void test_what_is_dear_stands_while_the_job_sleeps(void **state)
{
    (void)state;
    assert_true(is_due(0, 0, 1)); /* never read */
    assert_false(is_due(0, 10, 10.5));
    assert_true(is_due(0, 10, 11)); /* the machine is what is recorded */
    assert_true(is_due(10.5, 10, 11));
    assert_false(is_due(10.5, 10, 10.6));
    assert_true(is_due(10, 10, 11)); /* what it did may show late: once more */
    assert_true(is_due(10, 10.8, 12));
    assert_false(is_due(10, 11, 14));
    assert_true(is_due(10, 11, 15));
    assert_true(is_due(13, 10, 13)); /* it wakes up */
}

static void test_only_what_is_wanted_is_read(void **state)
{
    (void)state;
    m.reads = READ_MEMINFO;
    tree_delete(dir, "proc/stat");
    read_at(1);
    assert_false(isnan(m.value[METRIC_SYSTEM_MEM_TOTAL]));
    assert_absent(m.value[METRIC_SYSTEM_LOAD1]);
    assert_absent(m.value[METRIC_SYSTEM_CPU_USER]);
    assert_null(pr_machine_reason(&m, METRIC_SYSTEM_CPU_USER));
    assert_null(pr_machine_reason(&m, METRIC_SYSTEM_PSI_CPU));
    assert_int_equal(m.devices.count, 0);
}

static void test_nothing_is_wanted(void **state)
{
    (void)state;
    m.reads = READ_STAT | READ_IO; /* of processes */
    read_at(1);
    for (int id = 0; id < METRIC_COUNT; id++)
        assert_absent(m.value[id]);
}

static void test_sums_need_a_device(void **state)
{
    (void)state;
    static const char line[] = " 8 0 sda 1 0 %d 0 1 0 8 0 0 0 0\n";
    char lines[128];
    read_at(1);
    assert_absent(m.value[METRIC_SYSTEM_DISK_READ]);
    snprintf(lines, sizeof lines, line, 0);
    tree_write(dir, "proc/diskstats", lines);
    read_at(2);
    snprintf(lines, sizeof lines, line, 10);
    tree_write(dir, "proc/diskstats", lines);
    read_at(4);
    assert_exactly(m.value[METRIC_SYSTEM_DISK_READ], 5120);
    assert_exactly(m.value[METRIC_SYSTEM_DISK_READ_RATE], 2560);
    tree_write(dir, "proc/diskstats", "");
    read_at(5);
    assert_absent(m.value[METRIC_SYSTEM_DISK_READ]);
    assert_absent(m.value[METRIC_SYSTEM_DISK_READ_RATE]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_counters_count_from_the_first_reading),
        TEST(test_counters_never_fall),
        TEST(test_a_gap),
        TEST(test_rates_of_the_machine),
        TEST(test_no_rate_over_a_gap),
        TEST(test_an_absent_file_has_a_reason),
        TEST(test_a_file_with_something_else),
        TEST(test_a_captured_tree_may_change),
        TEST(test_what_a_kernel_has_not),
        TEST(test_no_more_are_held_than_may_be),
        TEST(test_a_skipped_sample),
        TEST(test_what_is_dear_stands_while_the_job_sleeps),
        TEST(test_only_what_is_wanted_is_read),
        TEST(test_nothing_is_wanted),
        TEST(test_sums_need_a_device),
    };
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
