/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"
#include "core/limits.h"

#define MACHINE_MEMORY (32887936.0 * 1024)

static char dir[TREE_PATH];

static int setup(void **state)
{
    (void)state;
    tree_new(dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_done(dir);
    return 0;
}

static struct pr_limits limits_under(const char *root)
{
    struct pr_host host;
    struct pr_limits l;
    struct proctor_error err;
    assert_int_equal(pr_host_open(&host, root, &err), 0);
    memset(&l, 0x55, sizeof l);
    pr_limits_read(&host, 10, &l);
    pr_host_close(&host);
    return l;
}

#define assert_limit(l, which, value, text)                                                        \
    do {                                                                                           \
        assert_exactly((l).total[which], value);                                                   \
        assert_contains((l).source[which], text);                                                  \
    } while (0)

static void test_v2(void **state)
{
    (void)state;
    struct pr_limits l = limits_under(FIXTURES "/cgroup-v2");
    assert_limit(l, LIMIT_MEMORY, 4294967296.0, "memory.max");
    assert_contains(l.source[LIMIT_MEMORY], "/user.slice/job.slice"); /* says which of the nested */
    assert_limit(l, LIMIT_CPU, 2.5, "cpu.max");
}

static void test_v1(void **state)
{
    (void)state;
    struct pr_limits l = limits_under(FIXTURES "/cgroup-v1");
    assert_limit(l, LIMIT_MEMORY, 2147483648.0, "memory.limit_in_bytes");
    assert_contains(l.source[LIMIT_MEMORY], "/outer");
    assert_limit(l, LIMIT_CPU, 3, "cpu.cfs_quota_us");
}

static void test_hybrid(void **state)
{
    (void)state;
    struct pr_limits l = limits_under(FIXTURES "/cgroup-hybrid");
    assert_limit(l, LIMIT_MEMORY, 1073741824.0, "memory.limit_in_bytes");
    assert_limit(l, LIMIT_CPU, 0.5, "cpu.cfs_quota_us");
}

static bool limited_under(const char *root, char *which)
{
    struct pr_host host;
    struct proctor_error err;
    assert_int_equal(pr_host_open(&host, root, &err), 0);
    bool limited = pr_limits_in_v2(&host, 10, which, 100);
    pr_host_close(&host);
    return limited;
}

/* A controller is of one version: what is called as its files are in the other is not of it. */
static void test_each_controller_has_one_version(void **state)
{
    (void)state;
    char which[100] = "";
    tree_swap(dir, "cgroup-hybrid");
    tree_write(dir, "proc/10/cgroup", "8:memory:/job\n5:cpuset:/job\n0::/job\n");
    tree_write(dir, "sys/fs/cgroup/unified/job/cgroup.procs", "10\n");
    tree_write(dir, "sys/fs/cgroup/unified/job/memory.max", "4096\n");
    tree_write(dir, "sys/fs/cgroup/unified/job/cpuset.cpus", "0\n");
    assert_false(limited_under(dir, which));
    tree_write(dir, "sys/fs/cgroup/unified/job/cpu.max", "25000 100000\n");
    assert_true(limited_under(dir, which));
    assert_contains(which, "cpu.max");
    struct pr_limits l = limits_under(dir);
    assert_limit(l, LIMIT_MEMORY, 1073741824.0, "memory.limit_in_bytes");
    assert_limit(l, LIMIT_CPU, 0.25, "cpu.max");
}

static void test_container_v2(void **state)
{
    (void)state;
    struct pr_limits l = limits_under(FIXTURES "/container-v2");
    assert_limit(l, LIMIT_MEMORY, 536870912.0, "memory.max");
    assert_limit(l, LIMIT_CPU, 1, "cpu.max");
}

/* Affinity is the smallest here: two CPUs, of a quota of four. */
static void test_container_v1(void **state)
{
    (void)state;
    struct pr_limits l = limits_under(FIXTURES "/container-v1");
    assert_limit(l, LIMIT_MEMORY, 268435456.0, "memory.limit_in_bytes");
    assert_limit(l, LIMIT_CPU, 2, "affinity");
}

static void test_unlimited_is_the_machine(void **state)
{
    (void)state;
    static const char *const files[] = {"sys/fs/cgroup/memory/memory.limit_in_bytes",
                                        "sys/fs/cgroup/memory/outer/memory.limit_in_bytes",
                                        "sys/fs/cgroup/memory/outer/job/memory.limit_in_bytes"};
    tree_swap(dir, "cgroup-v1");
    for (size_t i = 0; i < COUNT_OF(files); i++)
        tree_write(dir, files[i], "9223372036854771712\n");
    tree_write(dir, "sys/fs/cgroup/cpu,cpuacct/outer/cpu.cfs_quota_us", "-1\n");
    struct pr_limits l = limits_under(dir);
    assert_limit(l, LIMIT_MEMORY, MACHINE_MEMORY, "machine");
    assert_limit(l, LIMIT_CPU, 16, "machine");
}

static void test_max_is_the_machine(void **state)
{
    (void)state;
    tree_swap(dir, "cgroup-v2");
    tree_write(dir, "sys/fs/cgroup/user.slice/memory.max", "max\n");
    tree_write(dir, "sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
    tree_write(dir, "sys/fs/cgroup/user.slice/job.slice/memory.max", "max\n");
    tree_write(dir, "sys/fs/cgroup/user.slice/job.slice/cpu.max", "max 100000\n");
    struct pr_limits l = limits_under(dir);
    assert_limit(l, LIMIT_MEMORY, MACHINE_MEMORY, "machine");
    assert_limit(l, LIMIT_CPU, 16, "machine");
}

static void test_a_limit_at_the_top_of_the_hierarchy(void **state)
{
    (void)state;
    tree_swap(dir, "cgroup-v2");
    tree_write(dir, "sys/fs/cgroup/memory.max", "1048576\n"); /* in a cgroup namespace */
    assert_limit(limits_under(dir), LIMIT_MEMORY, 1048576.0, "memory.max");
    tree_write(dir, "proc/10/cgroup", "0::/\n");
    struct pr_limits l = limits_under(dir);
    assert_limit(l, LIMIT_MEMORY, 1048576.0, "memory.max");
    assert_limit(l, LIMIT_CPU, 16, "machine");
}

static void test_the_leaf_can_be_the_smallest(void **state)
{
    (void)state;
    tree_swap(dir, "cgroup-v2");
    tree_write(dir, "sys/fs/cgroup/user.slice/job.slice/step-1.scope/memory.max", "4096\n");
    tree_write(dir, "sys/fs/cgroup/user.slice/job.slice/step-1.scope/cpu.max", "10000 100000\n");
    struct pr_limits l = limits_under(dir);
    assert_limit(l, LIMIT_MEMORY, 4096.0, "step-1.scope");
    assert_near(l.total[LIMIT_CPU], 0.1, 1e-12);
}

static void test_affinity_lists(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        double count;
    } cases[] = {{"0", 1}, {"0-3", 4}, {"0-3,8", 5}, {"1,3,5,7", 4}, {"0-1,4-7,15", 7}, {"15", 1}};
    char text[128];
    tree_swap(dir, "cgroup-hybrid");
    tree_delete(dir, "proc/10/cgroup");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(text, sizeof text, "Name:\tx\nCpus_allowed_list:\t%s\n", cases[i].list);
        tree_write(dir, "proc/10/status", text);
        assert_limit(limits_under(dir), LIMIT_CPU, cases[i].count, "affinity");
    }
    /* Not fewer than the machine has: then it is the machine. */
    tree_write(dir, "proc/10/status", "Cpus_allowed_list:\t0-127\n");
    assert_limit(limits_under(dir), LIMIT_CPU, 16, "machine");
    tree_write(dir, "sys/devices/system/cpu/online", "0,2-4\n");
    assert_limit(limits_under(dir), LIMIT_CPU, 4, "machine");
}

