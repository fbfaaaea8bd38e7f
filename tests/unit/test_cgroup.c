/* SPDX-License-Identifier: Apache-2.0 */
/* The source of the job's cgroup, and where cgroups are found. */
#include "tree.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "core/cgroup_path.h"
#include "core/machine.h"
#include "source/cgroup_files.h"
#include "source/cgroup_path.h"
#include "source/mountinfo.h"
#include "util/clock.h"

#define V2_JOB    "sys/fs/cgroup/user.slice/job.slice/step-1.scope"
#define V1_MEMORY "sys/fs/cgroup/memory/outer/job"
#define V1_CPU    "sys/fs/cgroup/cpu,cpuacct/outer/job"

static char dir[TREE_PATH], text[65536];
static struct pr_host host;
static struct pr_machine m;
static struct pr_tick tick;
static unsigned wanted = READ_CGROUP | READ_CGROUP_REST;

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

/* The machine under a root, with the cgroup of process 10, or a named one. */
static void begin(const char *root, const char *name)
{
    struct proctor_error err;
    assert_int_equal(pr_host_open(&host, root, &err), 0);
    pr_machine_init(&m, &host, wanted);
    m.of = name ? 0 : 10;
    m.cgroup = name;
    tick = (struct pr_tick){&host, 100 * NS_PER_S, text, sizeof text};
    pr_machine_read(&m, &tick);
}

static void begin_fixture(const char *fixture)
{
    tree_swap(dir, fixture);
    begin(dir, NULL);
}

static void again(double seconds)
{
    tick.now += (int64_t)(seconds * 1e9);
    pr_machine_read(&m, &tick);
}

static void end(void)
{
    pr_machine_done(&m, true);
    assert_int_equal(host.holding, 0);
    pr_host_close(&host);
}

#define raw(metric) (m.raw[METRIC_##metric])
#define why()       pr_machine_reason(&m, METRIC_MEM_CGROUP)

/* --- values ----------------------------------------------------------------------------------- */

static void test_v2(void **state)
{
    (void)state;
    begin(FIXTURES "/cgroup-v2", NULL);
    assert_near(raw(CPU_CGROUP), 7.25, 1e-9);
    assert_near(raw(CPU_THROTTLED), 1.5, 1e-9);
    assert_exactly(raw(MEM_CGROUP), 104857600);
    assert_exactly(raw(MEM_CGROUP_ANON), 52428800);
    assert_exactly(raw(MEM_CGROUP_FILE), 41943040 - 8388608);
    assert_exactly(raw(MEM_CGROUP_SHMEM), 8388608);
    assert_exactly(raw(MEM_CGROUP_KERNEL), 3145728);
    assert_exactly(raw(OOM_KILLS), 1);
    assert_exactly(raw(THREADS_CGROUP), 17);
    assert_null(why());
    end();
}

static void test_v1(void **state)
{
    (void)state;
    begin(FIXTURES "/cgroup-v1", NULL);
    assert_near(raw(CPU_CGROUP), 12.345678901, 1e-9);
    assert_near(raw(CPU_THROTTLED), 2.5, 1e-9);
    assert_exactly(raw(MEM_CGROUP), 73400320);
    assert_exactly(raw(MEM_CGROUP_ANON), 33554432); /* with the groups below it */
    assert_exactly(raw(MEM_CGROUP_FILE), 31457280 - 4194304);
    assert_exactly(raw(MEM_CGROUP_SHMEM), 4194304);
    assert_exactly(raw(MEM_CGROUP_KERNEL), 2097152);
    assert_exactly(raw(OOM_KILLS), 4);
    assert_exactly(raw(THREADS_CGROUP), 5); /* pids has the process in another group */
    end();
}

