/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs of DRM drivers: sysfs, hwmon and fdinfo of a tree, read by the reader without its thread. */
#include "tree.h"
#include "gpu/drm.h"
#include "gpu/reader.h"
#include "util/clock.h"

static char dir[TREE_PATH];
static struct pr_host host;
static struct pr_gpu_reader *reader;
static pid_t members[600];
static int64_t now;

int64_t __wrap_pr_clock_boot(void);
int64_t __wrap_pr_clock_boot(void)
{
    return now;
}

static void link_to(const char *name, const char *target)
{
    char path[TREE_PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    tree_make_dirs(path);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

static int setup(void **state)
{
    (void)state;
    struct proctor_error err;
    tree_new(dir);
    tree_swap(dir, "gpu-drm");
    link_to("proc/100/fd/5", "/dev/dri/renderD128");
    link_to("proc/100/fd/6", "/dev/dri/renderD128");
    link_to("proc/100/fd/7", "/dev/null");
    link_to("proc/101/fd/5", "/dev/dri/renderD128");
    link_to("proc/101/fd/7", "/dev/dri/renderD129");
    link_to("proc/102/fd/1", "/dev/null");
    now = 1000 * NS_PER_S;
    members[0] = 100;
    members[1] = 101;
    members[2] = 102;
    reader = calloc(1, sizeof *reader);
    return !reader || pr_host_open(&host, dir, &err) < 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_gpu_reader_close(reader);
    free(reader);
    pr_host_close(&host);
    tree_done(dir);
    return 0;
}

static void open_reader(size_t count)
{
    pr_gpu_reader_open(reader, &host, members, 100);
    reader->work.member_count = count;
}

static void read_after(double seconds)
{
    now += (int64_t)(seconds * 1e9);
    pr_gpu_reader_read(reader, false);
}

static double of(size_t card, enum pr_metric_id id)
{
    return reader->round.card[card].value[pr_device_slot(DEVICE_GPU, id)];
}

static const char *why(size_t card, enum pr_metric_id id)
{
    return reader->round.card[card].reason[pr_device_slot(DEVICE_GPU, id)];
}

static const struct pr_gpu_use *use(pid_t pid, unsigned card)
{
    for (size_t i = 0; i < reader->round.use_count; i++)
        if (reader->round.use[i].pid == pid && reader->round.use[i].card == card)
            return &reader->round.use[i];
    return NULL;
}

/* --- devices ---------------------------------------------------------------------------------- */

static void test_what_is_a_gpu(void **state)
{
    (void)state;
    char text[200];
    assert_true(pr_gpu_expected(&host, text, sizeof text));
    open_reader(0);
    assert_int_equal(reader->round.card_count, 2);
    const struct pr_gpu_card *amd = &reader->round.card[0], *intel = &reader->round.card[1];
    if (strcmp(amd->name, "card0") != 0) { /* in the order of the directory */
        const struct pr_gpu_card *other = amd;
        amd = intel;
        intel = other;
    }
    assert_string_equal(amd->name, "card0");
    assert_string_equal(amd->model, "AMD INSTINCT MI210 (MCM) OAM AC MBA");
    assert_string_equal(amd->uuid, "2d0c5f1e9a3b4c71");
    assert_string_equal(intel->name, "card1");
    assert_string_equal(intel->model, "i915 8086:56C0");
    assert_string_equal(intel->uuid, "0000:4d:00.0");
}

static unsigned amd(void)
{
    return strcmp(reader->round.card[0].name, "card0") == 0 ? 0 : 1;
}

static void test_amdgpu(void **state)
{
    (void)state;
    open_reader(0);
    read_after(1);
    unsigned a = amd();
    assert_near(of(a, METRIC_GPU_UTIL), 0.37, 1e-9);
    assert_near(of(a, METRIC_GPU_MEM_UTIL), 0.12, 1e-9);
    assert_exactly(of(a, METRIC_GPU_MEM_USED), 1234567168);
    assert_exactly(of(a, METRIC_GPU_MEM_TOTAL), 68702699520);
    assert_near(of(a, METRIC_GPU_POWER), 43, 1e-9);
    assert_near(of(a, METRIC_GPU_POWER_LIMIT), 750, 1e-9);
    assert_near(of(a, METRIC_GPU_TEMP), 41, 1e-9);
    assert_exactly(of(a, METRIC_GPU_CLOCK_SM), 800e6); /* the step that is marked */
    assert_exactly(of(a, METRIC_GPU_CLOCK_MEM), 1600e6);
    assert_absent(of(a, METRIC_GPU_UTIL_MAX));
    assert_non_null(why(a, METRIC_GPU_UTIL_MAX));
    /* No counter: power over time. */
    assert_false(reader->round.card[a].sure_energy);
    assert_exactly(of(a, METRIC_GPU_ENERGY), 0);
    tree_write(dir, "sys/class/drm/card0/device/hwmon/hwmon4/power1_average", "57000000\n");
    tree_write(dir, "sys/class/drm/card0/device/gpu_busy_percent", "100\n");
    read_after(2);
    assert_near(of(a, METRIC_GPU_ENERGY), 100, 1e-6);
    assert_near(of(a, METRIC_GPU_UTIL), 1, 1e-9);
}

static void test_i915(void **state)
{
    (void)state;
    open_reader(0);
    read_after(1);
    unsigned i = 1 - amd();
    assert_exactly(of(i, METRIC_GPU_CLOCK_SM), 1950e6);
    assert_near(of(i, METRIC_GPU_ENERGY), 5000, 1e-9);
    assert_true(reader->round.card[i].sure_energy);
    assert_absent(of(i, METRIC_GPU_UTIL));
    assert_contains(why(i, METRIC_GPU_UTIL), "has no file");
    assert_absent(of(i, METRIC_GPU_MEM_USED));
    assert_absent(of(i, METRIC_GPU_POWER_LIMIT));
}

static void test_a_sleeping_device_is_not_woken(void **state)
{
    (void)state;
    tree_write(dir, "sys/class/drm/card0/device/power/runtime_status", "suspended\n");
    open_reader(0);
    read_after(1);
    unsigned a = amd();
    assert_absent(of(a, METRIC_GPU_UTIL));
    assert_contains(why(a, METRIC_GPU_UTIL), "sleeps");
    assert_exactly(of(1 - a, METRIC_GPU_CLOCK_SM), 1950e6);
    tree_write(dir, "sys/class/drm/card0/device/power/runtime_status", "active\n");
    read_after(1);
    assert_near(of(a, METRIC_GPU_UTIL), 0.37, 1e-9);
    assert_null(why(a, METRIC_GPU_UTIL));
}

static void test_one_reading_that_fails_takes_no_other_with_it(void **state)
{
    (void)state;
    tree_delete(dir, "sys/class/drm/card0/device/gpu_busy_percent");
    tree_write(dir, "sys/class/drm/card0/device/mem_info_vram_used", "what?\n");
    open_reader(0);
    read_after(1);
    assert_absent(of(amd(), METRIC_GPU_UTIL));
    assert_near(of(amd(), METRIC_GPU_MEM_UTIL), 0.12, 1e-9);
    assert_absent(of(amd(), METRIC_GPU_MEM_USED));
    assert_exactly(of(amd(), METRIC_GPU_MEM_TOTAL), 68702699520);
}

static void test_a_device_that_goes(void **state)
{
    (void)state;
    open_reader(0);
    read_after(1);
    unsigned a = amd();
    tree_delete(dir, "sys/class/drm/card0");
    read_after(1);
    assert_true(reader->round.card[a].lost);
    assert_false(reader->round.card[1 - a].lost);
    assert_absent(of(a, METRIC_GPU_POWER));
    assert_int_equal(reader->work.note_count, 1);
    assert_contains(reader->work.note[0].text, "card0 (AMD INSTINCT");
    read_after(1);
    assert_int_equal(reader->work.note_count, 1); /* said once */
}

/* --- who uses them ---------------------------------------------------------------------------- */

/* What process 100 and 101 hold together: one client, 768 MiB. */
static void test_a_client_counts_once(void **state)
{
    (void)state;
    open_reader(3);
    read_after(1);
    unsigned a = amd();
    assert_true(reader->round.memory_known);
    assert_false(reader->round.usage_known); /* there is nothing to compare with */
    assert_exactly(use(100, a)->memory, 786432 * 1024.0);
    assert_true(!use(101, a) || isnan(use(101, a)->memory));
    assert_exactly(use(101, 1 - a)->memory, 32 * 1048576.0); /* its own memory alone */
    assert_null(use(102, a));
}

static void set_engines(const char *name, const char *engines)
{
    char text[512];
    snprintf(text, sizeof text,
             "drm-driver:\tamdgpu\ndrm-client-id:\t42\ndrm-pdev:\t0000:03:00.0\n"
             "drm-memory-vram:\t100 KiB\n%s",
             engines);
    tree_write(dir, name, text);
}

static void set_client(const char *engines)
{
    set_engines("proc/100/fdinfo/5", engines);
    set_engines("proc/100/fdinfo/6", engines);
    set_engines("proc/101/fdinfo/5", engines);
}

static void test_use_is_the_busiest_engine(void **state)
{
    (void)state;
    set_client("drm-engine-gfx:\t1000000000 ns\ndrm-engine-compute:\t5000000000 ns\n");
    open_reader(3);
    read_after(1);
    set_client("drm-engine-gfx:\t1200000000 ns\ndrm-engine-compute:\t6000000000 ns\n");
    read_after(2);
    assert_true(reader->round.usage_known);
    assert_near(use(100, amd())->usage, 0.5, 1e-6);
    assert_exactly(use(100, amd())->memory, 102400);
    /* A value may fall for a while, and is then as large as before. */
    set_client("drm-engine-gfx:\t1100000000 ns\ndrm-engine-compute:\t5500000000 ns\n");
    read_after(1);
    assert_exactly(use(100, amd())->usage, 0);
    set_client("drm-engine-gfx:\t1100000000 ns\ndrm-engine-compute:\t6100000000 ns\n");
    read_after(1);
    assert_near(use(100, amd())->usage, 0.1, 1e-6);
}

static void test_use_in_cycles(void **state)
{
    (void)state;
    set_client(
        "drm-cycles-ccs:\t1000\ndrm-total-cycles-ccs:\t10000\ndrm-engine-capacity-ccs:\t2\n");
    open_reader(3);
    read_after(1);
    set_client(
        "drm-cycles-ccs:\t5000\ndrm-total-cycles-ccs:\t20000\ndrm-engine-capacity-ccs:\t2\n");
    read_after(1);
    assert_near(use(100, amd())->usage, 0.2, 1e-9);
}

static void test_what_a_driver_does_not_tell_is_not_0(void **state)
{
    (void)state;
    tree_write(dir, "proc/101/fdinfo/7", "pos:\t0\nflags:\t02100002\n"); /* an old kernel */
    open_reader(3);
    read_after(1);
    read_after(1);
    assert_false(reader->round.memory_known);
    assert_false(reader->round.usage_known);
    assert_non_null(reader->round.no_memory);
    assert_non_null(reader->round.no_usage);
}

static void test_compute_without_a_client(void **state)
{
    (void)state;
    link_to("proc/102/fd/9", "/dev/kfd");
    open_reader(3);
    read_after(1);
    read_after(1);
    assert_true(reader->round.memory_known);
    assert_false(reader->round.usage_known);
    assert_contains(reader->round.no_usage, "/dev/kfd");
}

static void test_a_process_that_opens_it_later(void **state)
{
    (void)state;
    reader->work.member_count = 0;
    open_reader(3);
    read_after(1);
    tree_write(dir, "proc/102/fdinfo/8",
               "drm-driver:\ti915\ndrm-client-id:\t9\ndrm-pdev:\t0000:4d:00.0\n"
               "drm-resident-local0:\t5 MiB\ndrm-engine-render:\t0 ns\n");
    link_to("proc/102/fd/8", "/dev/dri/card1");
    read_after(5);
    assert_exactly(use(102, 1 - amd())->memory, 5 * 1048576.0);
    /* And goes. */
    tree_delete(dir, "proc/102");
    read_after(1);
    assert_null(use(102, 1 - amd()));
}

/* --- more than there is room for -------------------------------------------------------------- */

/* Many are dear: here, that is no reason not to look at them. */
static void open_freely(size_t count)
{
    open_reader(count);
    reader->budget = 1e6;
}

static void assert_nothing_known(void)
{
    read_after(1);
    read_after(1);
    assert_false(reader->round.memory_known);
    assert_false(reader->round.usage_known);
    assert_non_null(reader->round.no_memory);
    assert_non_null(reader->round.no_usage);
}

static void add_client(pid_t pid, int fd, unsigned id, const char *rest)
{
    char name[64], text[256];
    snprintf(name, sizeof name, "proc/%d/fdinfo/%d", (int)pid, fd);
    snprintf(text, sizeof text,
             "drm-client-id:\t%u\n%s\ndrm-memory-vram:\t1 KiB\ndrm-engine-gfx:\t1 ns\n", id, rest);
    tree_write(dir, name, text);
    snprintf(name, sizeof name, "proc/%d/fd/%d", (int)pid, fd);
    link_to(name, "/dev/dri/renderD128");
}

#define AMD   "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0"
#define INTEL "drm-driver:\ti915\ndrm-pdev:\t0000:4d:00.0"

/* They hold nothing at all, which is known of as many as can be looked at. */
static void test_many_members(void **state)
{
    (void)state;
    for (size_t i = 0; i <= DRM_HOLDERS; i++)
        members[i] = (pid_t)(1000 + i);
    open_freely(DRM_HOLDERS);
    read_after(1);
    read_after(1);
    assert_true(reader->round.memory_known && reader->round.usage_known);
    reader->work.member_count++;
    assert_nothing_known();
}

static void test_members_of_whom_nobody_was_told(void **state)
{
    (void)state;
    open_freely(3);
    reader->work.members_cut = true;
    assert_nothing_known();
}

static void test_many_files_of_a_process(void **state)
{
    (void)state;
    for (int i = 0; i < DRM_FILES; i++)
        add_client(102, 10 + i, 7, AMD);
    open_freely(3);
    read_after(1);
    read_after(1);
    assert_true(reader->round.memory_known && reader->round.usage_known);
    add_client(102, 10 + DRM_FILES, 7, AMD);
    assert_nothing_known();
}

static void test_many_clients(void **state)
{
    (void)state;
    size_t count = DRM_CLIENTS / DRM_FILES + 1;
    for (size_t i = 0; i < count; i++) {
        members[i] = (pid_t)(1000 + i);
        for (int k = 0; k < DRM_FILES; k++)
            add_client(members[i], 10 + k, (unsigned)(i * DRM_FILES) + (unsigned)k, AMD);
    }
    open_freely(count - 1);
    read_after(1);
    read_after(1);
    assert_true(reader->round.memory_known && reader->round.usage_known);
    reader->work.member_count++;
    assert_nothing_known();
}

/* Two clients that all of them share: what is too many are the pairs of process and device. */
static void test_many_uses(void **state)
{
    (void)state;
    size_t count = GPU_USES / 2 + 1;
    for (size_t i = 0; i < count; i++) {
        members[i] = (pid_t)(1000 + i);
        add_client(members[i], 10, 1, AMD);
        add_client(members[i], 11, 2, INTEL);
    }
    open_freely(count - 1);
    read_after(1);
    read_after(1);
    assert_true(reader->round.memory_known && reader->round.usage_known);
    reader->work.member_count++;
    assert_nothing_known();
}

/* --- fdinfo ----------------------------------------------------------------------------------- */

static void test_fdinfo(void **state)
{
    (void)state;
    struct pr_drm_client c;
    static const char text[] = "drm-driver: msm\ndrm-client-id:\t18446744073709551615\n"
                               "drm-maxfreq-gpu:\t800000000 Hz\ndrm-engine-gpu:  77 ns\n"
                               "drm-total-memory: 3 GiB\ndrm-resident-memory: 7\ndrm-total-: 9\n"
                               "drm-engine-: 5 ns\nno line\n:\n";
    assert_true(pr_drm_parse(text, sizeof text - 1, &c));
    assert_string_equal(c.driver, "msm");
    assert_string_equal(c.slot, "");
    assert_true(c.has_id && c.id == UINT64_MAX);
    assert_int_equal(c.engine_count, 1);
    assert_exactly(c.engine[0].ns, 77);
    assert_exactly(pr_drm_memory(&c), 7); /* resident comes before total */
    assert_false(pr_drm_parse("pos: 0\n", 7, &c));
    assert_absent(pr_drm_memory(&c));
    assert_false(pr_drm_parse("", 0, &c));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_a_gpu),
        TEST(test_amdgpu),
        TEST(test_i915),
        TEST(test_a_sleeping_device_is_not_woken),
        TEST(test_one_reading_that_fails_takes_no_other_with_it),
        TEST(test_a_device_that_goes),
        TEST(test_a_client_counts_once),
        TEST(test_use_is_the_busiest_engine),
        TEST(test_use_in_cycles),
        TEST(test_what_a_driver_does_not_tell_is_not_0),
        TEST(test_compute_without_a_client),
        TEST(test_a_process_that_opens_it_later),
        TEST(test_many_members),
        TEST(test_members_of_whom_nobody_was_told),
        TEST(test_many_files_of_a_process),
        TEST(test_many_clients),
        TEST(test_many_uses),
        TEST(test_fdinfo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
