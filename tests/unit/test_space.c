/* SPDX-License-Identifier: Apache-2.0 */
/* Which file systems are asked for their size, what comes of it, and the helper that asks ZFS. */
#include "tree.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "core/machine.h"
#include "core/space.h"
#include "source/local_mounts.h"
#include "source/zpool.h"
#include "util/clock.h"

static char dir[TREE_PATH], text[65536];
static struct pr_host host;
static struct pr_machine m;
static struct pr_tick tick;

/* --- statfs of made-up mounts ------------------------------------------------------------------
 */

static char asked[1024];        /* the paths, in order */
static const char *denied = ""; /* a path that does not answer */
static unsigned long free_now;  /* blocks */
static bool alike;              /* all of them are one file system */

int __wrap_pr_space_stat(const struct pr_host *h, const char *path, struct statfs *ret);
int __real_pr_space_stat(const struct pr_host *h, const char *path, struct statfs *ret);

int __wrap_pr_space_stat(const struct pr_host *h, const char *path, struct statfs *ret)
{
    if (denied == NULL)
        return __real_pr_space_stat(h, path, ret);
    snprintf(asked + strlen(asked), sizeof asked - strlen(asked), "%s;", path);
    if (strcmp(path, denied) == 0)
        return -EACCES;
    *ret = (struct statfs){.f_bsize = 4096,
                           .f_frsize = 1024,
                           .f_blocks = 1000,
                           .f_bfree = free_now + 50, /* some of it is root's alone */
                           .f_bavail = free_now};
    if (alike)
        ret->f_fsid.__val[0] = 7;
    return 0;
}

/* A minute is 50 ms, and the patience with zpool 300. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    return __real_poll(fds, count, timeout == 60000 ? 50 : timeout > 9000 ? 300 : timeout);
}

static int setup(void **state)
{
    (void)state;
    tree_new(dir);
    asked[0] = '\0';
    denied = "";
    free_now = 200;
    alike = false;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_done(dir);
    return 0;
}

static void again(double seconds)
{
    tick.now += (int64_t)(seconds * 1e9);
    asked[0] = '\0';
    pr_machine_read(&m, &tick);
}

static void open_machine(const char *root, int helper)
{
    struct proctor_error err;
    assert_int_equal(pr_host_open(&host, root, &err), 0);
    pr_machine_init(&m, &host, READ_SPACE);
    m.space_helper = helper;
    tick = (struct pr_tick){&host, 100 * NS_PER_S, text, sizeof text};
    asked[0] = '\0';
    pr_machine_read(&m, &tick);
}

static void begin(const char *mounts)
{
    tree_write(dir, "proc/self/mountinfo", mounts);
    open_machine(dir, -1);
}

static void end(void)
{
    pr_machine_done(&m, true);
    assert_int_equal(host.holding, 0);
    pr_host_close(&host);
}

#define why()       pr_machine_reason(&m, METRIC_SYSTEM_DISK_SPACE_TOTAL)
#define sum(metric) (m.value[METRIC_SYSTEM_DISK_SPACE_##metric])

static const struct pr_device_state *device(const char *name)
{
    for (size_t i = 0; i < m.devices.count; i++)
        if (strcmp(m.devices.items[i].out.name, name) == 0 && m.devices.items[i].present)
            return &m.devices.items[i];
    fail_msg("there is no device %s", name);
    return NULL;
}

static double of(const char *name, enum pr_metric_id id)
{
    return device(name)->out.value[pr_device_slot(DEVICE_FILESYSTEM, id)];
}

static void check(const char *mounts, const char *want)
{
    begin(mounts);
    assert_string_equal(asked, want);
    end();
}

#define ROOT "27 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
#define PROC "22 27 0:21 / /proc rw,relatime - proc proc rw\n"

/* --- which ones ------------------------------------------------------------------------------- */

