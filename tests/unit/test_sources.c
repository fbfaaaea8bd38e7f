/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"
#include "core/source.h"
#include "core/stat_line.h"

static char dir[TREE_PATH], text[32768];
static struct pr_host host;
static struct pr_entities set;
static struct pr_entity *e;
static struct pr_tick t;

static int setup(void **state)
{
    (void)state;
    struct proctor_error err;
    tree_new(dir);
    assert_int_equal(pr_host_open(&host, dir, &err), 0);
    e = pr_entities_add(&set, 10, 1010);
    t = (struct pr_tick){&host, 5000, text, sizeof text};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_source_release(&host, e);
    pr_host_close(&host);
    pr_entities_done(&set);
    tree_done(dir);
    return 0;
}

static int read_one(enum pr_source_id id)
{
    return pr_source_read(&t, e, id);
}

/* --- stat ------------------------------------------------------------------------------------- */

static void test_stat(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){.pid = 10,
                                            .ppid = 3,
                                            .pgrp = 7,
                                            .comm = "job",
                                            .state = 'R',
                                            .threads = 5,
                                            .minflt = 11,
                                            .cminflt = 12,
                                            .majflt = 13,
                                            .cmajflt = 14,
                                            .utime = 150,
                                            .stime = 16,
                                            .cutime = 1700,
                                            .cstime = 18});
    assert_int_equal(read_one(SOURCE_pid_stat), 0);
    double tick = 1.0 / (double)host.ticks_per_second;
    assert_int_equal(e->ppid, 3);
    assert_int_equal(e->state, 'R');
    assert_string_equal(e->comm, "job");
    assert_exactly(e->value[METRIC_THREADS], 5);
    assert_exactly(e->value[METRIC_FAULTS_MINOR], 11);
    assert_exactly(e->reaped[METRIC_FAULTS_MINOR], 12);
    assert_exactly(e->value[METRIC_FAULTS_MAJOR], 13);
    assert_exactly(e->reaped[METRIC_FAULTS_MAJOR], 14);
    assert_near(e->value[METRIC_CPU_USER], 150 * tick, 1e-12);
    assert_near(e->value[METRIC_CPU_SYSTEM], 16 * tick, 1e-12);
    assert_near(e->reaped[METRIC_CPU_USER], 1700 * tick, 1e-12);
    assert_near(e->reaped[METRIC_CPU_SYSTEM], 18 * tick, 1e-12);
    assert_near(e->value[METRIC_CPU_TIME], 166 * tick, 1e-12);
    assert_near(e->reaped[METRIC_CPU_TIME], 1718 * tick, 1e-12);
}

/* comm is whatever the process says it is. */
static void test_stat_with_a_hostile_name(void **state)
{
    (void)state;
    static const char *const names[] = {
        "a b",          ")", "a) R 1 1 1", "((()))",          "x\ny", ") S 1 2 3 4 5",
        "\xff\xfe\x80", "",  "12 (3) R",   "abcdefghijklmno", ")\n)", "% s%n%s"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        tree_process(dir, (struct fake_process){
                              .pid = 10, .ppid = 3, .comm = names[i], .threads = 2, .minflt = 9});
        assert_int_equal(read_one(SOURCE_pid_stat), 0);
        assert_string_equal(e->comm, names[i]);
        assert_int_equal(e->ppid, 3);
        assert_int_equal(e->state, 'S');
        assert_exactly(e->value[METRIC_FAULTS_MINOR], 9);
        assert_exactly(e->value[METRIC_THREADS], 2);
    }
}

