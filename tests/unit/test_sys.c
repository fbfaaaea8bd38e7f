/* SPDX-License-Identifier: Apache-2.0 */
/* Each source of the machine on trees that have what is awkward about it. */
#include "tree.h"
#include "core/machine.h"
#include "core/loadavg.h"
#include "source/parse.h"
#include "util/clock.h"
#include "util/fs.h"

static char dir[TREE_PATH], text[65536];
static struct pr_host host;
static struct pr_machine m;
static int listings, processes_listed; /* of sysfs directories, and of /proc */
static int read_error;

int __real_pr_fs_list(int dirfd, const char *path, char *room, size_t size,
                      bool (*each)(void *of, const char *name), void *of);
int __wrap_pr_fs_list(int dirfd, const char *path, char *room, size_t size,
                      bool (*each)(void *of, const char *name), void *of);
ssize_t __real_pr_fs_pread(int fd, char *data, size_t size);
ssize_t __wrap_pr_fs_pread(int fd, char *data, size_t size);

int __wrap_pr_fs_list(int dirfd, const char *path, char *room, size_t size,
                      bool (*each)(void *of, const char *name), void *of)
{
    ++*(strcmp(path, ".") == 0 ? &processes_listed : &listings);
    return __real_pr_fs_list(dirfd, path, room, size, each, of);
}

ssize_t __wrap_pr_fs_pread(int fd, char *data, size_t size)
{
    return read_error ? read_error : __real_pr_fs_pread(fd, data, size);
}

static int setup(void **state)
{
    (void)state;
    struct proctor_error err;
    tree_new(dir);
    assert_int_equal(pr_host_open(&host, dir, &err), 0);
    pr_machine_init(&m, &host, ~0u);
    listings = processes_listed = read_error = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
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

/* The device in this reading, or NULL. */
static const struct pr_device_state *device(enum pr_device_kind kind, const char *name)
{
    for (size_t i = 0; i < m.devices.count; i++) {
        const struct pr_device_state *d = &m.devices.items[i];
        if (d->present && d->out.kind == kind && strcmp(d->out.name, name) == 0)
            return d;
    }
    return NULL;
}

static double value(enum pr_device_kind kind, const char *name, enum pr_metric_id id)
{
    const struct pr_device_state *d = device(kind, name);
    if (!d)
        fail_msg("there is no %s %s", pr_device_kind_name(kind), name);
    return d->out.value[pr_device_slot(kind, id)];
}

static size_t count_of(enum pr_device_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < m.devices.count; i++)
        count += m.devices.items[i].present && m.devices.items[i].out.kind == kind;
    return count;
}

/* Those in the machine's sum, in the order of the file: "sda sdb". */
static const char *counted(enum pr_device_kind kind)
{
    static char names[512];
    size_t len = 0;
    names[0] = '\0';
    for (size_t i = 0; i < m.devices.count; i++) {
        const struct pr_device_state *d = &m.devices.items[i];
        if (d->present && d->out.kind == kind && d->out.counted)
            len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", len ? " " : "",
                                    d->out.name);
    }
    return names;
}

/* --- /proc/stat ------------------------------------------------------------------------------- */

/* Values in ticks; the machine and one core alike. */
static void cpu_line(const char *fields)
{
    char lines[512];
    snprintf(lines, sizeof lines, "cpu  %s\ncpu0 %s\nintr 5\n", fields, fields);
    tree_write(dir, "proc/stat", lines);
}

static double ticks(enum pr_metric_id id)
{
    assert_near(m.value[id], value(DEVICE_CORE, "0", id), 1e-9);
    return m.value[id] * (double)host.ticks_per_second;
}

/* Guest time is in user, and guest_nice in nice: it is shown besides, and added to nothing. */
static void test_stat(void **state)
{
    (void)state;
    cpu_line("0 0 0 0 0 0 0 0 0 0");
    read_at(1);
    cpu_line("1000 200 300 4000 50 60 70 80 90 10");
    read_at(2);
    assert_near(ticks(METRIC_SYSTEM_CPU_USER), 1200, 1e-6);
    assert_near(ticks(METRIC_SYSTEM_CPU_NICE), 200, 1e-6);
    assert_near(ticks(METRIC_SYSTEM_CPU_GUEST), 100, 1e-6);
    assert_near(ticks(METRIC_SYSTEM_CPU_SYSTEM), 430, 1e-6);
    assert_near(ticks(METRIC_SYSTEM_CPU_IRQ), 60, 1e-6);
    assert_near(ticks(METRIC_SYSTEM_CPU_SOFTIRQ), 70, 1e-6);
    assert_near(ticks(METRIC_SYSTEM_CPU_IDLE), 4000, 1e-6);
    assert_near(ticks(METRIC_SYSTEM_CPU_IOWAIT), 50, 1e-6);
    assert_near(ticks(METRIC_SYSTEM_CPU_STEAL), 80, 1e-6);
    assert_near(ticks(METRIC_SYSTEM_CPU_TIME), 1630, 1e-6);
    assert_near(ticks(METRIC_SYSTEM_CPU_USAGE), 1630, 1e-6);
}

static void test_stat_of_old_kernels(void **state)
{
    (void)state;
    cpu_line("1 1 1 1 1 1 1"); /* 2.6.0: no steal yet */
    read_at(1);
    cpu_line("2 3 4 5 6 7 8");
    read_at(2);
    assert_near(ticks(METRIC_SYSTEM_CPU_TIME), 1 + 2 + 3 + 6 + 7, 1e-6);
    assert_absent(m.value[METRIC_SYSTEM_CPU_STEAL]);
    assert_absent(m.value[METRIC_SYSTEM_CPU_GUEST]);
    cpu_line("3 3 4 5"); /* 2.4 */
    read_at(3);
    assert_near(ticks(METRIC_SYSTEM_CPU_USER), 4, 1e-6);
    assert_absent(m.value[METRIC_SYSTEM_CPU_TIME]);
    assert_absent(m.value[METRIC_SYSTEM_CPU_IRQ]);
}