static void test_values(void **state)
{
    (void)state;
    begin(PROC ROOT "40 27 8:2 / /home rw shared:3 - xfs /dev/sda2 rw\n");
    assert_string_equal(asked, "/;/home;");
    assert_exactly(of("/", METRIC_SYSTEM_DISK_SPACE_TOTAL), 1024000);
    assert_exactly(of("/home", METRIC_SYSTEM_DISK_SPACE_USED), 750 * 1024);
    assert_exactly(of("/home", METRIC_SYSTEM_DISK_SPACE_FREE), 200 * 1024);
    assert_exactly(sum(TOTAL), 2048000);
    assert_exactly(sum(USED), 2 * 750 * 1024);
    assert_exactly(sum(FREE), 2 * 200 * 1024);
    end();
}

static void test_once_a_second(void **state)
{
    (void)state;
    begin(ROOT);
    free_now = 100;
    again(0.3);
    assert_string_equal(asked, "");
    assert_exactly(sum(FREE), 200 * 1024); /* it stands, and the device is there */
    assert_exactly(of("/", METRIC_SYSTEM_DISK_SPACE_FREE), 200 * 1024);
    again(0.7);
    assert_string_equal(asked, "/;");
    assert_exactly(sum(FREE), 100 * 1024);
    end();
}

static void test_each_device_once(void **state)
{
    (void)state;
    check(ROOT "41 27 8:1 /srv/data /data rw - ext4 /dev/sda1 rw\n" /* a bind mount */
               "42 27 8:2 / /home rw - ext4 /dev/sda2 rw\n"
               "43 27 8:2 / /mnt rw - ext4 /dev/sda2 ro\n",
          "/;/home;");
    /* Subvolumes of btrfs are one file system with one device. */
    check("27 1 0:30 /@ / rw - btrfs /dev/sda1 rw,subvol=/@\n"
          "41 27 0:30 /@home /home rw - btrfs /dev/sda1 rw,subvol=/@home\n"
          "42 27 0:30 /@snap /.snap rw - btrfs /dev/sda1 rw,subvol=/@snap\n",
          "/;");
}

static void test_the_first_that_answers(void **state)
{
    (void)state;
    denied = "/secret";
    begin("27 1 0:20 / / rw - overlay overlay rw\n"
          "41 27 8:2 / /secret rw - ext4 /dev/sda2 rw\n"
          "42 27 8:2 /x /x rw - ext4 /dev/sda2 rw\n"
          "43 27 8:2 /y /y rw - ext4 /dev/sda2 rw\n");
    assert_string_equal(asked, "/secret;/x;");
    assert_exactly(of("/x", METRIC_SYSTEM_DISK_SPACE_TOTAL), 1024000);
    end();
}

/* A mount that stops to answer is gone from the sum, and another of its device takes its place. */
static void test_one_that_stops_to_answer(void **state)
{
    (void)state;
    begin(ROOT "41 27 8:2 / /x rw - ext4 /dev/sda2 rw\n42 27 8:2 / /y rw - ext4 /dev/sda2 rw\n");
    assert_string_equal(asked, "/;/x;");
    denied = "/x";
    again(1);
    assert_string_equal(asked, "/;/x;");
    assert_exactly(sum(TOTAL), 1024000);
    again(1);
    assert_contains(asked, "/;/x;/y;");
    assert_exactly(sum(TOTAL), 2048000);
    end();
}

static void test_escapes(void **state)
{
    (void)state;
    check(ROOT "41 27 8:2 / /mnt/my\\040disk rw - ext4 /dev/sda2 rw\n"
               "42 27 8:3 / /mnt/tab\\011\\134 rw - ext4 /dev/sda3 rw\n"
               "43 27 8:4 / /mnt/cut\\04 rw - ext4 /dev/sda4 rw\n",
          "/;/mnt/my disk;/mnt/tab\t\\;/mnt/cut\\04;");
}

static void test_only_local_types(void **state)
{
    (void)state;
    check(ROOT "41 27 0:40 / /nfs rw - nfs4 server:/x rw\n"
               "42 27 0:41 / /smb rw - cifs //server/x rw\n"
               "43 27 0:42 / /ssh rw - fuse.sshfs user@server: rw\n"
               "44 27 8:3 / /win rw - fuseblk /dev/sda3 rw\n" /* ntfs-3g may hang */
               "45 27 0:43 / /lustre rw - lustre mgs@tcp:/x rw\n"
               "46 27 253:1 / /shared rw - gfs2 /dev/dm-1 rw\n"
               "47 27 0:44 / /run rw - tmpfs tmpfs rw\n"
               "48 27 8:4 / /boot/efi rw - vfat /dev/sda4 rw\n",
          "/;/boot/efi;");
}