static void test_stat_with_a_long_name(void **state)
{
    (void)state;
    char name[200];
    memset(name, 'k', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    tree_process(dir, (struct fake_process){.pid = 10, .ppid = 3, .comm = name});
    assert_int_equal(read_one(SOURCE_pid_stat), 0);
    assert_int_equal(strlen(e->comm), COMM_MAX - 1);
    assert_int_equal(e->ppid, 3);
}

/* Every prefix of a stat file, and every one with a byte changed: it may be refused, no more. */
static void test_stat_truncated_or_damaged(void **state)
{
    (void)state;
    const char whole[] = "10 (a) b) S 3 10 10 0 -1 4194304 11 12 13 14 15 16 17 18 20 0 1 0 1010 5";
    struct pr_stat_line line;
    size_t len = sizeof whole - 1;
    assert_true(pr_stat_line_parse(whole, len, &line));
    assert_int_equal(line.pid, 10);
    assert_int_equal(line.start, 1010);
    assert_string_equal(line.comm, "a) b");
    for (size_t n = 0; n < len; n++) {
        char *part = malloc(n + 1); /* of its own size, so that a sanitizer sees a step too far */
        memcpy(part, whole, n);
        bool good = pr_stat_line_parse(part, n, &line);
        assert_true(!good || n >= len - 5);
        for (size_t k = 0; k < n; k++) {
            part[k] ^= 0x15;
            pr_stat_line_parse(part, n, &line);
            part[k] ^= 0x15;
        }
        free(part);
    }
}

static void test_stat_empty_or_gone(void **state)
{
    (void)state;
    assert_int_equal(read_one(SOURCE_pid_stat), -ENOENT);
    tree_write(dir, "proc/10/stat", "");
    assert_int_equal(read_one(SOURCE_pid_stat), -EIO);
    tree_write(dir, "proc/10/stat", "10 (x");
    assert_int_equal(read_one(SOURCE_pid_stat), -EIO);
    tree_write(dir, "proc/10/stat", "()");
    assert_int_equal(read_one(SOURCE_pid_stat), -EIO);
    assert_absent(e->value[METRIC_CPU_TIME]);
}

/* Identity is (pid, start time). */
static void test_stat_of_another_process_with_that_pid(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){.pid = 10, .start = 1011, .utime = 5});
    assert_int_equal(read_one(SOURCE_pid_stat), -ESRCH);
    assert_absent(e->value[METRIC_CPU_TIME]);
}

static void test_stat_huge_numbers(void **state)
{
    (void)state;
    tree_write(dir, "proc/10/stat",
               "10 (x) S 3 10 10 0 -1 4194304 18446744073709551615 99999999999999999999 5 14 15 16 "
               "17 18 20 0 1 0 1010 5");
    assert_int_equal(read_one(SOURCE_pid_stat), 0);
    assert_true(e->value[METRIC_FAULTS_MINOR] >= 9e18);
    assert_true(isfinite(e->reaped[METRIC_FAULTS_MINOR]));
}

static void test_stat_of_a_kernel_thread(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){.pid = 10});
    assert_int_equal(read_one(SOURCE_pid_stat), 0);
    assert_false(e->kernel_thread);
    tree_write(dir, "proc/10/stat",
               "10 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1010 0 0 0");
    assert_int_equal(read_one(SOURCE_pid_stat), 0);
    assert_true(e->kernel_thread);
}

/* A count below 0, a pid that is none, a start that is none: refused as a whole. */
static void test_stat_impossible_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "10 (x) S 3 10 10 0 -1 4194304 11 12 13 14 -15 16 17 18 20 0 1 0 1010 5",
        "10 (x) S 3 10 10 0 -1 4194304 11 -12 13 14 15 16 17 18 20 0 1 0 1010 5",
        "10 (x) S 3 10 10 0 -1 4194304 11 12 13 14 15 16 17 18 20 0 -1 0 1010 5",
        "10 (x) S 99999999999 10 10 0 -1 4194304 11 12 13 14 15 16 17 18 20 0 1 0 1010 5",
        "4294967306 (x) S 3 10 10 0 -1 4194304 11 12 13 14 15 16 17 18 20 0 1 0 1010 5"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        tree_write(dir, "proc/10/stat", texts[i]);
        assert_int_equal(read_one(SOURCE_pid_stat), -EIO);
        assert_absent(e->value[METRIC_CPU_TIME]);
    }
}

/* What cannot be understood is not the value of the reading before. */
static void test_nonsense_is_no_reading(void **state)
{
    (void)state;
    static const struct {
        enum pr_source_id id;
        const char *file, *text;
    } files[] = {{SOURCE_pid_statm, "proc/10/statm", "-5 -7 0\n"},
                 {SOURCE_pid_io, "proc/10/io", "rchar: -1\nwchar:\n"},
                 {SOURCE_pid_status, "proc/10/status", "Name:\tx\n"},
                 {SOURCE_pid_smaps, "proc/10/smaps_rollup", "Pss: x\n"}};
    tree_process(dir, (struct fake_process){.pid = 10, .pss_kb = 5, .rss_pages = 2, .rchar = 3});
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        assert_int_equal(read_one(files[i].id), 0);
        tree_write(dir, files[i].file, files[i].text);
        assert_int_equal(read_one(files[i].id), -EIO);
    }
    assert_absent(e->value[METRIC_MEM_PSS]);
    assert_int_equal(e->share.at, 0);
}