static void test_nothing_known(void **state)
{
    (void)state;
    struct pr_limits l = limits_under(dir);
    assert_absent(l.total[LIMIT_CPU]);
    assert_absent(l.total[LIMIT_MEMORY]);
    assert_string_equal(l.source[LIMIT_CPU], "unknown");
}

/* Nor is "none" a size where that of the machine is not known. */
static void test_no_limit_is_no_number(void **state)
{
    (void)state;
    tree_swap(dir, "cgroup-v1");
    tree_delete(dir, "proc/meminfo");
    tree_delete(dir, "sys/fs/cgroup/memory");
    tree_write(dir, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_absent(limits_under(dir).total[LIMIT_MEMORY]);
    tree_write(dir, "sys/fs/cgroup/memory/memory.limit_in_bytes", "99999999999999999999999\n");
    assert_absent(limits_under(dir).total[LIMIT_MEMORY]);
}

static void test_a_neighbour_whose_name_begins_alike(void **state)
{
    (void)state;
    tree_swap(dir, "container-v2");
    tree_write(dir, "proc/10/cgroup", "0::/docker/abcdef/worker\n"); /* not below /docker/abc */
    tree_write(dir, "sys/fs/cgroup/def/worker/memory.max", "4096\n");
    assert_limit(limits_under(dir), LIMIT_MEMORY, 536870912.0, "memory.max");
}

static void test_mountinfo_of_another_process(void **state)
{
    (void)state;
    tree_swap(dir, "cgroup-v2"); /* /proc/self means nothing under a foreign root */
    tree_delete(dir, "proc/self");
    char text[4096];
    FILE *f = fopen(FIXTURES "/cgroup-v2/proc/self/mountinfo", "r");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    tree_write(dir, "proc/1/mountinfo", text);
    assert_limit(limits_under(dir), LIMIT_MEMORY, 4294967296.0, "memory.max");
}

static void test_damaged_files(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "", "\n", "0", "0:", "0::", "::::", "0::/x", "a:b:c\n", "5:memory", "\xff\xff"};
    tree_swap(dir, "cgroup-v2");
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        tree_write(dir, "proc/10/cgroup", broken[i]);
        assert_limit(limits_under(dir), LIMIT_MEMORY, MACHINE_MEMORY, "machine");
    }
    tree_swap(dir, "cgroup-v2");
    static const char *const values[] = {"", "\n", "-1\n", "x\n", "0\n", "max"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        tree_write(dir, "sys/fs/cgroup/user.slice/job.slice/memory.max", values[i]);
        tree_write(dir, "sys/fs/cgroup/user.slice/job.slice/cpu.max", values[i]);
        struct pr_limits l = limits_under(dir);
        assert_limit(l, LIMIT_MEMORY, 17179869184.0, "/user.slice");
        assert_limit(l, LIMIT_CPU, 8, "cpu.max");
    }
    static const char *const mounts[] = {"",
                                         "1\n",
                                         "1 2 3 4 5\n",
                                         "1 2 3 / /x rw -\n",
                                         "1 2 3 / /x rw - cgroup2\n",
                                         "1 2 3 /\\3!! /\\3\"\" rw - cgroup2 x y\n"};
    for (size_t i = 0; i < COUNT_OF(mounts); i++) {
        tree_write(dir, "proc/self/mountinfo", mounts[i]);
        assert_limit(limits_under(dir), LIMIT_MEMORY, MACHINE_MEMORY, "machine");
    }
}