static void test_stat_of_64_cores(void **state)
{
    (void)state;
    double tick = 1.0 / (double)host.ticks_per_second;
    tree_write(dir, "proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\n");
    read_at(1);
    tree_swap(dir, "cpus-64");
    read_at(2);
    assert_int_equal(count_of(DEVICE_CORE), 64);
    assert_exactly(value(DEVICE_CORE, "63", METRIC_SYSTEM_CPU_USER), 0); /* its first reading */
    /* user 1000+n, nice n, system 500+2n, idle 90000-n, iowait 10+n, irq n, softirq 3n */
    assert_near(m.value[METRIC_SYSTEM_CPU_USER], (64000 + 2 * 2016) * tick, 1e-6);
    assert_near(m.value[METRIC_SYSTEM_CPU_SYSTEM], (32000 + 6 * 2016) * tick, 1e-6);
    assert_near(m.value[METRIC_SYSTEM_CPU_TIME], (96000 + 8 * 2016) * tick, 1e-6);
    assert_near(m.value[METRIC_SYSTEM_CPU_IDLE], (64 * 90000 - 2016) * tick, 1e-6);
    assert_near(m.value[METRIC_SYSTEM_CPU_IOWAIT], (640 + 2016) * tick, 1e-6);
    assert_near(m.value[METRIC_SYSTEM_CPU_GUEST], 32 * tick, 1e-6);
}

static void test_each_of_64_cores(void **state)
{
    (void)state;
    double tick = 1.0 / (double)host.ticks_per_second;
    char lines[8192], name[8];
    size_t len = (size_t)snprintf(lines, sizeof lines, "cpu  0 0 0 0 0 0 0 0 0 0\n");
    for (int n = 0; n < 64; n++)
        len += (size_t)snprintf(lines + len, sizeof lines - len, "cpu%d 0 0 0 0 0 0 0 0 0 0\n", n);
    tree_write(dir, "proc/stat", lines);
    read_at(1);
    tree_swap(dir, "cpus-64");
    read_at(3);
    for (int n = 0; n < 64; n++) {
        snprintf(name, sizeof name, "%d", n);
        assert_near(value(DEVICE_CORE, name, METRIC_SYSTEM_CPU_USER), (1000 + 2 * n) * tick, 1e-6);
        assert_near(value(DEVICE_CORE, name, METRIC_SYSTEM_CPU_SOFTIRQ), 3 * n * tick, 1e-6);
        assert_near(value(DEVICE_CORE, name, METRIC_SYSTEM_CPU_TIME), (1500 + 8 * n) * tick, 1e-6);
        assert_near(value(DEVICE_CORE, name, METRIC_SYSTEM_CPU_USAGE), (750 + 4 * n) * tick, 1e-6);
    }
}

static void test_cores_go_and_come(void **state)
{
    (void)state;
    double tick = 1.0 / (double)host.ticks_per_second;
    tree_write(dir, "proc/stat", "cpu  20 0 0 0\ncpu0 10 0 0 0\ncpu1 10 0 0 0\n");
    read_at(1);
    tree_write(dir, "proc/stat", "cpu  30 0 0 0\ncpu0 20 0 0 0\n");
    read_at(2);
    assert_int_equal(count_of(DEVICE_CORE), 1);
    assert_null(device(DEVICE_CORE, "1"));
    assert_near(m.value[METRIC_SYSTEM_CPU_USER], 10 * tick, 1e-9);
    tree_write(dir, "proc/stat", "cpu  45 0 0 0\ncpu0 30 0 0 0\ncpu1 15 0 0 0\n");
    read_at(3);
    assert_int_equal(count_of(DEVICE_CORE), 2);
    assert_near(value(DEVICE_CORE, "0", METRIC_SYSTEM_CPU_USER), 20 * tick, 1e-9);
    assert_near(value(DEVICE_CORE, "1", METRIC_SYSTEM_CPU_USER), 5 * tick, 1e-9);
}

/* --- /proc/meminfo ---------------------------------------------------------------------------- */

static void test_meminfo(void **state)
{
    (void)state;
    static const struct {
        enum pr_metric_id id;
        double kb;
    } want[] = {
        {METRIC_SYSTEM_MEM_TOTAL, 1000},        {METRIC_SYSTEM_MEM_FREE, 100},
        {METRIC_SYSTEM_MEM_AVAILABLE, 400},     {METRIC_SYSTEM_MEM_USED, 600},
        {METRIC_SYSTEM_MEM_BUFFERS, 10},        {METRIC_SYSTEM_MEM_CACHED, 250},
        {METRIC_SYSTEM_MEM_SHARED, 30},         {METRIC_SYSTEM_MEM_ACTIVE, 300},
        {METRIC_SYSTEM_MEM_INACTIVE, 150},      {METRIC_SYSTEM_MEM_ACTIVE_ANON, 110},
        {METRIC_SYSTEM_MEM_INACTIVE_ANON, 120}, {METRIC_SYSTEM_SWAP_TOTAL, 500},
        {METRIC_SYSTEM_SWAP_USED, 80},
    };
    tree_write(dir, "proc/meminfo",
               "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n"
               "Buffers:          10 kB\nCached:          200 kB\nSwapCached:        7 kB\n"
               "Active:          300 kB\nInactive:        150 kB\nActive(anon):    110 kB\n"
               "Inactive(anon):  120 kB\nActive(file):    190 kB\nSwapTotal:       500 kB\n"
               "SwapFree:        420 kB\nShmem:            30 kB\nKReclaimable:     60 kB\n"
               "Slab:            70 kB\nSReclaimable:     50 kB\nShmemHugePages:   99 kB\n");
    read_at(1);
    for (size_t i = 0; i < COUNT_OF(want); i++)
        assert_exactly(m.value[want[i].id], want[i].kb * 1024);
}