/* What nobody asked for is in files that are not opened; it is no failure either. */
static void test_the_rest_only_where_it_is_wanted(void **state)
{
    (void)state;
    static const char *const fixtures[] = {FIXTURES "/cgroup-v1", FIXTURES "/cgroup-v2"};
    for (size_t i = 0; i < 2; i++) {
        wanted = READ_CGROUP;
        begin(fixtures[i], NULL);
        assert_false(isnan(raw(CPU_CGROUP)) || isnan(raw(MEM_CGROUP)) || isnan(raw(OOM_KILLS)));
        assert_absent(raw(MEM_CGROUP_ANON));
        assert_absent(raw(MEM_CGROUP_KERNEL));
        assert_absent(raw(THREADS_CGROUP));
        assert_null(why());
        end();
        wanted = READ_CGROUP_REST;
        begin(fixtures[i], NULL);
        assert_absent(raw(CPU_CGROUP));
        assert_absent(raw(MEM_CGROUP));
        assert_false(isnan(raw(MEM_CGROUP_ANON)) || isnan(raw(THREADS_CGROUP)));
        end();
    }
    wanted = READ_CGROUP | READ_CGROUP_REST;
}

/* cpuacct is not mounted here: version 2 has the time, version 1 the throttling and memory. */
static void test_hybrid(void **state)
{
    (void)state;
    begin(FIXTURES "/cgroup-hybrid", NULL);
    assert_near(raw(CPU_CGROUP), 4.5, 1e-9);
    assert_near(raw(CPU_THROTTLED), 0.75, 1e-9);
    assert_exactly(raw(MEM_CGROUP), 20971520);
    assert_exactly(raw(MEM_CGROUP_ANON), 6291456);
    assert_exactly(raw(MEM_CGROUP_FILE), 10485760);
    assert_exactly(raw(MEM_CGROUP_SHMEM), 0);
    assert_exactly(raw(MEM_CGROUP_KERNEL), 524288);
    assert_absent(raw(OOM_KILLS)); /* an old kernel */
    assert_contains(why(), "it is not accounted for");
    assert_exactly(raw(THREADS_CGROUP), 3);
    end();
}

static void test_cpuacct_goes_before_v2(void **state)
{
    (void)state;
    tree_swap(dir, "cgroup-hybrid");
    tree_write(dir, "proc/10/cgroup", "8:memory:/job\n4:cpuacct:/job\n0::/job\n");
    tree_write(dir, "proc/self/mountinfo",
               "32 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
               "33 31 0:29 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n");
    tree_write(dir, "sys/fs/cgroup/cpuacct/job/tasks", "10\n");
    tree_write(dir, "sys/fs/cgroup/cpuacct/job/cpuacct.usage", "1000000000\n");
    tree_write(dir, "sys/fs/cgroup/unified/job/cpu.stat", "usage_usec 9\nthrottled_usec 250000\n");
    tree_write(dir, "sys/fs/cgroup/unified/job/memory.current", "5\n"); /* not the controller's */
    begin(dir, NULL);
    assert_near(raw(CPU_CGROUP), 1, 1e-9);
    assert_near(raw(CPU_THROTTLED), 0.25, 1e-9);
    assert_absent(raw(MEM_CGROUP)); /* of version 1, and mounted nowhere */
    end();
}

/* As one that was made for the run, below a group with processes. */
static void test_a_group_without_controllers_is_accounted_for_above(void **state)
{
    (void)state;
    tree_swap(dir, "cgroup-v2");
    tree_write(dir, "proc/10/cgroup", "0::/user.slice/job.slice/step-1.scope/a/b\n");
    tree_write(dir, V2_JOB "/a/cgroup.procs", "");
    tree_write(dir, V2_JOB "/a/b/cgroup.procs", "10\n");
    tree_write(dir, V2_JOB "/a/b/cpu.stat", "usage_usec 4000000\n");
    begin(dir, NULL);
    assert_near(raw(CPU_CGROUP), 4, 1e-9);
    assert_near(raw(CPU_THROTTLED), 1.5, 1e-9);
    assert_exactly(raw(MEM_CGROUP), 104857600);
    end();
    tree_write(dir, "proc/10/cgroup", "0::/a\n");
    tree_write(dir, "sys/fs/cgroup/a/cgroup.procs", "10\n");
    begin(dir, NULL);
    assert_absent(raw(MEM_CGROUP));
    assert_contains(why(), "cgroup /a has no memory.current");
    end();
}