/* --- the others ------------------------------------------------------------------------------- */

static void test_statm(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){.pid = 10, .vms_pages = 1000, .rss_pages = 300});
    assert_int_equal(read_one(SOURCE_pid_statm), 0);
    assert_exactly(e->value[METRIC_MEM_VMS], 1000.0 * (double)host.page_size);
    assert_exactly(e->value[METRIC_MEM_RSS], 300.0 * (double)host.page_size);
    tree_write(dir, "proc/10/statm", "0 0 0 0 0 0 0\n");
    assert_int_equal(read_one(SOURCE_pid_statm), 0);
    assert_absent(e->value[METRIC_MEM_RSS]); /* no memory of its own: not a size of 0 */
}

static void test_io(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){
                          .pid = 10, .rchar = 1, .wchar = 2, .read_bytes = 3, .write_bytes = 4});
    assert_int_equal(read_one(SOURCE_pid_io), 0);
    assert_exactly(e->value[METRIC_IO_RCHAR], 1);
    assert_exactly(e->value[METRIC_IO_WCHAR], 2);
    assert_exactly(e->value[METRIC_IO_READ], 3);
    assert_exactly(e->value[METRIC_IO_WRITE], 4); /* not cancelled_write_bytes */
}

static void test_status(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){
                          .pid = 10, .hwm_kb = 77, .swap_kb = 5, .voluntary = 8, .involuntary = 9});
    assert_int_equal(read_one(SOURCE_pid_status), 0);
    assert_exactly(e->value[METRIC_MEM_RSS_PEAK], 77 * 1024);
    assert_exactly(e->value[METRIC_MEM_SWAP], 5 * 1024);
    assert_exactly(e->value[METRIC_CTX_VOLUNTARY], 8);
    assert_exactly(e->value[METRIC_CTX_INVOLUNTARY], 9);
}

/* smaps_rollup knows of swapped shared memory, status does not. */
static void test_the_better_swap_stays(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){.pid = 10, .swap_kb = 50, .pss_kb = 1});
    assert_int_equal(read_one(SOURCE_pid_smaps), 0);
    tree_write(dir, "proc/10/status", "VmSwap:\t 5 kB\n");
    assert_int_equal(read_one(SOURCE_pid_status), 0);
    assert_exactly(e->value[METRIC_MEM_SWAP], 50 * 1024);
    tree_delete(dir, "proc/10/smaps_rollup");
    assert_true(read_one(SOURCE_pid_smaps) < 0);
    assert_int_equal(read_one(SOURCE_pid_status), 0);
    assert_exactly(e->value[METRIC_MEM_SWAP], 5 * 1024);
}

static void test_smaps(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){.pid = 10, .pss_kb = 123, .private_kb = 100});
    assert_int_equal(read_one(SOURCE_pid_smaps), 0);
    assert_exactly(e->value[METRIC_MEM_PSS], 123 * 1024); /* not Pss_Dirty */
    assert_exactly(e->value[METRIC_MEM_USS], 100 * 1024); /* clean and dirty together */
    assert_int_equal(e->share.at, 5000);
    assert_int_equal(read_one(SOURCE_pid_smaps), 0);
    assert_exactly(e->value[METRIC_MEM_USS], 100 * 1024); /* not once more */
}

/* Huge pages of its own are neither clean nor dirty, nor in Pss. */
static void test_smaps_with_huge_pages(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){
                          .pid = 10, .pss_kb = 123, .private_kb = 100, .hugetlb_kb = 2048});
    assert_int_equal(read_one(SOURCE_pid_smaps), 0);
    assert_exactly(e->value[METRIC_MEM_PSS], 123 * 1024);
    assert_exactly(e->value[METRIC_MEM_USS], (100 + 2048) * 1024);
}

static void test_smaps_that_cannot_be_read_is_absent(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){.pid = 10, .pss_kb = 123, .private_kb = 100});
    assert_int_equal(read_one(SOURCE_pid_smaps), 0);
    tree_delete(dir, "proc/10/smaps_rollup");
    assert_int_equal(read_one(SOURCE_pid_smaps), -ENOENT);
    assert_absent(e->value[METRIC_MEM_PSS]);
    assert_absent(e->value[METRIC_MEM_USS]);
    assert_int_equal(e->share.at, 0);
}