/* Before Linux 3.14 nobody says what is available: then what is used is not known either. */
static void test_meminfo_of_old_kernels(void **state)
{
    (void)state;
    tree_write(dir, "proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nCached: 200 kB\n");
    read_at(1);
    assert_exactly(m.value[METRIC_SYSTEM_MEM_CACHED], 200 * 1024);
    assert_absent(m.value[METRIC_SYSTEM_MEM_USED]);
    assert_absent(m.value[METRIC_SYSTEM_SWAP_USED]);
}

/* --- /proc/diskstats -------------------------------------------------------------------------- */

static void test_each_byte_is_counted_once(void **state)
{
    (void)state;
    tree_swap(dir, "disks-4kn");
    read_at(1);
    assert_exactly(m.value[METRIC_SYSTEM_DISK_READ], 0);
    /* 1000 sectors are read and 600 written in dm-0: it has them of md0, and that reads half of
     * them from each disk and writes all to both. 8 go to the disk with sectors of 4096 bytes. */
    tree_write(dir, "proc/diskstats",
               "   7       0 loop0 120 0 9992480 31 0 0 0 0 0 40 31 0 0 0 0 0 0\n"
               " 253       0 zram0 5000 0 9940000 12 7000 0 9956000 20 0 32 32 0 0 0 0 0 0\n"
               " 259       0 nvme0n1 1 50 8192000 2 5001 70 4096008 3 0 4 5 0 0 0 0 0 0\n"
               " 259       1 nvme0n1p1 300 0 24000 60 10 0 80 4 0 60 64 0 0 0 0 0 0\n"
               " 259       2 nvme0n1p2 9700 50 8168000 1 4991 70 4095928 2 0 3 4 0 0 0 0 0 0\n"
               "   8       0 sda 4001 10 640500 900 2001 30 320600 800 0 1500 1700 0 0 0 0 0 0\n"
               "   8       1 sda1 100 0 8000 20 0 0 0 0 0 20 20 0 0 0 0 0 0\n"
               "   8       2 sda2 3901 10 632500 880 2001 30 320600 800 0 1 1 0 0 0 0 0 0\n"
               "   8      16 sdb 3801 10 600500 850 2001 30 320600 790 0 1400 1640 0 0 0 0 0 0\n"
               "   8      17 sdb1 90 0 7200 18 0 0 0 0 0 18 18 0 0 0 0 0 0\n"
               "   8      18 sdb2 3711 10 593300 832 2001 30 320600 790 0 1 1 0 0 0 0 0 0\n"
               "   9       0 md0 7602 0 1225000 0 2001 0 320600 0 0 0 0 0 0 0 0 0 0\n"
               " 252       0 dm-0 7501 0 1221000 1700 1991 0 319600 1580 0 1 1 0 0 0 0 0 0\n");
    read_at(3);
    assert_exactly(m.value[METRIC_SYSTEM_DISK_READ], 1000 * 512);
    assert_exactly(m.value[METRIC_SYSTEM_DISK_WRITE], (600 + 600 + 8) * 512);
    assert_exactly(m.value[METRIC_SYSTEM_DISK_READ_RATE], 500 * 512);
    assert_string_equal(counted(DEVICE_DISK), "nvme0n1 sda sdb");
    assert_int_equal(count_of(DEVICE_DISK), 5); /* md0 and dm-0 besides */
    assert_exactly(value(DEVICE_DISK, "nvme0n1", METRIC_SYSTEM_DISK_WRITE), 4096);
    assert_exactly(value(DEVICE_DISK, "sda", METRIC_SYSTEM_DISK_READ), 500 * 512);
    assert_exactly(value(DEVICE_DISK, "md0", METRIC_SYSTEM_DISK_WRITE), 600 * 512);
    assert_exactly(value(DEVICE_DISK, "dm-0", METRIC_SYSTEM_DISK_READ), 1000 * 512);
    assert_exactly(value(DEVICE_DISK, "dm-0", METRIC_SYSTEM_DISK_READ_RATE), 500 * 512);
    assert_null(pr_machine_reason(&m, METRIC_SYSTEM_DISK_READ));
}

/* Lines of disks with these names, each with as many sectors read. */
static void disks(const char *const *names, int sectors)
{
    char lines[4096];
    size_t len = 0;
    for (; *names; names++)
        len += (size_t)snprintf(lines + len, sizeof lines - len,
                                " 8 0 %s 1 0 %d 0 1 0 %d 0 0 0 0 0 0 0 0 0 0\n", *names, sectors,
                                sectors);
    tree_write(dir, "proc/diskstats", lines);
}

