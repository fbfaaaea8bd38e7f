/* SPDX-License-Identifier: Apache-2.0 */
/* statfs of a network or FUSE file system waits for its server, and so does every path that leads
 * through one: a local disk below a dead NFS mount cannot be asked either. So only types that are
 * known to answer are asked, and only where all on the way to them are known, too.
 *
 * The way is that of the kernel: from the root into whatever is mounted first on the path, and on
 * from there. Where it ends in another mount than the one that is meant, that one is hidden. */
#include "source/local_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "source/mountinfo.h"

#define STEPS_MOST 256 /* mounts on one path; text that is no kernel's may go in circles */

/* On block devices of this machine. */
static const char *const local_types[] = {
    "ext2",  "ext3", "ext4",   "xfs",      "btrfs",    "f2fs",    "vfat", "exfat",
    "ntfs3", "jfs",  "nilfs2", "reiserfs", "bcachefs", "hfsplus", "udf",  NULL};

/* Have no size of their own that matters, but answer. A ZFS pool is asked by other means. */
static const char *const harmless_types[] = {
    "binfmt_misc", "bpf",      "cgroup",   "cgroup2",    "configfs",  "debugfs",
    "devpts",      "devtmpfs", "efivarfs", "erofs",      "fusectl",   "hugetlbfs",
    "iso9660",     "mqueue",   "nsfs",     "overlay",    "proc",      "pstore",
    "ramfs",       "resctrl",  "rootfs",   "securityfs", "selinuxfs", "squashfs",
    "sysfs",       "tmpfs",    "tracefs",  "zfs",        NULL};

struct entry {
    struct pr_mount m;
    const char *point, *device;
    size_t len; /* of point */
    bool local, done;
};

struct table {
    struct entry *items;
    size_t count;
    char *strings;
};

static bool is_one_of(struct pr_scan type, const char *const *types)
{
    for (; *types; types++)
        if (pr_scan_equals(type, *types))
            return true;
    return false;
}

/* An image in a file: its space is that of the file system that the file is in. */
static bool is_image(struct pr_scan source)
{
    return pr_scan_prefix(&source, "/dev/loop");
}

/* --- the table -------------------------------------------------------------------------------- */

static char *keep(struct table *t, size_t *used, struct pr_scan s)
{
    char *at = t->strings + *used;
    /* Unescaped it is never longer. */
    pr_mount_unescape(s, at, (size_t)(s.end - s.p) + 1);
    *used += strlen(at) + 1;
    return at;
}

static int fill(struct table *t, const char *text, size_t len)
{
    struct pr_scan s = pr_scan_of(text, len);
    struct pr_mount m;
    size_t lines = 1, used = 0;
    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    t->items = calloc(lines, sizeof *t->items);
    t->strings = malloc(len + 2 * lines); /* two of each line */
    if (!t->items || !t->strings)
        return -ENOMEM;
    while (pr_mount_next(&s, &m)) {
        struct entry *e = &t->items[t->count++];
        e->m = m;
        e->point = keep(t, &used, m.point);
        e->len = strlen(e->point);
        e->device = keep(t, &used, m.device);
        e->local = is_one_of(m.type, local_types) && !is_image(m.source) && *e->point == '/';
    }
    return 0;
}

/* --- the way ---------------------------------------------------------------------------------- */

/* Is it mounted on the path, or at its end? */
static bool is_on(const struct entry *e, const char *path)
{
    size_t n = e->len == 1 ? 0 : e->len;
    return strncmp(e->point, path, n) == 0 && (path[n] == '/' || !path[n]);
}

static bool is_first(const struct table *t, const struct entry *e)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->items[i].m.id == e->m.parent && &t->items[i] != e)
            return false;
    return true;
}

/* Where the path leads from a mount: into the nearest that is mounted in it. NULL: nowhere else. */
static const struct entry *step(const struct table *t, const struct entry *from, const char *path)
{
    const struct entry *next = NULL;
    for (size_t i = 0; i < t->count; i++) {
        const struct entry *e = &t->items[i];
        if (e == from || (from && e->m.parent != from->m.id) || (next && e->len > next->len) ||
            !is_on(e, path))
            continue;
        if (from || is_first(t, e))
            next = e;
    }
    return next;
}

static bool is_reachable(const struct table *t, const struct entry *e)
{
    const struct entry *at = step(t, NULL, e->point);
    for (int steps = 0; at && steps < STEPS_MOST; steps++) {
        if (at->len < e->len && !is_one_of(at->m.type, local_types) &&
            !is_one_of(at->m.type, harmless_types))
            return false;
        const struct entry *next = step(t, at, e->point);
        if (!next)
            return at == e;
        at = next;
    }
    return false;
}

static void mark_device(struct table *t, const char *device)
{
    for (size_t i = 0; i < t->count; i++)
        t->items[i].done |= strcmp(t->items[i].device, device) == 0;
}

int pr_local_mounts(const char *text, size_t len,
                    bool (*ask)(void *data, const struct pr_local_mount *mount), void *data)
{
    struct table t = {0};
    int r = fill(&t, text, len);
    for (size_t i = 0; r == 0 && i < t.count; i++) {
        const struct entry *e = &t.items[i];
        struct pr_local_mount mount = {e->point, e->device};
        if (e->local && !e->done && is_reachable(&t, e) && ask(data, &mount))
            mark_device(&t, e->device);
    }
    free(t.items);
    free(t.strings);
    return r;
}

int pr_space_stat(const struct pr_host *host, const char *path, struct statfs *ret)
{
    if (!host->held)
        return -ENOTSUP;
    if (!path[1])
        return fstatfs(host->root, ret) < 0 ? -errno : 0;
    int fd = openat(host->root, path + 1, O_PATH | O_CLOEXEC);
    int r = fd < 0 || fstatfs(fd, ret) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return r;
}