static void test_fds(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){.pid = 10, .fds = 7});
    assert_int_equal(read_one(SOURCE_pid_fd), 0);
    assert_exactly(e->value[METRIC_FDS], 7);
    tree_process(dir, (struct fake_process){.pid = 10, .fds = 300});
    assert_int_equal(read_one(SOURCE_pid_fd), 0);
    assert_exactly(e->value[METRIC_FDS], 300);
    tree_delete(dir, "proc/10/fd");
    assert_int_equal(read_one(SOURCE_pid_fd), -ENOENT);
}

/* The soft limit is the one that counts. */
static void test_share_of_the_limit(void **state)
{
    (void)state;
    tree_process(dir, (struct fake_process){.pid = 10, .fds = 7});
    assert_int_equal(read_one(SOURCE_pid_fd), 0);
    assert_absent(e->value[METRIC_FDS_RATIO]); /* there is no such file */
    tree_write(dir, "proc/10/limits",
               "Limit                     Soft Limit           Hard Limit           Units     \n"
               "Max cpu time              unlimited            unlimited            seconds   \n"
               "Max open files            28                   4096                 files     \n"
               "Max locked memory         65536                65536                bytes     \n");
    assert_int_equal(read_one(SOURCE_pid_fd), 0);
    assert_exactly(e->value[METRIC_FDS_RATIO], 0.25);
    tree_write(dir, "proc/10/limits",
               "Max open files            unlimited            4096  files\n");
    assert_int_equal(read_one(SOURCE_pid_fd), 0);
    assert_absent(e->value[METRIC_FDS_RATIO]);
}

static void test_waiting_for_a_cpu(void **state)
{
    (void)state;
    tree_write(dir, "proc/10/schedstat", "123456789 2500000000 42\n");
    assert_int_equal(read_one(SOURCE_pid_sched), 0);
    assert_exactly(e->value[METRIC_SCHED_DELAY], 2.5);
    tree_write(dir, "proc/10/schedstat", "123456789\n");
    assert_int_equal(read_one(SOURCE_pid_sched), -EIO);
}

/* Under a foreign root a pid is no pid here: the clock of whoever has it must not be asked. */
static void test_clock_is_not_asked_under_a_foreign_root(void **state)
{
    (void)state;
    struct pr_entity *self = pr_entities_add(&set, getpid(), 1);
    self->value[METRIC_CPU_TIME] = 0;
    for (volatile int i = 0; i < 3000000; i++)
        ;
    assert_int_equal(pr_source_read(&t, self, SOURCE_pid_clock), 0);
    assert_exactly(self->value[METRIC_CPU_TIME], 0);
}

/* Truncated at any byte, or empty: never a crash, and never a value that was not there. */
static void test_all_files_truncated(void **state)
{
    (void)state;
    static const struct {
        enum pr_source_id id;
        const char *file, *text;
    } files[] = {
        {SOURCE_pid_statm, "statm", "1000 300 20 1 0 2 0\n"},
        {SOURCE_pid_io, "io", "rchar: 100\nwchar: 200\nread_bytes: 300\nwrite_bytes: 400\n"},
        {SOURCE_pid_status, "status",
         "Name:\tx\nVmHWM:\t  77 kB\nVmSwap:\t 5 kB\nvoluntary_ctxt_switches:\t8\n"},
        {SOURCE_pid_sched, "schedstat", "1000 300 2\n"},
        {SOURCE_pid_smaps, "smaps_rollup", "0-1 [rollup]\nPss: 5 kB\nPrivate_Clean: 2 kB\n"},
    };
    char name[64];
    for (size_t i = 0; i < COUNT_OF(files); i++)
        for (size_t n = 0; n <= strlen(files[i].text); n++) {
            snprintf(name, sizeof name, "proc/10/%s", files[i].file);
            tree_write_bytes(dir, name, files[i].text, n);
            for (int id = 0; id < PROC_METRICS; id++)
                e->value[id] = NAN;
            int r = read_one(files[i].id);
            assert_true(r == -EIO || (r == 0 && n > 0));
            for (int id = 0; id < PROC_METRICS; id++)
                assert_true(n > 0 || isnan(e->value[id]));
        }
}