static void test_what_passes_on(void **state)
{
    (void)state;
    static const char *const all[] = {"ram0",    "zd16",    "zd16p1",     "drbd1",        "dm-3",
                                      "bcache0", "md_home", "cciss/c0d0", "cciss/c0d0p1", "xvda1",
                                      "nbd0",    "ramses",  NULL};
    static const char
        *const entries[] = {"ram0/size",          "zd16/size",           "drbd1/size",
                            "dm-3/size", /* its slaves are to come */
                            "bcache0/slaves/sdz", "md_home/slaves/sdy1", "cciss!c0d0/size",
                            "xvda1/size",         "nbd0/size",           "ramses/size"};
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        char path[64];
        snprintf(path, sizeof path, "sys/block/%s", entries[i]);
        tree_write(dir, path, "");
    }
    disks(all, 1);
    read_at(1);
    assert_string_equal(counted(DEVICE_DISK), "cciss/c0d0 xvda1 nbd0 ramses");
    assert_int_equal(count_of(DEVICE_DISK), 8);
    static const char *const besides[] = {"drbd1", "dm-3", "bcache0", "md_home"};
    for (size_t i = 0; i < COUNT_OF(besides); i++)
        assert_non_null(device(DEVICE_DISK, besides[i]));
}

/* NVMe with multipath: the head and its paths have the same bytes. */
static void test_nvme_paths(void **state)
{
    (void)state;
    static const char *const all[] = {"nvme0n1", "nvme0c0n1", "nvme0c1n1",
                                      "nvme1n1", "nvme0n2",   NULL};
    for (int i = 0; all[i]; i++) {
        char path[64];
        snprintf(path, sizeof path, "sys/block/%s/size", all[i]);
        tree_write(dir, path, "");
    }
    disks(all, 1);
    read_at(1);
    assert_string_equal(counted(DEVICE_DISK), "nvme0c0n1 nvme0c1n1 nvme1n1 nvme0n2");
    assert_int_equal(count_of(DEVICE_DISK), 5);
}

static void test_disks_without_sysfs(void **state)
{
    (void)state;
    static const char *const all[] = {
        "sda",        "sda1", "sdab",    "sdab12",    "vdb",   "vdb1", "xvda", "hdc", "nvme10n1",
        "nvme10n1p2", "md0",  "mmcblk0", "mmcblk0p1", "loop3", "dm-0", "sr0",  NULL};
    disks(all, 1);
    read_at(1);
    assert_string_equal(counted(DEVICE_DISK), "sda sdab vdb xvda hdc nvme10n1 mmcblk0");
    assert_int_equal(count_of(DEVICE_DISK), 9);
}

/* Once known, sysfs is left alone; another name makes all of it doubtful, and so does time. */
static void test_sysfs_is_not_read_at_each_tick(void **state)
{
    (void)state;
    static const char *const before[] = {"sda", "md_x", NULL};
    static const char *const after[] = {"sda", "sdb", "md_x", NULL};
    host.held = true;
    tree_write(dir, "sys/block/sda/size", "");
    tree_write(dir, "sys/block/sdb/size", "");
    tree_write(dir, "sys/block/md_x/size", ""); /* it has no disks yet */
    disks(before, 1);
    read_at(1);
    int first = listings;
    assert_int_equal(first, 2);
    for (int i = 2; i < 50; i++) {
        disks(before, i);
        read_at(i);
    }
    assert_int_equal(listings, first);
    assert_string_equal(counted(DEVICE_DISK), "sda md_x");
    assert_exactly(value(DEVICE_DISK, "sda", METRIC_SYSTEM_DISK_READ), 48 * 512);
    tree_write(dir, "sys/block/md_x/slaves/sdb", "");
    disks(after, 50);
    read_at(50);
    assert_int_equal(listings, first + 3);
    assert_int_equal(count_of(DEVICE_DISK), 3);
    assert_non_null(device(DEVICE_DISK, "sdb"));
    assert_false(device(DEVICE_DISK, "md_x")->out.counted);
    read_at(109);
    assert_int_equal(listings, first + 3);
    read_at(110);
    assert_int_equal(listings, first + 6);
}

static void test_no_disks(void **state)
{
    (void)state;
    tree_write(dir, "proc/diskstats", ""); /* lxcfs has it so */
    read_at(1);
    assert_absent(m.value[METRIC_SYSTEM_DISK_READ]);
    assert_string_equal(pr_machine_reason(&m, METRIC_SYSTEM_DISK_READ),
                        "/proc/diskstats: it has no disk");
}

static void test_diskstats_line(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "8",
                                      "8 0",
                                      "8 0 sda",
                                      "8 0 sda 1 2 3 4 5 6",
                                      "a b c",
                                      "8 0 sda1 1 2 3 4", /* partitions before Linux 2.6.25 */
                                      "8 0 sda 1 2 x 4 5 6 7"};
    struct pr_scan name;
    double bytes[2];
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(pr_diskstats_line(pr_scan_of(bad[i], strlen(bad[i])), &name, bytes));
    const char *good = "8 0 sda 1 2 3 4 5 6 7"; /* no more than is needed */
    assert_true(pr_diskstats_line(pr_scan_of(good, strlen(good)), &name, bytes));
    assert_true(pr_scan_equals(name, "sda"));
    assert_exactly(bytes[0], 3 * 512);
    assert_exactly(bytes[1], 7 * 512);
}

/* --- /proc/net/dev ---------------------------------------------------------------------------- */

static const char heading[] =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n";

/* Interfaces, each with so many bytes received and twice as many sent. */
static void interfaces(const char *path, const char *const *names, int bytes)
{
    char lines[4096];
    size_t len = (size_t)snprintf(lines, sizeof lines, "%s", heading);
    for (; *names; names++)
        len += (size_t)snprintf(lines + len, sizeof lines - len,
                                "%6s: %7d 3 0 0 0 0 0 0 %7d 4 0 0 0 0 0 0\n", *names, bytes,
                                2 * bytes);
    tree_write(dir, path, lines);
}

/* An entry in sys/class/net. */
static void entry(const char *name, const char *content)
{
    char path[128];
    snprintf(path, sizeof path, "sys/class/net/%s", name);
    tree_write(dir, path, content);
}