static void test_a_very_deep_path(void **state)
{
    (void)state;
    char text[9000] = "0::";
    tree_swap(dir, "cgroup-v2");
    for (int i = 0; i < 2000; i++)
        strcat(text, "/ab");
    strcat(text, "\n");
    tree_write(dir, "proc/10/cgroup", text);
    assert_limit(limits_under(dir), LIMIT_MEMORY, MACHINE_MEMORY, "machine");
}

static struct pr_limits limits_of_named(const char *root, const char *name)
{
    struct pr_host host;
    struct pr_limits l;
    struct proctor_error err;
    assert_int_equal(pr_host_open(&host, root, &err), 0);
    memset(&l, 0x55, sizeof l);
    if (name)
        pr_limits_read_cgroup(&host, name, &l);
    else
        pr_limits_read(&host, 0, &l);
    pr_host_close(&host);
    return l;
}

static void test_a_named_cgroup(void **state)
{
    (void)state;
    struct pr_limits l = limits_of_named(FIXTURES "/cgroup-v2", "/user.slice/job.slice");
    assert_limit(l, LIMIT_MEMORY, 4294967296.0, "/user.slice/job.slice");
    assert_limit(l, LIMIT_CPU, 2.5, "cpu.max");
    l = limits_of_named(FIXTURES "/cgroup-v2", "/sys/fs/cgroup/user.slice");
    assert_limit(l, LIMIT_MEMORY, 17179869184.0, "/user.slice");
    l = limits_of_named(FIXTURES "/cgroup-v1", "/sys/fs/cgroup/memory/outer/job");
    assert_limit(l, LIMIT_MEMORY, 2147483648.0, "/outer");
    assert_limit(l, LIMIT_CPU, 3, "cpu.cfs_quota_us"); /* the same path beside it */
    /* No process, no affinity: that of container-v1's is two. */
    l = limits_of_named(FIXTURES "/container-v1", "/docker/abc");
    assert_limit(l, LIMIT_CPU, 4, "cpu.cfs_quota_us");
}