static void test_below_what_may_hang(void **state)
{
    (void)state;
    check(ROOT "41 27 0:40 / /net rw - nfs4 server:/x rw\n"
               "42 41 8:2 / /net/scratch rw - ext4 /dev/sda2 rw\n"
               "43 42 0:44 / /net/scratch/tmp rw - tmpfs tmpfs rw\n"
               "44 43 8:3 / /net/scratch/tmp/x rw - xfs /dev/sda3 rw\n"
               "45 27 8:4 / /network rw - xfs /dev/sda4 rw\n", /* not below it */
          "/;/network;");
    check(ROOT "41 27 0:40 / /auto rw - autofs systemd-1 rw\n"
               "42 41 8:2 / /auto rw - ext4 /dev/sda2 rw\n" /* mounted in its place */
               "43 27 0:41 / /misc rw - autofs auto rw\n"
               "44 43 8:3 / /misc/disk rw - ext4 /dev/sda3 rw\n",
          "/;/auto;");
    check(ROOT "41 27 0:40 / /f rw - fuse  rw\n" /* a source without a name */
               "42 41 8:2 / /f/x rw - ext4 /dev/sda2 rw\n",
          "/;");
    check("27 1 0:20 / / rw - virtiofs root rw\n"
          "42 27 8:2 / /x rw - ext4 /dev/sda2 rw\n",
          "");
}

static void test_hidden(void **state)
{
    (void)state;
    check(ROOT "41 27 8:2 / /mnt rw - ext4 /dev/sda2 rw\n"
               "42 41 8:3 / /mnt rw - ext4 /dev/sda3 rw\n" /* over it */
               "43 27 8:4 / /a/b rw - ext4 /dev/sda4 rw\n"
               "44 27 0:40 / /a rw - tmpfs tmpfs rw\n", /* over what it is below of */
          "/;/mnt;");
    assert_string_equal(asked, "/;/mnt;");
    /* The order alone says nothing: mounts of an initial ramdisk come before the root. */
    check("20 27 8:2 / /usr rw - ext4 /dev/sda2 rw\n" PROC
          "1 1 0:2 / / rw - rootfs rootfs rw\n" ROOT,
          "/usr;/;");
    /* Below a chroot there may be no root at all. */
    check("41 27 8:2 / /x rw - ext4 /dev/sda2 rw\n42 41 8:3 / /x/y rw - ext4 /dev/sda3 rw\n",
          "/x;/x/y;");
}

static void test_images_are_not_devices(void **state)
{
    (void)state;
    check(ROOT "41 27 7:0 / /snap/core/1 ro - squashfs /dev/loop0 ro\n"
               "42 27 7:1 / /mnt/image rw - ext4 /dev/loop1 rw\n"
               "43 42 8:2 / /mnt/image/x rw - ext4 /dev/sda2 rw\n",
          "/;/mnt/image/x;");
}

static void test_mounts_come_and_go(void **state)
{
    (void)state;
    begin(ROOT);
    tree_write(dir, "proc/self/mountinfo", ROOT "42 27 8:2 / /home rw - ext4 /dev/sda2 rw\n");
    again(1);
    assert_string_equal(asked, "/;/home;");
    assert_exactly(sum(TOTAL), 2048000);
    tree_write(dir, "proc/self/mountinfo", ROOT);
    again(1);
    assert_exactly(sum(TOTAL), 1024000);
    end();
}