static void test_bonds(void **state)
{
    (void)state;
    tree_swap(dir, "bonds");
    read_at(1);
    assert_string_equal(counted(DEVICE_INTERFACE), "eth0 eth1");
    assert_int_equal(count_of(DEVICE_INTERFACE), 8);
    assert_null(device(DEVICE_INTERFACE, "lo"));
    assert_non_null(device(DEVICE_INTERFACE, "bond0.100"));
    tree_write(dir, "proc/1/net/dev",
               "    lo:   90000     1 0 0 0 0 0 0  90000 1 0 0 0 0 0 0\n"
               "  eth0: 3001000  2500 0 0 0 0 0 0 1000010 900 0 0 0 0 0 0\n"
               "  eth1: 2000500  1500 0 0 0 0 0 0  500020 400 0 0 0 0 0 0\n"
               " bond0: 5001500  4000 0 0 0 0 0 0 1500030 1300 0 0 0 0 0 0\n"
               "bond0.100: 4945500 4000 0 0 0 0 0 0 1490030 1300 0 0 0 0 0 0\n"
               "   br0:  104992   111 0 0 0 0 0 0   4206 14 0 0 0 0 0 0\n"
               "docker0:      0     0 0 0 0 0 0 0      0 0 0 0 0 0 0 0\n"
               " vethA:  209868   206 0 0 0 0 0 0 904910 23 0 0 0 0 0 0\n"
               " vethB:  109250   113 0 0 0 0 0 0 913220 222 0 0 0 0 0 0\n");
    read_at(3);
    assert_exactly(m.value[METRIC_SYSTEM_NET_RX], 1500);
    assert_exactly(m.value[METRIC_SYSTEM_NET_TX], 30);
    assert_exactly(m.value[METRIC_SYSTEM_NET_RX_RATE], 750);
    assert_exactly(value(DEVICE_INTERFACE, "bond0", METRIC_SYSTEM_NET_RX), 1500);
    assert_exactly(value(DEVICE_INTERFACE, "eth1", METRIC_SYSTEM_NET_TX), 20);
    assert_exactly(value(DEVICE_INTERFACE, "vethA", METRIC_SYSTEM_NET_TX), 900000);
}

static void test_a_network_namespace(void **state)
{
    (void)state;
    tree_swap(dir, "netns");
    read_at(1);
    assert_string_equal(counted(DEVICE_INTERFACE), "eth0");
    assert_int_equal(count_of(DEVICE_INTERFACE), 1);
    assert_exactly(m.value[METRIC_SYSTEM_NET_RX], 0);
    static const char *const eth0[] = {"eth0", NULL};
    interfaces("proc/1/net/dev", eth0, 4910 + 90);
    read_at(2);
    assert_exactly(m.value[METRIC_SYSTEM_NET_RX], 90);
}

/* The namespace of pid 1 is that of the tree; ours is taken where there is no pid 1, and at once
 * where the tree is ours. */
static void test_whose_namespace(void **state)
{
    (void)state;
    static const char *const theirs[] = {"theirs", NULL}, *const ours[] = {"ours", NULL};
    interfaces("proc/net/dev", ours, 1);
    read_at(1);
    assert_string_equal(counted(DEVICE_INTERFACE), "ours");
    interfaces("proc/1/net/dev", theirs, 1);
    read_at(2);
    assert_string_equal(counted(DEVICE_INTERFACE), "theirs");
    host.foreign = false;
    read_at(3);
    assert_string_equal(counted(DEVICE_INTERFACE), "ours");
}

/* In a container: links count and tunnels do not, but tunnels are better than nothing. */
static void test_who_counts_in_a_container(void **state)
{
    (void)state;
    static const char *const all[] = {"lo", "wg0", "ib0", "eth0", "eth0.5", "tun0", "dum772", NULL};
    entry("wg0/type", "65534\n");
    entry("tun0/type", "65534\n");
    entry("ib0/type", "32\n");
    entry("eth0/type", "1\n");
    entry("eth0.5/type", "1\n");
    entry("eth0.5/lower_eth0", "");
    entry("dum772/type", "772\n"); /* another loopback */
    interfaces("proc/net/dev", all, 1);
    read_at(1);
    assert_string_equal(counted(DEVICE_INTERFACE), "ib0 eth0");
    assert_int_equal(count_of(DEVICE_INTERFACE), 5);
    static const char *const tunnels[] = {"lo", "wg0", "tun0", "tun0.1", NULL};
    entry("tun0.1/type", "65534\n");
    entry("tun0.1/lower_tun0", "");
    interfaces("proc/net/dev", tunnels, 1);
    read_at(2);
    assert_string_equal(counted(DEVICE_INTERFACE), "wg0 tun0");
}

/* Azure: a synthetic interface has the bytes of the virtual function below it, and both are
 * devices. */
static void test_a_device_below_a_device(void **state)
{
    (void)state;
    static const char *const all[] = {"eth0", "enP1s1", "eth1", NULL};
    entry("eth0/device", "");
    entry("eth0/lower_enP1s1", "");
    entry("enP1s1/device", "");
    entry("eth1/device", "");
    interfaces("proc/net/dev", all, 1);
    read_at(1);
    assert_string_equal(counted(DEVICE_INTERFACE), "eth0 eth1");
    assert_int_equal(count_of(DEVICE_INTERFACE), 3);
}

static void test_only_lo(void **state)
{
    (void)state;
    static const char *const all[] = {"lo", NULL};
    interfaces("proc/net/dev", all, 1);
    read_at(1);
    assert_absent(m.value[METRIC_SYSTEM_NET_RX]);
    assert_string_equal(pr_machine_reason(&m, METRIC_SYSTEM_NET_RX),
                        "/proc/net/dev: it has no interface but lo");
    tree_delete(dir, "proc/net");
    read_at(2);
    assert_int_equal(count_of(DEVICE_INTERFACE), 0);
}