static void test_the_machine_alone(void **state)
{
    (void)state;
    struct pr_limits l = limits_of_named(FIXTURES "/container-v1", NULL);
    assert_limit(l, LIMIT_MEMORY, MACHINE_MEMORY, "machine");
    assert_limit(l, LIMIT_CPU, 16, "machine");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* What the machine has is no limit, however small, and neither is what version 1 says. */
static void test_limits_that_a_group_of_version_2_would_hide(void **state)
{
    (void)state;
    char which[100] = "";
    tree_swap(dir, "cgroup-v2");
    assert_true(limited_under(dir, which));
    assert_contains(which, "of cgroup /user.slice");
    assert_false(limited_under(FIXTURES "/cgroup-v1", which));
    tree_write(dir, "proc/10/cgroup", "0::/free\n");
    tree_write(dir, "sys/fs/cgroup/free/cgroup.procs", "10\n");
    tree_write(dir, "sys/fs/cgroup/free/memory.max", "max\n");
    tree_write(dir, "sys/fs/cgroup/free/cpu.max", "max 100000\n");
    tree_write(dir, "sys/fs/cgroup/free/cpuset.cpus", "\n");
    assert_false(limited_under(dir, which));
    tree_write(dir, "sys/fs/cgroup/free/cpuset.cpus", "0-1,4\n");
    assert_true(limited_under(dir, which));
    assert_string_equal(which, "cpuset.cpus of cgroup /free");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_v2),
        TEST(test_v1),
        TEST(test_hybrid),
        TEST(test_each_controller_has_one_version),
        TEST(test_container_v2),
        TEST(test_container_v1),
        TEST(test_unlimited_is_the_machine),
        TEST(test_max_is_the_machine),
        TEST(test_a_limit_at_the_top_of_the_hierarchy),
        TEST(test_the_leaf_can_be_the_smallest),
        TEST(test_affinity_lists),
        TEST(test_nothing_known),
        TEST(test_no_limit_is_no_number),
        TEST(test_a_neighbour_whose_name_begins_alike),
        TEST(test_mountinfo_of_another_process),
        TEST(test_damaged_files),
        TEST(test_a_very_deep_path),
        TEST(test_a_named_cgroup),
        TEST(test_the_machine_alone),
        TEST(test_limits_that_a_group_of_version_2_would_hide),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