static void test_containers(void **state)
{
    (void)state;
    begin(FIXTURES "/container-v1", NULL);
    assert_near(raw(CPU_CGROUP), 3, 1e-9);
    assert_exactly(raw(CPU_THROTTLED), 0);
    assert_exactly(raw(MEM_CGROUP), 31457280);
    assert_exactly(raw(MEM_CGROUP_FILE), 3145728);
    assert_exactly(raw(OOM_KILLS), 0);
    assert_absent(raw(THREADS_CGROUP)); /* no pids controller in this container */
    end();
    begin(FIXTURES "/container-v2", NULL); /* /docker/abc is taken off the path */
    assert_near(raw(CPU_CGROUP), 2, 1e-9);
    assert_exactly(raw(MEM_CGROUP), 5242880);
    assert_exactly(raw(MEM_CGROUP_ANON), 3145728);
    assert_absent(raw(MEM_CGROUP_KERNEL)); /* before Linux 5.18; its parts are not the whole */
    assert_exactly(raw(THREADS_CGROUP), 2);
    end();
}

static void test_counters_begin_with_us(void **state)
{
    (void)state;
    begin_fixture("cgroup-v2");
    assert_exactly(m.value[METRIC_OOM_KILLS], 0);
    tree_write(dir, V2_JOB "/memory.events", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 3\n");
    tree_write(dir, V2_JOB "/cpu.stat", "usage_usec 8250000\nthrottled_usec 1600000\n");
    again(1);
    assert_exactly(m.value[METRIC_OOM_KILLS], 2);
    assert_near(m.value[METRIC_CPU_CGROUP], 1, 1e-9);
    assert_near(m.value[METRIC_CPU_THROTTLED], 0.1, 1e-9);
    end();
}

/* The mark of 200 MiB was set before we came; we have seen 100. */
static void test_the_peak_is_ours(void **state)
{
    (void)state;
    begin_fixture("cgroup-v2");
    assert_absent(raw(MEM_CGROUP_PEAK));
    assert_exactly(m.value[METRIC_MEM_CGROUP_PEAK], 104857600);
    tree_write(dir, V2_JOB "/memory.current", "115343360\n");
    again(1);
    assert_absent(raw(MEM_CGROUP_PEAK));
    assert_exactly(m.value[METRIC_MEM_CGROUP_PEAK], 115343360);
    tree_write(dir, V2_JOB "/memory.peak", "209719296\n"); /* it rose between two samples */
    again(1);
    assert_exactly(raw(MEM_CGROUP_PEAK), 209719296);
    assert_exactly(m.value[METRIC_MEM_CGROUP_PEAK], 209719296);
    end();
}

static void test_no_mark_of_the_kernel(void **state)
{
    (void)state;
    begin(FIXTURES "/container-v2", NULL);
    assert_absent(raw(MEM_CGROUP_PEAK));
    assert_exactly(m.value[METRIC_MEM_CGROUP_PEAK], 5242880);
    end();
}

static void test_the_costly_file_once_a_second(void **state)
{
    (void)state;
    begin_fixture("cgroup-v2");
    tree_write(dir, V2_JOB "/memory.stat", "anon 4096\nfile 8192\nkernel 100\nshmem 4096\n");
    tree_write(dir, V2_JOB "/memory.current", "1\n");
    again(0.5);
    assert_exactly(raw(MEM_CGROUP), 1);
    assert_exactly(raw(MEM_CGROUP_ANON), 52428800);
    assert_exactly(raw(MEM_CGROUP_FILE), 41943040 - 8388608);
    again(0.5);
    assert_exactly(raw(MEM_CGROUP_ANON), 4096);
    assert_exactly(raw(MEM_CGROUP_FILE), 4096);
    assert_exactly(raw(MEM_CGROUP_KERNEL), 100);
    tree_write(dir, V2_JOB "/memory.stat", "file 4096\nshmem 8192\n"); /* two counts, not at once */
    again(1);
    assert_exactly(raw(MEM_CGROUP_FILE), 0);
    assert_absent(raw(MEM_CGROUP_ANON));
    end();
}

/* --- what can go wrong ------------------------------------------------------------------------ */

static void test_removed(void **state)
{
    (void)state;
    begin_fixture("cgroup-v2");
    tree_delete(dir, V2_JOB);
    again(1);
    for (int id = METRIC_CPU_CGROUP; id <= METRIC_THREADS_CGROUP; id++)
        assert_absent(m.value[id]);
    assert_contains(why(), "cgroup /user.slice/job.slice/step-1.scope is gone");
    again(0.1); /* and it is not looked for all the time */
    assert_absent(raw(MEM_CGROUP));
    end();
    begin_fixture("cgroup-hybrid"); /* whatever was absent before */
    assert_non_null(why());
    tree_delete(dir, "sys/fs/cgroup/memory/job");
    again(1);
    assert_contains(why(), "cgroup /job is gone");
    assert_near(raw(CPU_CGROUP), 4.5, 1e-9); /* the other hierarchies have theirs */
    end();
}

/* The process was put into another group, and its old one removed: counters go on. */
static void test_moved(void **state)
{
    (void)state;
    begin_fixture("cgroup-v2");
    tree_write(dir, V2_JOB "/cpu.stat", "usage_usec 9250000\n");
    again(1);
    assert_near(m.value[METRIC_CPU_CGROUP], 2, 1e-9);
    tree_delete(dir, V2_JOB);
    tree_write(dir, "proc/10/cgroup", "0::/other\n");
    tree_write(dir, "sys/fs/cgroup/other/cgroup.procs", "10\n");
    tree_write(dir, "sys/fs/cgroup/other/cpu.stat", "usage_usec 500000000\n");
    tree_write(dir, "sys/fs/cgroup/other/memory.current", "7\n");
    again(1);
    assert_exactly(raw(MEM_CGROUP), 7);
    assert_near(m.value[METRIC_CPU_CGROUP], 2, 1e-9);
    tree_write(dir, "sys/fs/cgroup/other/cpu.stat", "usage_usec 500500000\n");
    again(1);
    assert_near(m.value[METRIC_CPU_CGROUP], 2.5, 1e-9);
    end();
}

static void test_the_root_group(void **state)
{
    (void)state;
    tree_swap(dir, "cgroup-v2");
    tree_write(dir, "proc/10/cgroup", "0::/\n");
    begin(dir, NULL);
    /* What the root has is the machine's. */
    assert_absent(raw(CPU_CGROUP));
    assert_absent(raw(MEM_CGROUP));
    assert_contains(why(), "the job is in the root cgroup, for which the kernel keeps no account "
                           "of memory");
    end();
    /* In a namespace the path is the same, but it is somebody's group. */
    tree_write(dir, "sys/fs/cgroup/cgroup.type", "domain\n");
    begin(dir, NULL);
    assert_near(raw(CPU_CGROUP), 99, 1e-9);
    end();
    /* Who asks for the root gets it. */
    tree_delete(dir, "sys/fs/cgroup/cgroup.type");
    begin(dir, "/");
    assert_near(raw(CPU_CGROUP), 99, 1e-9);
    end();
}

static void test_no_controller(void **state)
{
    (void)state;
    tree_swap(dir, "cgroup-v2");
    tree_write(dir, "proc/10/cgroup", "0::/user.slice\n");
    begin(dir, NULL);
    assert_absent(raw(MEM_CGROUP));
    assert_contains(why(), "cgroup /user.slice has no memory.current");
    end();
}

static void test_nothing_to_watch(void **state)
{
    (void)state;
    tree_swap(dir, "cgroup-v2");
    begin(dir, NULL);
    end();
    begin(dir, "/nowhere");
    assert_contains(why(), "there is no cgroup /nowhere");
    end();
    tree_delete(dir, "proc/10");
    begin(dir, NULL);
    assert_contains(why(), "process 10");
    m.of = 0;
    m.reason[MACHINE_cgroup][0] = '\0';
    again(1);
    assert_contains(why(), "no cgroup is watched");
    end();
}

static int read_only_child(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount(dir, dir, NULL, MS_BIND, NULL) < 0 ||
        mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0)
        return 2;
    begin(dir, NULL);
    bool good = raw(MEM_CGROUP) == 104857600 && raw(MEM_CGROUP_ANON) == 52428800;
    end();
    return good ? 0 : 1;
}