/* Known until a name comes or goes, or a minute has passed: a bond gets members without either. */
static void test_interfaces_are_looked_at_again(void **state)
{
    (void)state;
    static const char *const two[] = {"bond0", "eth0", NULL};
    static const char *const three[] = {"bond0", "eth0", "eth1", NULL};
    host.held = true;
    interfaces("proc/net/dev", two, 1);
    read_at(1);
    int known = listings;
    assert_int_equal(known, 2);
    assert_string_equal(counted(DEVICE_INTERFACE), "bond0 eth0");
    entry("bond0/lower_eth0", "");
    read_at(60);
    assert_int_equal(listings, known);
    read_at(61);
    assert_int_equal(listings, known += 2);
    assert_string_equal(counted(DEVICE_INTERFACE), "eth0");
    interfaces("proc/net/dev", three, 1);
    read_at(62);
    assert_int_equal(listings, known += 3);
    assert_string_equal(counted(DEVICE_INTERFACE), "eth0 eth1");
    interfaces("proc/net/dev", two, 1);
    read_at(63);
    assert_int_equal(listings, known += 2);
    assert_string_equal(counted(DEVICE_INTERFACE), "eth0");
}

static void test_netdev_line(void **state)
{
    (void)state;
    static const struct {
        const char *line, *name;
        double received, sent;
    } rows[] = {
        {"  eth0:1234 1 0 0 0 0 0 0 5678 1 0 0 0 0 0 0", "eth0", 1234, 5678},
        {"eth0: 1 2 3 4 5 6 7 8 9", "eth0", 1, 9},
        {"  eth0:1: 11 1 0 0 0 0 0 0 12 1 0 0 0 0 0 0", "eth0:1", 11, 12},
        {"a|b%s\xff\"{}: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0", "a|b%s\xff\"{}", 1, 2},
        {"x: 18446744073709551615 0 0 0 0 0 0 0 2 0", "x", 18446744073709551615.0, 2},
    };
    static const char *const bad[] = {"",
                                      ":",
                                      ": 1 2 3 4 5 6 7 8 9",
                                      "eth0",
                                      "eth0:",
                                      "eth0: 1 2 3 4 5 6 7 8",
                                      "eth0:1:No statistics available",
                                      "two words: 1 2 3 4 5 6 7 8 9"};
    struct pr_scan name;
    double bytes[2];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pr_scan line = pr_scan_of(rows[i].line, strlen(rows[i].line));
        assert_true(pr_netdev_line(line, &name, bytes));
        assert_true(pr_scan_equals(name, rows[i].name));
        assert_exactly(bytes[0], rows[i].received);
        assert_exactly(bytes[1], rows[i].sent);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(pr_netdev_line(pr_scan_of(bad[i], strlen(bad[i])), &name, bytes));
}

/* More than a piece of the file, and more than there was room for at first. */
static void test_many_interfaces(void **state)
{
    (void)state;
    static char lines[60000];
    for (int round = 1; round <= 2; round++) {
        size_t len = (size_t)snprintf(lines, sizeof lines, "%s", heading);
        for (int i = 0; i < 500; i++)
            len += (size_t)snprintf(lines + len, sizeof lines - len,
                                    "veth%d: %d 0 0 0 0 0 0 0 %d 0 0 0 0 0 0 0\n", i,
                                    round * (i + 1), 7 * round);
        tree_write(dir, "proc/net/dev", lines);
        read_at(round);
    }
    assert_int_equal(count_of(DEVICE_INTERFACE), 500);
    assert_exactly(m.value[METRIC_SYSTEM_NET_RX], 500 * 501 / 2);
    assert_exactly(m.value[METRIC_SYSTEM_NET_TX], 500 * 7);
    assert_exactly(value(DEVICE_INTERFACE, "veth499", METRIC_SYSTEM_NET_RX), 500);
}

/* --- /proc/pressure --------------------------------------------------------------------------- */

static void pressure(const char *name, const char *lines)
{
    char path[64];
    snprintf(path, sizeof path, "proc/pressure/%s", name);
    tree_write(dir, path, lines);
}