static void test_garbage(void **state)
{
    (void)state;
    char garbage[4096];
    static const char *const names[] = {"stat", "statm", "io", "status", "smaps_rollup"};
    unsigned seed = 1;
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < sizeof garbage; i++)
            garbage[i] = (char)((seed = seed * 1103515245 + 12345) >> 16);
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            char name[64];
            snprintf(name, sizeof name, "proc/10/%s", names[i]);
            tree_write_bytes(dir, name, garbage, sizeof garbage);
        }
        for (int id = 0; id < SOURCE_COUNT; id++)
            read_one((enum pr_source_id)id);
    }
}

static void test_a_file_larger_than_the_room(void **state)
{
    (void)state;
    char *large = malloc(100000);
    memset(large, 'x', 100000);
    memcpy(large, "VmHWM: 5 kB\n", 12);
    tree_write_bytes(dir, "proc/10/status", large, 100000);
    assert_int_equal(read_one(SOURCE_pid_status), 0);
    assert_exactly(e->value[METRIC_MEM_RSS_PEAK], 5 * 1024);
    free(large);
}

/* --- held descriptors, on the real /proc -------------------------------------------------------
 */

static void test_held_descriptors(void **state)
{
    (void)state;
    struct pr_host real;
    struct proctor_error err;
    struct pr_stat_line line;
    char stat[1024];
    assert_int_equal(pr_host_open(&real, "/", &err), 0);
    assert_true(real.held);
    assert_false(real.foreign);
    real.hold_limit = 2;
    FILE *f = fopen("/proc/self/stat", "r");
    size_t n = fread(stat, 1, sizeof stat, f);
    fclose(f);
    assert_true(pr_stat_line_parse(stat, n, &line));
    struct pr_entity *self = pr_entities_add(&set, getpid(), line.start);
    struct pr_tick here = {&real, 1, text, sizeof text};
    for (int round = 0; round < 3; round++) {
        for (int id = 0; id < SOURCE_COUNT; id++)
            assert_int_equal(pr_source_read(&here, self, (enum pr_source_id)id), 0);
        assert_int_equal(real.holding, 2); /* and no more than the limit; the rest by path */
    }
    assert_true(self->value[METRIC_MEM_RSS] > 0);
    assert_true(self->value[METRIC_MEM_PSS] > 0);
    assert_true(self->value[METRIC_FDS] >= 3);
    assert_true(self->value[METRIC_CPU_TIME] > 0);
    assert_true(self->value[METRIC_IO_RCHAR] > 0);
    pr_source_release(&real, self);
    assert_int_equal(real.holding, 0);
    for (int id = 0; id < SOURCE_COUNT; id++)
        assert_int_equal(self->fd[id], -1);
    pr_host_close(&real);
}

static void test_host_errors(void **state)
{
    (void)state;
    struct pr_host h;
    struct proctor_error err;
    assert_int_equal(pr_host_open(&h, "/nonexistent-root", &err), -ENOENT);
    assert_contains(err.message, "/nonexistent-root");
    tree_delete(dir, "proc");
    assert_int_equal(pr_host_open(&h, dir, &err), -ENOENT);
    assert_contains(err.message, "proc");
    pr_host_close(&h);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_stat),
        TEST(test_stat_with_a_hostile_name),
        TEST(test_stat_with_a_long_name),
        TEST(test_stat_truncated_or_damaged),
        TEST(test_stat_empty_or_gone),
        TEST(test_stat_of_another_process_with_that_pid),
        TEST(test_stat_huge_numbers),
        TEST(test_stat_of_a_kernel_thread),
        TEST(test_stat_impossible_numbers),
        TEST(test_nonsense_is_no_reading),
        TEST(test_statm),
        TEST(test_io),
        TEST(test_status),
        TEST(test_the_better_swap_stays),
        TEST(test_smaps),
        TEST(test_smaps_with_huge_pages),
        TEST(test_smaps_that_cannot_be_read_is_absent),
        TEST(test_fds),
        TEST(test_share_of_the_limit),
        TEST(test_waiting_for_a_cpu),
        TEST(test_clock_is_not_asked_under_a_foreign_root),
        TEST(test_all_files_truncated),
        TEST(test_garbage),
        TEST(test_a_file_larger_than_the_room),
        TEST(test_held_descriptors),
        TEST(test_host_errors),
    };
    return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