static void test_read_only(void **state)
{
    (void)state;
    int status;
    tree_swap(dir, "cgroup-v2");
    pid_t pid = fork();
    if (pid == 0)
        _exit(read_only_child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip(); /* mounts of one's own are not allowed here */
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_damaged_values(void **state)
{
    (void)state;
    static const char *const broken[] = {"",         "\n",     "max\n",   "-1\n",
                                         "\xff\xfe", "memory", "oom_kill"};
    begin_fixture("cgroup-v2");
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        tree_write(dir, V2_JOB "/memory.current", broken[i]);
        tree_write(dir, V2_JOB "/memory.events", broken[i]);
        tree_write(dir, V2_JOB "/memory.stat", broken[i]);
        again(1);
        assert_absent(raw(MEM_CGROUP));
        assert_absent(raw(OOM_KILLS));
        assert_absent(raw(MEM_CGROUP_FILE));
    }
    end();
}

/* --- paths ------------------------------------------------------------------------------------ */

static void check_named(const char *root, const char *name, const char *controller,
                        const char *want)
{
    char got[CGROUP_DIR] = "";
    struct proctor_error err;
    assert_int_equal(pr_host_open(&host, root, &err), 0);
    bool found = pr_cgroup_named(&host, name, controller, got, sizeof got);
    pr_host_close(&host);
    if (want)
        assert_string_equal(got, want);
    assert_int_equal(found, want != NULL);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *fixture, *name, *controller, *want;
    } cases[] = {
        {"cgroup-v2", "/user.slice/job.slice", "", "sys/fs/cgroup/user.slice/job.slice"},
        {"cgroup-v2", "user.slice/job.slice", "", "sys/fs/cgroup/user.slice/job.slice"},
        {"cgroup-v2", "//user.slice///job.slice/", "", "sys/fs/cgroup/user.slice/job.slice"},
        {"cgroup-v2", "/sys/fs/cgroup/user.slice", "", "sys/fs/cgroup/user.slice"},
        {"cgroup-v2", "/sys/fs/cgroup/user.slice/", NULL, "sys/fs/cgroup/user.slice"},
        {"cgroup-v2", "/sys/fs/cgroup", "", "sys/fs/cgroup"},
        {"cgroup-v2", "/", "", "sys/fs/cgroup"},
        {"cgroup-v2", "/user.slice", "memory", NULL},
        {"cgroup-v2", "/user.slice/none", "", NULL},
        {"cgroup-v2", "/user.slice/../user.slice", "", NULL},
        {"cgroup-v2", "", "", NULL},
        {"cgroup-v2", "/sys/fs/cgroupx", "", NULL},
        {"cgroup-v1", "/sys/fs/cgroup/memory/outer/job", "memory", V1_MEMORY},
        {"cgroup-v1", "/sys/fs/cgroup/memory/outer/job", "cpu", V1_CPU},
        {"cgroup-v1", "/sys/fs/cgroup/memory/outer/job", NULL, V1_MEMORY},
        {"cgroup-v1", "/sys/fs/cgroup/memory/outer/job", "pids", NULL}, /* not there */
        {"cgroup-v1", "/sys/fs/cgroup/memory/outer/job", "", NULL},
        {"cgroup-v1", "outer/job", "cpuacct", V1_CPU},
        {"cgroup-v1", "/outer", NULL, "sys/fs/cgroup/cpu,cpuacct/outer"},
        {"cgroup-hybrid", "/job", NULL, "sys/fs/cgroup/unified/job"}, /* version 2 first */
        {"cgroup-hybrid", "/sys/fs/cgroup/cpu/job", NULL, "sys/fs/cgroup/cpu/job"},
        {"cgroup-hybrid", "/sys/fs/cgroup/cpu/job", "", "sys/fs/cgroup/unified/job"},
        {"cgroup-hybrid", "/sys/fs/cgroup/job", NULL, NULL}, /* no hierarchy is mounted there */
        {"container-v2", "/docker/abc/worker", "", "sys/fs/cgroup/worker"},
        {"container-v2", "/sys/fs/cgroup/worker", "", "sys/fs/cgroup/worker"},
        {"container-v2", "/docker/abcdef", "", NULL},
        {"container-v1", "/sys/fs/cgroup/memory", "cpu", "sys/fs/cgroup/cpu,cpuacct"},
    };
    char root[TREE_PATH];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(root, sizeof root, FIXTURES "/%s", cases[i].fixture);
        check_named(root, cases[i].name, cases[i].controller, cases[i].want);
    }
}