static void test_pressure(void **state)
{
    (void)state;
    static const char first[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n"
                                "full avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n";
    pressure("cpu", "some avg10=1.50 avg60=0.00 avg300=0.00 total=7\n"); /* before Linux 5.13 */
    pressure("memory", first);
    pressure("io", first);
    read_at(1);
    assert_exactly(m.value[METRIC_SYSTEM_PSI_CPU], 0);
    pressure("cpu", "some avg10=1.50 avg60=0.00 avg300=0.00 total=2000007\n");
    pressure("memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1250000\n"
                       "full avg10=0.00 avg60=0.00 avg300=0.00 total=600000\n");
    pressure("io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=9000000\n"
                   "full avg10=0.00 avg60=0.00 avg300=0.00 total=500001\n");
    read_at(2);
    assert_near(m.value[METRIC_SYSTEM_PSI_CPU], 2, 1e-9);
    assert_absent(m.value[METRIC_SYSTEM_PSI_CPU_FULL]);
    assert_near(m.value[METRIC_SYSTEM_PSI_MEMORY], 0.25, 1e-9);
    assert_near(m.value[METRIC_SYSTEM_PSI_MEMORY_FULL], 0.1, 1e-9);
    assert_near(m.value[METRIC_SYSTEM_PSI_IO], 8, 1e-9);
    assert_near(m.value[METRIC_SYSTEM_PSI_IO_FULL], 1e-6, 1e-9);
    assert_null(pr_machine_reason(&m, METRIC_SYSTEM_PSI_IO));
}

static void test_only_the_pressure_that_is_wanted(void **state)
{
    (void)state;
    static const struct {
        unsigned reads;
        enum pr_metric_id wanted, other;
    } cases[] = {{READ_PSI_IO, METRIC_SYSTEM_PSI_IO, METRIC_SYSTEM_PSI_CPU},
                 {READ_PSI, METRIC_SYSTEM_PSI_MEMORY, METRIC_SYSTEM_PSI_IO}};
    static const char line[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
    pressure("cpu", line);
    pressure("memory", line);
    pressure("io", line);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        m.reads = cases[i].reads;
        read_at((int)i + 1);
        assert_exactly(m.value[cases[i].wanted], 0);
        assert_absent(m.value[cases[i].other]);
        assert_null(pr_machine_reason(&m, cases[i].other)); /* nobody asked */
    }
}

static void test_a_kernel_without_pressure(void **state)
{
    (void)state;
    tree_swap(dir, "no-psi");
    read_at(1);
    assert_absent(m.value[METRIC_SYSTEM_PSI_CPU]);
    assert_absent(m.value[METRIC_SYSTEM_PSI_IO_FULL]);
    assert_false(isnan(m.value[METRIC_SYSTEM_MEM_TOTAL]));
    assert_contains(pr_machine_reason(&m, METRIC_SYSTEM_PSI_CPU), "/proc/pressure: ");
    assert_contains(pr_machine_reason(&m, METRIC_SYSTEM_PSI_IO), "psi=1)");
}

/* With psi=0 the files are there, and reading them says EOPNOTSUPP. It is not tried again. */
static void test_pressure_that_was_turned_off(void **state)
{
    (void)state;
    m.reads = READ_PSI | READ_PSI_IO;
    host.held = true;
    pressure("cpu", "");
    pressure("memory", "");
    pressure("io", "");
    read_error = -EOPNOTSUPP;
    read_at(1);
    assert_contains(pr_machine_reason(&m, METRIC_SYSTEM_PSI_CPU), "CONFIG_PSI");
    assert_true(m.source[MACHINE_sys_psi].failed);
}

static void test_one_pressure_file_is_broken(void **state)
{
    (void)state;
    pressure("cpu", "some total=5\n");
    pressure("memory", "some total=\nfull\n");
    pressure("io", "full avg10=0.00 total=x\nsome avg10=0.00 total=6 more=7\n");
    read_at(1);
    assert_exactly(m.value[METRIC_SYSTEM_PSI_CPU], 0);
    assert_exactly(m.value[METRIC_SYSTEM_PSI_IO], 0);
    assert_absent(m.value[METRIC_SYSTEM_PSI_IO_FULL]);
    assert_absent(m.value[METRIC_SYSTEM_PSI_MEMORY]);
    assert_contains(pr_machine_reason(&m, METRIC_SYSTEM_PSI_MEMORY), "/proc/pressure/memory: ");
}

/* --- /proc/loadavg and processes -------------------------------------------------------------- */

static void processes(int from, int to)
{
    for (int pid = from; pid < to; pid++) {
        char path[32];
        snprintf(path, sizeof path, "proc/%d/stat", pid);
        tree_write(dir, path, "");
    }
}

static void test_load_and_processes(void **state)
{
    (void)state;
    tree_write(dir, "proc/loadavg", "0.52 0.58 0.59 1/467 12345\n");
    tree_write(dir, "proc/meminfo", "");
    tree_write(dir, "proc/12a/stat", "");
    processes(1, 8);
    read_at(1);
    assert_exactly(m.value[METRIC_SYSTEM_LOAD1], 0.52);
    assert_exactly(m.value[METRIC_SYSTEM_PROCS], 7);
    tree_write(dir, "proc/loadavg", "12.07 0.58 0.59 1/467 12345\n");
    processes(8, 10);
    read_at(2); /* a captured tree is listed whatever loadavg says */
    assert_exactly(m.value[METRIC_SYSTEM_LOAD1], 12.07);
    assert_exactly(m.value[METRIC_SYSTEM_PROCS], 9);
}

static void load_and_read(const char *loadavg, double seconds)
{
    tree_write(dir, "proc/loadavg", loadavg);
    read_at(seconds);
}

/* Only when somebody was forked or went, and once a second at most. */
static void test_when_processes_are_listed(void **state)
{
    (void)state;
    m.reads = READ_LOAD;
    host.held = true;
    processes(1, 5);
    load_and_read("0 0 0 1/50 100\n", 1);
    assert_int_equal(processes_listed, 1);
    processes(5, 6);
    load_and_read("0 0 0 2/50 100\n", 5); /* nothing happened */
    assert_int_equal(processes_listed, 1);
    assert_exactly(m.value[METRIC_SYSTEM_PROCS], 4);
    load_and_read("0 0 0 1/50 101\n", 6); /* a fork and an exit */
    assert_int_equal(processes_listed, 2);
    assert_exactly(m.value[METRIC_SYSTEM_PROCS], 5);
    processes(6, 7);
    load_and_read("0 0 0 1/51 102\n", 6.5); /* too soon: the last count stands */
    assert_int_equal(processes_listed, 2);
    assert_exactly(m.value[METRIC_SYSTEM_PROCS], 5);
    load_and_read("0 0 0 1/51 102\n", 7); /* it is not forgotten */
    assert_int_equal(processes_listed, 3);
    assert_exactly(m.value[METRIC_SYSTEM_PROCS], 6);
    load_and_read("0 0 0 1/50 102\n", 7.9999); /* an exit, and a tick that comes early */
    assert_int_equal(processes_listed, 4);
    load_and_read("0 0 0 1/50 0\n", 9); /* lxcfs knows no last pid */
    load_and_read("0 0 0 1/50 0\n", 10);
    load_and_read("0 0 0 1/50 0\n", 10.2);
    assert_int_equal(processes_listed, 6);
}

static void test_no_loadavg(void **state)
{
    (void)state;
    host.held = true;
    processes(1, 4);
    read_at(1);
    assert_absent(m.value[METRIC_SYSTEM_LOAD1]);
    assert_exactly(m.value[METRIC_SYSTEM_PROCS], 3);
    assert_string_equal(pr_machine_reason(&m, METRIC_SYSTEM_LOAD1),
                        "/proc/loadavg: No such file or directory");
    processes(4, 5);
    read_at(1.5);
    assert_exactly(m.value[METRIC_SYSTEM_PROCS], 3);
    read_at(2);
    assert_exactly(m.value[METRIC_SYSTEM_PROCS], 4);
    assert_int_equal(processes_listed, 2);
}

static void test_loadavg_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        double load1;
        uint64_t tasks, last_pid;
    } rows[] = {
        {"0.00 0.01 0.05 1/123 456\n", true, 0, 123, 456},
        {"137.99 0.01 0.05 1/99999 4194304\n", true, 137.99, 99999, 4194304},
        {"2", true, 2, 0, 0},
        {"2.", true, 2, 0, 0},
        {"3.5 x y z", true, 3.5, 0, 0},
        {"0.12345678901234567890123456789 1 1 1/2 3", true, 0.123456, 2, 3},
        {"", false, 0, 0, 0},
        {".5 1 1 1/2 3", false, 0, 0, 0},
        {"nan 1 1 1/2 3", false, 0, 0, 0},
    };
    struct pr_loadavg l;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(pr_loadavg_parse(rows[i].text, strlen(rows[i].text), &l), rows[i].good);
        if (!rows[i].good)
            continue;
        assert_exactly(l.load1, rows[i].load1);
        assert_int_equal(l.tasks, rows[i].tasks);
        assert_int_equal(l.last_pid, rows[i].last_pid);
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