static void test_long_names(void **state)
{
    (void)state;
    char mounts[1024], stem[100];
    memset(stem, 'p', sizeof stem);
    stem[sizeof stem - 1] = '\0';
    snprintf(mounts, sizeof mounts,
             ROOT "41 27 8:2 / /a/%s rw - ext4 /dev/sda2 rw\n"
                  "42 27 8:3 / /b/%s rw - ext4 /dev/sda3 rw\n"
                  "43 27 8:4 / /%s/one rw - ext4 /dev/sda4 rw\n",
             stem, stem, stem);
    begin(mounts);
    assert_int_equal(m.devices.count, 4); /* none over another */
    assert_exactly(of("8:3", METRIC_SYSTEM_DISK_SPACE_TOTAL), 1024000);
    snprintf(mounts, sizeof mounts, "...%.56s/one", stem);
    assert_exactly(of(mounts, METRIC_SYSTEM_DISK_SPACE_TOTAL), 1024000);
    end();
}

/* Under a foreign root the mount may be missing, and its place a directory of the root's. */
static void test_a_mount_that_did_not_come_along(void **state)
{
    (void)state;
    alike = true;
    begin(ROOT "42 27 8:2 / /home rw - ext4 /dev/sda2 rw\n");
    assert_exactly(sum(TOTAL), 1024000);
    end();
}

static void test_reasons(void **state)
{
    (void)state;
    begin("27 1 0:20 / / rw - overlay overlay rw\n");
    assert_absent(sum(TOTAL));
    assert_contains(why(), "no local file system");
    end();
    denied = "/";
    begin(ROOT);
    assert_absent(sum(TOTAL));
    assert_contains(why(), "Permission denied");
    end();
    denied = NULL; /* the real one */
    begin(ROOT);
    assert_absent(sum(TOTAL));
    assert_contains(why(), "captured");
    end();
    tree_delete(dir, "proc/self");
    open_machine(dir, -1);
    assert_contains(why(), "No such file");
    end();
}

/* df has the same, of the file system that we are on. */
static void test_this_machine(void **state)
{
    (void)state;
    struct statfs fs;
    denied = NULL;
    open_machine("/", -1);
    assert_int_equal(statfs("/", &fs), 0);
    for (size_t i = 0; i < m.devices.count; i++)
        if (strcmp(m.devices.items[i].out.name, "/") == 0)
            assert_exactly(of("/", METRIC_SYSTEM_DISK_SPACE_TOTAL),
                           (double)fs.f_blocks * (double)fs.f_frsize);
    again(1);
    end();
}

static bool ask_none(void *data, const struct pr_local_mount *mount)
{
    *(size_t *)data += strlen(mount->point) + strlen(mount->device);
    return false;
}

static void test_any_bytes(void **state)
{
    (void)state;
    static const char good[] = ROOT "41 42 8:2 / /a\\040 rw x:1 - ext4 /dev/sda2 rw\n"
                                    "42 41 8:3 / /a\\040/b rw - xfs /dev/sda3 rw\n";
    for (size_t i = 0; i < sizeof good; i++) {
        char *copy = malloc(i ? i : 1);
        size_t total = 0;
        memcpy(copy, good, i);
        pr_local_mounts(copy, i, ask_none, &total);
        for (size_t k = 0; k < i; k++) {
            copy[k] = (char)(k % 3 ? '\0' : 0xff);
            pr_local_mounts(copy, i, ask_none, &total);
            copy[k] = good[k];
        }
        free(copy);
    }
}

/* --- pools ------------------------------------------------------------------------------------ */