/* "cpu" is a link to "cpu,cpuacct" on most machines with version 1. */
static void test_a_name_through_a_link(void **state)
{
    (void)state;
    char path[TREE_PATH + 32];
    tree_swap(dir, "cgroup-v1");
    snprintf(path, sizeof path, "%s/sys/fs/cgroup/cpu", dir);
    assert_int_equal(symlink("cpu,cpuacct", path), 0);
    check_named(dir, "/sys/fs/cgroup/cpu/outer/job", "cpu", V1_CPU);
    check_named(dir, "/sys/fs/cgroup/cpu/outer/job", "memory", V1_MEMORY);
}

static void test_values_of_a_named_group(void **state)
{
    (void)state;
    begin(FIXTURES "/cgroup-v1", "/sys/fs/cgroup/memory/outer/job");
    assert_exactly(raw(MEM_CGROUP), 73400320);
    assert_near(raw(CPU_CGROUP), 12.345678901, 1e-9);
    end();
    begin(FIXTURES "/cgroup-v2", "user.slice/job.slice/step-1.scope");
    assert_exactly(raw(MEM_CGROUP), 104857600);
    end();
}

static void test_outside_of_what_is_seen(void **state)
{
    (void)state;
    char got[CGROUP_DIR];
    struct proctor_error err;
    tree_swap(dir, "cgroup-v2");
    tree_write(dir, "proc/10/cgroup", "0::/../user.slice\n"); /* beside our cgroup namespace */
    assert_int_equal(pr_host_open(&host, dir, &err), 0);
    assert_false(pr_cgroup_dir(&host, 10, "", got, sizeof got));
    /* The same mount seen from a namespace that it reaches above of. */
    tree_write(dir, "proc/1/mountinfo",
               "31 23 0:28 /.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
    assert_true(pr_cgroup_dir(&host, 10, "", got, sizeof got));
    assert_string_equal(got, "sys/fs/cgroup/user.slice");
    assert_false(pr_cgroup_dir(&host, 10, "", got, 8)); /* no room */
    pr_host_close(&host);
}

static void test_the_mount_that_has_it(void **state)
{
    (void)state;
    char got[CGROUP_DIR];
    struct proctor_error err;
    tree_swap(dir, "cgroup-v2");
    tree_write(dir, "proc/1/mountinfo",
               "30 23 0:28 / /gone rw - cgroup2 cgroup2 rw\n"
               "31 23 0:28 /elsewhere /other rw - cgroup2 cgroup2 rw\n"
               "32 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    assert_int_equal(pr_host_open(&host, dir, &err), 0);
    assert_true(pr_cgroup_dir(&host, 10, "", got, sizeof got));
    assert_string_equal(got, V2_JOB);
    pr_host_close(&host);
}

/* --- parsers ---------------------------------------------------------------------------------- */

static void test_escapes(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"/a\\040b", "/a b"},   {"/a\\134", "/a\\"},    {"/a\\04", "/a\\04"},   {"/a\\", "/a\\"},
        {"/a\\089", "/a\\089"}, {"/a\\400", "/a\\400"}, {"\\011\\012", "\t\n"}, {"", ""}};
    char got[64];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_true(
            pr_mount_unescape(pr_scan_of(cases[i].in, strlen(cases[i].in)), got, sizeof got));
        assert_string_equal(got, cases[i].out);
    }
    assert_false(pr_mount_unescape(pr_scan_of("/abc", 4), got, 4));
}

