/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/diskstats: major minor name, then reads merged sectors ms, writes merged sectors ms and
 * more. A sector is 512 bytes here whatever the disk's own are. Disks, their partitions, and
 * devices that only pass on to others stand side by side: each byte is to be counted once, where it
 * comes to a disk. Whole disks are those that /sys/block has. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/machine.h"
#include "source/parse.h"
#include "source/roster.h"
#include "util/fs.h"

#define SECTOR 512.0
#define BLOCK  "sys/block"
#define PATH   (sizeof BLOCK + DEVICE_NAME + 16)

enum verdict { PARTITION, NOISE, PASSES_ON, WHOLE };

/* What a name says: # is a number, @ letters, * anything. Mappers and arrays are known by name
 * besides, since they are there before their slaves are. The disks below are asked for only where
 * /sys/block is not there: then disks with other names are missed, rather than counted twice. */
static const struct {
    const char *like;
    enum verdict verdict;
} names[] = {
    {"loop#*", NOISE},   {"ram#*", NOISE},     {"zram#*", NOISE},      {"zd#*", NOISE},
    {"dm-#", PASSES_ON}, {"md#", PASSES_ON},   {"bcache#", PASSES_ON}, {"drbd#", PASSES_ON},
    {"sd@", WHOLE},      {"vd@", WHOLE},       {"xvd@", WHOLE},        {"hd@", WHOLE},
    {"nvme#n#", WHOLE},  {"nvme#c#n#", WHOLE}, {"mmcblk#", WHOLE},
};

static bool is_like(const char *name, const char *like)
{
    for (; *like && *like != '*'; like++) {
        const char *class = *like == '#' ? "0123456789" : "abcdefghijklmnopqrstuvwxyz";
        size_t n = *like == '#' || *like == '@' ? strspn(name, class) : *name == *like;
        if (n == 0)
            return false;
        name += n;
    }
    return *like || !*name;
}

static enum verdict by_name(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_like(name, names[i].like))
            return names[i].verdict;
    return PARTITION;
}

static bool is_there(const struct pr_host *host, const char *path)
{
    struct stat st;
    return fstatat(host->root, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool found_one(void *found, const char *name)
{
    (void)name;
    *(bool *)found = true;
    return false;
}

static enum verdict by_sysfs(const struct pr_tick *t, const char *name)
{
    char path[PATH];
    enum verdict said = by_name(name);
    bool slaves = false;
    if (said == NOISE)
        return NOISE;
    int n = snprintf(path, sizeof path, BLOCK "/%s", name);
    for (char *p = path + sizeof BLOCK; (p = strchr(p, '/'));)
        *p = '!'; /* cciss/c0d0 */
    if (!is_there(t->host, path))
        return PARTITION;
    snprintf(path + n, sizeof path - (size_t)n, "/slaves");
    pr_fs_list(t->host->root, path, t->text, t->text_size, found_one, &slaves);
    return slaves || said == PASSES_ON ? PASSES_ON : WHOLE;
}

/* NVMe multipath: nvme0c1n2 is a path to nvme0n2. Paths have always counted, and by now heads do
 * so, too. */
static void pass_on_to_paths(struct pr_roster *r)
{
    char head[DEVICE_NAME];
    for (size_t i = 0; i < r->count; i++) {
        const char *name = r->lines[i].name;
        if (!is_like(name, "nvme#c#n#"))
            continue;
        snprintf(head, sizeof head, "%.*s%s", (int)strcspn(name, "c"), name, strrchr(name, 'n'));
        for (size_t k = 0; k < r->count; k++)
            if (strcmp(r->lines[k].name, head) == 0)
                r->lines[k].counted = false;
    }
}

static void find_out(struct pr_roster *r, const struct pr_tick *t)
{
    bool sysfs = is_there(t->host, BLOCK);
    for (size_t i = 0; i < r->count; i++) {
        struct pr_roster_line *line = &r->lines[i];
        enum verdict verdict = sysfs ? by_sysfs(t, line->name) : by_name(line->name);
        line->shown = verdict >= PASSES_ON;
        line->counted = verdict == WHOLE;
    }
    pass_on_to_paths(r);
}

bool pr_diskstats_line(struct pr_scan line, struct pr_scan *ret_name, double *ret_bytes)
{
    enum { MAJOR, MINOR, NAME, READ = 5, WRITTEN = 9, FIELDS };
    uint64_t field[FIELDS];
    for (int i = 0; i < FIELDS; i++)
        if (i == NAME ? !pr_scan_word(&line, ret_name) : !pr_scan_u64(&line, &field[i]))
            return false;
    ret_bytes[0] = (double)field[READ] * SECTOR;
    ret_bytes[1] = (double)field[WRITTEN] * SECTOR;
    return true;
}

static ssize_t text(const struct pr_tick *t, int *held)
{
    return pr_machine_text(t, held, t->host->proc, "diskstats", true);
}

static int read_it(struct pr_machine *m, const struct pr_tick *t, void **state)
{
    static const struct pr_roster_rules rules = {
        .source = MACHINE_sys_disk,
        .kind = DEVICE_DISK,
        .metric = {METRIC_SYSTEM_DISK_READ, METRIC_SYSTEM_DISK_WRITE},
        .text = text,
        .line = pr_diskstats_line,
        .find_out = find_out,
        .none = "it has no disk",
    };
    return pr_roster_read(&rules, m, t, state);
}

const struct pr_machine_source pr_machine_source_sys_disk = {
    .name = "/proc/diskstats", .gives = READ_DISKS, .read = read_it, .close = pr_roster_close};
