/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "core/oom.h"
#include "tree.h"

static char dir[TREE_PATH];
static struct pr_host host;
static struct pr_oom oom;

static int setup(void **state)
{
    (void)state;
    tree_new(dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_oom_done(&oom);
    pr_host_close(&host);
    tree_done(dir);
    return 0;
}

static void open_under(const char *fixture)
{
    tree_swap(dir, fixture);
    tree_write(dir, "proc/vmstat", "nr_free_pages 12\noom_kill 5\nnr_x 1\n");
    assert_int_equal(pr_host_open(&host, dir, NULL), 0);
}

#define V2 "sys/fs/cgroup/user.slice/"
#define V1 "sys/fs/cgroup/memory/outer/"

static void killed(int count)
{
    char text[32];
    snprintf(text, sizeof text, "oom_kill %d\n", count);
    tree_write(dir, "proc/vmstat", text);
}

static void events(const char *group, int hits, int kills)
{
    char path[TREE_PATH], text[128];
    snprintf(path, sizeof path, V2 "%smemory.events", group);
    snprintf(text, sizeof text, "low 0\nhigh 0\nmax %d\noom %d\noom_kill %d\noom_group_kill 0\n",
             hits * 3, hits, kills);
    tree_write(dir, path, text);
}

/* The limit is that of the group above: the kill is counted with its victim, and both are with all
 * that is above. */
static void test_the_limit_above_it_was_met(void **state)
{
    (void)state;
    open_under("cgroup-v2");
    events("job.slice/step-1.scope/", 0, 1);
    events("job.slice/", 2, 1);
    events("", 2, 1);
    tree_write(dir, V2 "job.slice/memory.max", "1073741824\n");
    pr_oom_open(&oom, &host, 10, NULL);
    assert_int_equal(oom.version, 2);
    events("job.slice/step-1.scope/", 0, 3);
    events("job.slice/", 9, 3);
    events("", 9, 3);
    killed(8);
    pr_oom_read(&oom, &host);
    assert_exactly(oom.kills, 2);
    assert_exactly(oom.hits, 7);
    assert_exactly(oom.limit, 1073741824.0);
    assert_string_equal(oom.where, "/user.slice/job.slice");
    assert_exactly(oom.machine_kills, 3);
    assert_true(oom.whole);
    oom.left = true; /* then the job's may have been in its next group */
    pr_oom_read(&oom, &host);
    assert_false(oom.whole);
}

static void test_nothing_happened(void **state)
{
    (void)state;
    open_under("cgroup-v2");
    events("job.slice/step-1.scope/", 4, 4);
    pr_oom_open(&oom, &host, 10, NULL);
    pr_oom_read(&oom, &host);
    assert_exactly(oom.kills, 0);
    assert_exactly(oom.machine_kills, 0);
    assert_absent(oom.hits);
}

static void test_a_kill_elsewhere(void **state)
{
    (void)state;
    open_under("cgroup-v2");
    events("job.slice/step-1.scope/", 4, 4);
    pr_oom_open(&oom, &host, 10, NULL);
    killed(8);
    pr_oom_read(&oom, &host);
    assert_exactly(oom.kills, 0);
    assert_exactly(oom.machine_kills, 3);
    assert_true(oom.whole);
}

/* A group that was made for the run may have no controllers: the one above keeps the account. */
static void test_a_group_without_an_account(void **state)
{
    (void)state;
    open_under("cgroup-v2");
    tree_delete(dir, V2 "job.slice/step-1.scope/memory.events");
    events("job.slice/", 0, 0);
    pr_oom_open(&oom, &host, 10, NULL);
    events("job.slice/", 1, 1);
    killed(6);
    pr_oom_read(&oom, &host);
    assert_exactly(oom.kills, 1);
    assert_string_equal(oom.where, "/user.slice/job.slice");
}

static void test_version_1(void **state)
{
    (void)state;
    open_under("cgroup-v1");
    tree_write(dir, V1 "job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    tree_write(dir, V1 "job/memory.failcnt", "10\n");
    tree_write(dir, V1 "memory.failcnt", "3\n");
    tree_write(dir, V1 "memory.limit_in_bytes", "52428800\n");
    pr_oom_open(&oom, &host, 10, NULL);
    assert_int_equal(oom.version, 1);
    tree_write(dir, V1 "job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    tree_write(dir, V1 "memory.failcnt", "8\n");
    tree_delete(dir, "proc/vmstat"); /* the groups tell by themselves */
    pr_oom_read(&oom, &host);
    assert_exactly(oom.kills, 1);
    assert_exactly(oom.hits, 5);
    assert_exactly(oom.limit, 52428800);
    assert_string_equal(oom.where, "/outer");
    assert_true(oom.whole);
    tree_write(dir, V1 "job/worker/tasks", ""); /* whose kills are on its own account */
    pr_oom_read(&oom, &host);
    assert_false(oom.whole);
}

static void test_the_machine_alone(void **state)
{
    (void)state;
    open_under("cgroup-v2");
    pr_oom_open(&oom, &host, 0, NULL);
    killed(7);
    pr_oom_read(&oom, &host);
    assert_exactly(oom.machine_kills, 2);
    assert_absent(oom.kills);
    tree_delete(dir, "proc/vmstat"); /* an old kernel, or a sparse proc */
    pr_oom_read(&oom, &host);
    assert_absent(oom.machine_kills);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_the_limit_above_it_was_met),
        TEST(test_nothing_happened),
        TEST(test_a_kill_elsewhere),
        TEST(test_a_group_without_an_account),
        TEST(test_version_1),
        TEST(test_the_machine_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