static void test_zpool_lines(void **state)
{
    (void)state;
    static const char packet[] = "cpu 1.250000\ntank\t1000\t400\t600\nmy pool\t10\t-\t3\n\nx\n"
                                 "bad\tx\t1\t1\n\t1\t2\t3\ncut\t77";
    struct pr_scan s = pr_scan_of(packet, sizeof packet - 1);
    struct pr_zpool_head head;
    struct pr_zpool pool;
    assert_true(pr_zpool_head(&s, &head));
    assert_near(head.cpu, 1.25, 1e-12);
    assert_false(head.failed);
    assert_true(pr_zpool_next(&s, &pool));
    assert_string_equal(pool.name, "tank");
    assert_exactly(pool.used, 400);
    assert_exactly(pool.free, 600);
    assert_true(pr_zpool_next(&s, &pool));
    assert_string_equal(pool.name, "my pool");
    assert_absent(pool.used);
    assert_true(pr_zpool_next(&s, &pool));
    assert_string_equal(pool.name, "cut");
    assert_exactly(pool.total, 77);
    assert_absent(pool.free);
    assert_false(pr_zpool_next(&s, &pool));
    for (size_t i = 0; i < sizeof packet; i++) {
        char *copy = malloc(i ? i : 1);
        memcpy(copy, packet, i);
        s = pr_scan_of(copy, i);
        pr_zpool_head(&s, &head);
        while (pr_zpool_next(&s, &pool))
            ;
        free(copy);
    }
    s = pr_scan_of("cpu 0.5 failed\n", 15);
    assert_true(pr_zpool_head(&s, &head));
    assert_true(head.failed);
    s = pr_scan_of("tank\t1\t1\t1\n", 11);
    assert_false(pr_zpool_head(&s, &head));
}

static void send_text(int fd, const char *packet)
{
    assert_int_equal(send(fd, packet, strlen(packet), 0), strlen(packet));
}

static void test_pools_beside_file_systems(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    open_machine(FIXTURES "/zfs", ends[0]);
    assert_absent(sum(TOTAL));            /* half of it would be wrong */
    assert_int_equal(m.devices.count, 1); /* what is known is shown, and not summed up */
    assert_false(m.devices.items[0].out.counted);
    assert_contains(why(), "waiting for zpool list");
    assert_string_equal(asked,
                        "/boot/efi;"); /* through a root that is ZFS; datasets are not asked */
    send_text(ends[1], "cpu 0.010000\nrpool\t5000\t1000\t4000\ntank\t9000\t8000\t1000\n");
    again(0.1);
    assert_exactly(of("zfs:tank", METRIC_SYSTEM_DISK_SPACE_USED), 8000);
    assert_exactly(sum(TOTAL), 14000 + 1024000);
    assert_near(m.space_cpu, 0.01, 1e-9);
    send_text(ends[1], "cpu 0.020000\ntank\t9000\t8100\t900\n"); /* both are there: the later */
    send_text(ends[1], "cpu 0.030000\nrpool\t5000\t1500\t3500\n");
    again(0.1);
    assert_exactly(sum(TOTAL), 5000 + 1024000);
    send_text(ends[1], "cpu 0.040000 failed\n"); /* what was known stands */
    again(0.1);
    assert_exactly(of("zfs:rpool", METRIC_SYSTEM_DISK_SPACE_FREE), 3500);
    assert_near(m.space_cpu, 0.04, 1e-9);
    send_text(ends[1], "cpu 0.050000 failed\n"); /* but not for ever */
    again(0.1);
    assert_absent(sum(TOTAL));
    send_text(ends[1], "cpu 0.060000\nrpool\t5000\t1500\t3500\n");
    again(0.1);
    close(ends[1]);
    again(0.1);
    assert_exactly(of("zfs:rpool", METRIC_SYSTEM_DISK_SPACE_FREE), 3500);
    end();
    close(ends[0]);
}

static void test_a_helper_that_never_answers(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    close(ends[1]);
    open_machine(FIXTURES "/zfs", ends[0]);
    assert_exactly(sum(TOTAL), 1024000);
    end();
    close(ends[0]);
}

/* --- the helper ------------------------------------------------------------------------------- */

/* A zpool in a directory of its own that is all there is in PATH. */
static void fake_zpool(const char *body)
{
    char script[TREE_PATH * 3], path[TREE_PATH + 16];
    snprintf(script, sizeof script,
             "#!/bin/sh\ncd '%s' || exit 9\necho $PPID > helper\necho $$ > own\n"
             "echo \"$*\" > args\nenv > environment\necho x >> count\n"
             "n=$(wc -l < count)\n%s\n",
             dir, body);
    tree_write(dir, "bin/zpool", script);
    snprintf(path, sizeof path, "%s/bin/zpool", dir);
    assert_int_equal(chmod(path, 0755), 0);
    snprintf(path, sizeof path, "%s/bin", dir);
    assert_int_equal(setenv("PATH", path, 1), 0);
}

