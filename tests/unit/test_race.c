/* SPDX-License-Identifier: Apache-2.0 */
/* What happens between the readings of two files of one process. The tree changes at the moment at
 * which a certain file is opened. */
#include "recording.h"

static struct recording r;
static const char *trigger; /* path of the file, below proc */
static void (*happen)(void);

int __real_pr_fs_open(int dirfd, const char *path);
int __wrap_pr_fs_open(int dirfd, const char *path);

int __wrap_pr_fs_open(int dirfd, const char *path)
{
    if (trigger && strcmp(path, trigger) == 0) {
        trigger = NULL;
        happen();
    }
    return __real_pr_fs_open(dirfd, path);
}

static struct fake_process parent, child;

static int setup(void **state)
{
    (void)state;
    recording_new(&r);
    parent = (struct fake_process){
        .pid = 100, .ppid = 1, .minflt = 100, .utime = 10, .wchar = 1000, .write_bytes = 1000};
    child = (struct fake_process){
        .pid = 101, .ppid = 100, .minflt = 50, .utime = 400, .wchar = 50000, .write_bytes = 50000};
    tree_process(r.dir, parent);
    tree_process(r.dir, child);
    recording_begin(&r, (struct pr_target_setting){.root = 100, .fresh = true});
    recording_tick(&r);
    assert_exactly(value_of(&r, IO_WCHAR), 51000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    trigger = NULL;
    recording_done(&r);
    return 0;
}

/* The parent waits for the child, as the kernel does it: all of its counters in one step. */
static void parent_reaps(void)
{
    tree_remove(r.dir, 101);
    parent.cminflt += child.minflt;
    parent.cutime += child.utime;
    parent.wchar += child.wchar;
    parent.write_bytes += child.write_bytes;
    tree_process(r.dir, parent);
}

/* At whatever file it happens: nothing counts twice, then or later. */
static void reaped_at(const char *file)
{
    trigger = file;
    happen = parent_reaps;
    recording_tick(&r);
    assert_null(trigger);
    for (int i = 0; i < 3; i++) {
        double cpu = 410 / (double)r.s.host.ticks_per_second;
        if (value_of(&r, IO_WCHAR) > 51000 || value_of(&r, IO_WRITE) > 51000)
            fail_msg("reaped at %s: %.0f of 51000 bytes", file, value_of(&r, IO_WCHAR));
        assert_near(value_of(&r, CPU_TIME), cpu, 1e-9);
        assert_exactly(value_of(&r, FAULTS_MINOR), 150);
        recording_tick(&r);
    }
    assert_exactly(value_of(&r, IO_WCHAR), 51000);
    assert_int_equal(r.s.ledger.unabsorbed, 0);
}

static void test_before_the_parent_is_read(void **state)
{
    (void)state;
    reaped_at("100/stat");
}

static void test_between_stat_and_io_of_the_parent(void **state)
{
    (void)state;
    reaped_at("100/io");
}

static void test_between_parent_and_child(void **state)
{
    (void)state;
    reaped_at("101/stat");
}

static void test_between_stat_and_io_of_the_child(void **state)
{
    (void)state;
    reaped_at("101/io");
}

static void child_goes(void)
{
    tree_remove(r.dir, 101);
}

/* The process ends between its files: what was read stands, and nothing is said about it. */
static void test_a_process_ends_between_its_files(void **state)
{
    (void)state;
    trigger = "101/statm";
    happen = child_goes;
    recording_tick(&r);
    assert_exactly(value_of(&r, IO_WCHAR), 51000);
    recording_tick(&r);
    recording_tick(&r);
    assert_exactly(value_of(&r, IO_WCHAR), 51000);
    assert_int_equal(r.s.ledger.unabsorbed, 1);
    assert_int_equal(r.s.events.problems, 0);
}

static void another_has_the_pid(void)
{
    tree_reuse(r.dir, (struct fake_process){.pid = 101, .ppid = 1, .start = 9000, .wchar = 900000});
}

/* Another process has the pid from here on: its values must not become the member's. */
static void test_the_pid_is_reused_between_its_files(void **state)
{
    (void)state;
    trigger = "101/stat";
    happen = another_has_the_pid;
    recording_tick(&r);
    assert_exactly(value_of(&r, IO_WCHAR), 51000);
    recording_tick(&r);
    recording_tick(&r);
    assert_exactly(value_of(&r, IO_WCHAR), 51000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_before_the_parent_is_read),        TEST(test_between_stat_and_io_of_the_parent),
        TEST(test_between_parent_and_child),         TEST(test_between_stat_and_io_of_the_child),
        TEST(test_a_process_ends_between_its_files), TEST(test_the_pid_is_reused_between_its_files),
    };
    return cmocka_run_group_tests_name("race", tests, NULL, NULL);
}