/* Every beginning of a good text, and the text with any byte of it damaged: nothing but the end of
 * the text ends them. */
static void torture(const char *good, void (*parse)(const char *, size_t))
{
    size_t len = strlen(good);
    for (size_t i = 0; i <= len; i++) {
        char *copy = malloc(i ? i : 1); /* so that a sanitizer sees its end */
        memcpy(copy, good, i);
        parse(copy, i);
        for (size_t k = 0; k < i; k += 3) {
            copy[k] = (char)(k % 2 ? 0xff : '\\');
            parse(copy, i);
            copy[k] = good[k];
        }
        free(copy);
    }
}

static void parse_mounts(const char *in, size_t len)
{
    struct pr_scan s = pr_scan_of(in, len);
    struct pr_mount mount;
    char out[64];
    while (pr_mount_next(&s, &mount)) {
        pr_mount_unescape(mount.point, out, sizeof out);
        pr_mount_unescape(mount.root, out, 3);
        assert_true(mount.options.end <= in + len);
    }
}

static void parse_groups(const char *in, size_t len)
{
    char out[16];
    pr_cgroup_path_of(in, len, "", out, sizeof out);
    pr_cgroup_path_of(in, len, "cpuacct", out, sizeof out);
}

static void parse_files(const char *in, size_t len)
{
    double value[METRIC_COUNT];
    for (size_t i = 0; i < CGROUP_FILES; i++)
        pr_cgroup_parse(&pr_cgroup_files[i], in, len, value);
}