static int start(void)
{
    struct proctor_error err;
    assert_int_equal(pr_host_open(&host, FIXTURES "/zfs", &err), 0);
    int fd = pr_space_helper_start(&host);
    pr_host_close(&host);
    return fd;
}

static const char *packet_of(int fd)
{
    static char packet[65536];
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 8000), 1);
    ssize_t n = recv(fd, packet, sizeof packet - 1, 0);
    packet[n > 0 ? n : 0] = '\0';
    return packet;
}

static const char *noted(const char *name)
{
    static char content[4096];
    char path[TREE_PATH + 32];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, content, sizeof content - 1);
    content[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return content;
}

/* Gone, or a zombie that its new parent has not waited for yet. */
static bool is_gone(int pid)
{
    char path[64], stat[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    ssize_t n = read(fd, stat, sizeof stat - 1);
    close(fd);
    const char *state = n > 0 ? strrchr(stat, ')') : NULL;
    return !state || state[2] == 'Z' || state[2] == 'X';
}

static void assert_ends(int pid)
{
    assert_true(pid > 1);
    for (int i = 0; i < 500 && !is_gone(pid); i++)
        usleep(10000);
    assert_true(is_gone(pid));
}

#define TANK "printf 'tank\\t1000\\t%d\\t600\\n' $n"

static void test_the_helper(void **state)
{
    (void)state;
    fake_zpool(TANK);
    int fd = start();
    assert_true(fd >= 0);
    const char *packet = packet_of(fd);
    assert_int_equal(strncmp(packet, "cpu ", 4), 0);
    assert_contains(packet, "\ntank\t1000\t1\t600\n");
    assert_true(atof(packet + 4) > 0);
    assert_string_equal(noted("args"), "list -Hp -o name,size,allocated,free\n");
    assert_contains(noted("environment"), "LC_ALL=C\n");
    assert_contains(packet_of(fd), "tank\t1000\t2\t600\n"); /* a minute later */
    int helper = atoi(noted("helper"));
    assert_false(is_gone(helper));
    close(fd);
    assert_ends(helper);
}

static void test_it_is_not_our_child(void **state)
{
    (void)state;
    int subreaper = 0;
    char path[64], link[TREE_PATH] = "";
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    fake_zpool(TANK);
    int fd = start();
    packet_of(fd);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    assert_int_equal(subreaper, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    int helper = atoi(noted("helper"));
    assert_int_not_equal(getsid(helper), getsid(0));
    for (int i = 0; i < 3; i++) { /* and has nothing of ours */
        snprintf(path, sizeof path, "/proc/%d/fd/%d", helper, i);
        assert_true(readlink(path, link, sizeof link - 1) > 0);
        assert_string_equal(link, "/dev/null");
    }
    close(fd);
    assert_ends(helper);
}

static void test_it_has_nothing_of_ours(void **state)
{
    (void)state;
    char path[64];
    struct stat st;
    sigset_t set, old;
    int ends[2];
    assert_int_equal(pipe2(ends, 0), 0); /* not even what is not closed on exec */
    int high = fcntl(ends[1], F_DUPFD, 200);
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, &old);
    fake_zpool(TANK);
    int fd = start();
    packet_of(fd);
    int helper = atoi(noted("helper"));
    snprintf(path, sizeof path, "/proc/%d/fd/%d", helper, high);
    assert_int_equal(lstat(path, &st), -1);
    close(high);
    close(ends[1]);
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 0); /* nobody holds the other end */
    assert_int_equal(kill(helper, SIGTERM), 0);   /* and it can be ended */
    assert_ends(helper);
    sigprocmask(SIG_SETMASK, &old, NULL);
    close(ends[0]);
    close(fd);
}