/* Any bytes: nothing but absent values. A made-up text with pieces of the real formats in it. */
static void test_any_bytes(void **state)
{
    (void)state;
    static const char *const files[] = {"proc/stat",       "proc/meminfo",      "proc/diskstats",
                                        "proc/net/dev",    "proc/pressure/cpu", "proc/loadavg",
                                        "proc/pressure/io"};
    static const char *const pieces[] = {"cpu",
                                         "cpu7 ",
                                         "8 0 sda ",
                                         "eth0:",
                                         "some ",
                                         "total=",
                                         "1/",
                                         "\n",
                                         " ",
                                         "../..",
                                         ":",
                                         "MemTotal:",
                                         "99999999999999999999 ",
                                         "7 7 7 7 7 7 7 7 7 "};
    char data[600];
    srand(7);
    for (int round = 0; round < 300; round++) {
        for (size_t f = 0; f < COUNT_OF(files); f++) {
            size_t len = 0;
            while (len < 500) {
                const char *piece = pieces[(size_t)rand() % COUNT_OF(pieces)];
                size_t n = strlen(piece);
                if (rand() % 4 == 0)
                    data[len++] = (char)rand();
                memcpy(data + len, piece, n);
                len += n;
            }
            tree_write_bytes(dir, files[f], data, len);
        }
        read_at(round + 1);
    }
}

/* The kernel gives a file of many records by the page: that it is short does not end it. */
static void test_a_file_that_comes_by_the_page(void **state)
{
    (void)state;
    char *whole;
    size_t len;
    int fd = pr_fs_open(AT_FDCWD, "/proc/kallsyms");
    assert_true(fd >= 0);
    ssize_t n = pr_fs_pread_long(fd, text, sizeof text);
    close(fd);
    assert_int_equal(pr_fs_slurp(AT_FDCWD, "/proc/kallsyms", &whole, &len), 0);
    assert_in_range(n, sizeof text - 1024, sizeof text - 1);
    assert_true(len > (size_t)n);
    assert_memory_equal(text, whole, (size_t)n);
    free(whole);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_stat),
        TEST(test_stat_of_old_kernels),
        TEST(test_stat_of_64_cores),
        TEST(test_each_of_64_cores),
        TEST(test_cores_go_and_come),
        TEST(test_meminfo),
        TEST(test_meminfo_of_old_kernels),
        TEST(test_each_byte_is_counted_once),
        TEST(test_what_passes_on),
        TEST(test_nvme_paths),
        TEST(test_disks_without_sysfs),
        TEST(test_sysfs_is_not_read_at_each_tick),
        TEST(test_no_disks),
        TEST(test_diskstats_line),
        TEST(test_bonds),
        TEST(test_a_network_namespace),
        TEST(test_whose_namespace),
        TEST(test_who_counts_in_a_container),
        TEST(test_a_device_below_a_device),
        TEST(test_only_lo),
        TEST(test_interfaces_are_looked_at_again),
        TEST(test_netdev_line),
        TEST(test_many_interfaces),
        TEST(test_pressure),
        TEST(test_only_the_pressure_that_is_wanted),
        TEST(test_a_kernel_without_pressure),
        TEST(test_pressure_that_was_turned_off),
        TEST(test_one_pressure_file_is_broken),
        TEST(test_load_and_processes),
        TEST(test_when_processes_are_listed),
        TEST(test_no_loadavg),
        TEST(test_loadavg_text),
        TEST(test_a_file_that_comes_by_the_page),
        TEST(test_any_bytes),
    };
    return cmocka_run_group_tests_name("sys", tests, NULL, NULL);
}