static void test_any_bytes(void **state)
{
    (void)state;
    torture("31 23 0:28 /a\\040 /sys/fs/cg\\134 rw shared:4 - cgroup2 cgroup2 rw,ns\n1 2 3:4 / / - "
            "x\n",
            parse_mounts);
    torture("4:cpu,cpuacct:/outer/job\n3:name=systemd:/a:b\n0::/x y\n", parse_groups);
    torture("usage_usec 12\nthrottled_usec 99999999999999999999\noom_kill 1\nanon 5\n",
            parse_files);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_v2),
        TEST(test_v1),
        TEST(test_the_rest_only_where_it_is_wanted),
        TEST(test_hybrid),
        TEST(test_cpuacct_goes_before_v2),
        TEST(test_a_group_without_controllers_is_accounted_for_above),
        TEST(test_containers),
        TEST(test_counters_begin_with_us),
        TEST(test_the_peak_is_ours),
        TEST(test_no_mark_of_the_kernel),
        TEST(test_the_costly_file_once_a_second),
        TEST(test_removed),
        TEST(test_moved),
        TEST(test_the_root_group),
        TEST(test_no_controller),
        TEST(test_nothing_to_watch),
        TEST(test_read_only),
        TEST(test_damaged_values),
        TEST(test_names),
        TEST(test_a_name_through_a_link),
        TEST(test_values_of_a_named_group),
        TEST(test_outside_of_what_is_seen),
        TEST(test_the_mount_that_has_it),
        TEST(test_escapes),
        TEST(test_any_bytes),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