static void test_asked_at_the_end(void **state)
{
    (void)state;
    fake_zpool(TANK);
    int fd = start();
    for (int i = 0; i < 500 && !*noted("count"); i++)
        usleep(10000);
    pr_space_helper_ask(fd);
    assert_true(pr_space_helper_wait(fd, 8000));
    open_machine(FIXTURES "/zfs", fd); /* the answers of before are there as well */
    assert_true(of("zfs:tank", METRIC_SYSTEM_DISK_SPACE_USED) >= 2);
    assert_ends(atoi(noted("helper")));
    int runs = (int)strlen(noted("count")) / 2;
    assert_exactly(of("zfs:tank", METRIC_SYSTEM_DISK_SPACE_USED), runs); /* the last one counts */
    end();
    close(fd);
}

static void test_a_wait_that_is_too_long(void **state)
{
    (void)state;
    fake_zpool("exec sleep 100");
    int fd = start();
    pr_space_helper_ask(fd);
    int64_t began = pr_clock_boot();
    assert_false(pr_space_helper_wait(fd, 50));
    assert_true(pr_clock_boot() - began < 5 * NS_PER_S);
    int helper = atoi(noted("helper"));
    close(fd);
    for (int i = 0; i < 500 && helper == 0; i++, helper = atoi(noted("helper")))
        usleep(10000);
    assert_ends(helper);
    assert_ends(atoi(noted("own"))); /* it takes its zpool along */
}

static void test_a_slow_zpool_is_ended(void **state)
{
    (void)state;
    fake_zpool("sleep 100 & echo $! > sleeper; wait");
    int fd = start();
    const char *packet = packet_of(fd);
    assert_contains(packet, " failed\n");
    assert_null(strchr(packet, '\t'));
    assert_ends(atoi(noted("own")));
    assert_ends(atoi(noted("sleeper")));
    fake_zpool(TANK); /* the next one is better */
    do
        packet = packet_of(fd);
    while (strstr(packet, "failed"));
    assert_contains(packet, "tank\t");
    int helper = atoi(noted("helper"));
    close(fd);
    assert_ends(helper);
}

static void test_a_zpool_that_fails(void **state)
{
    (void)state;
    fake_zpool(TANK "; echo 'permission denied' >&2; exit 1");
    int fd = start();
    const char *packet = packet_of(fd);
    assert_contains(packet, " failed\n");
    assert_null(strstr(packet, "tank"));
    int helper = atoi(noted("helper"));
    close(fd);
    assert_ends(helper);
}

static void test_nothing_to_ask(void **state)
{
    (void)state;
    struct proctor_error err;
    setenv("PATH", "bin:.::/nonexistent", 1); /* nothing that is not absolute */
    if (access("/sbin/zpool", X_OK) < 0 && access("/usr/sbin/zpool", X_OK) < 0)
        assert_int_equal(start(), -1);
    fake_zpool(TANK);
    assert_int_equal(pr_host_open(&host, dir, &err), 0); /* no zfs in proc/filesystems */
    assert_int_equal(pr_space_helper_start(&host), -1);
    tree_write(dir, "proc/filesystems", "nodev\tzfsx\n\text4\nnodev\tnozfs\n");
    assert_int_equal(pr_space_helper_start(&host), -1);
    pr_host_close(&host);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_values),
        TEST(test_once_a_second),
        TEST(test_each_device_once),
        TEST(test_the_first_that_answers),
        TEST(test_one_that_stops_to_answer),
        TEST(test_escapes),
        TEST(test_only_local_types),
        TEST(test_below_what_may_hang),
        TEST(test_hidden),
        TEST(test_images_are_not_devices),
        TEST(test_mounts_come_and_go),
        TEST(test_long_names),
        TEST(test_a_mount_that_did_not_come_along),
        TEST(test_reasons),
        TEST(test_this_machine),
        TEST(test_any_bytes),
        TEST(test_zpool_lines),
        TEST(test_pools_beside_file_systems),
        TEST(test_a_helper_that_never_answers),
        TEST(test_the_helper),
        TEST(test_it_is_not_our_child),
        TEST(test_it_has_nothing_of_ours),
        TEST(test_asked_at_the_end),
        TEST(test_a_wait_that_is_too_long),
        TEST(test_a_slow_zpool_is_ended),
        TEST(test_a_zpool_that_fails),
        TEST(test_nothing_to_ask),
    };
    return cmocka_run_group_tests_name("space", tests, NULL, NULL);
}
