/* SPDX-License-Identifier: Apache-2.0 */
/* A cgroup and those below it: cgroup.procs names the members of one group alone, in no order. The
 * number of links of a group's directory tells for half a microsecond whether it has got or lost a
 * group below. Over when it has become empty, or is gone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/cgroup_path.h"
#include "target/listing.h"
#include "target/targets.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/scan.h"

#define PATH_SIZE 4400

/* One group of the subtree, the first is the one that was named. */
struct node {
    char *dir;   /* below the host's root */
    int procs;   /* held, -1 where it is not */
    ino_t inode; /* another one is another group of the same name */
    nlink_t links;
    bool listed; /* the groups below it are known */
    bool gone;
};

struct cgroup {
    struct pr_target target;
    struct pr_target_setting setting;
    struct pr_listing listing; /* for its memory of when we looked; nothing is listed */
    struct node *nodes;
    size_t count, cap;
    size_t members; /* at the last look */
    bool failed;    /* somebody may not have been seen at that */
    bool had_members;
    bool may_hold; /* files of version 2. Those of version 1 say the same again and again, as long
                      as somebody asks more than once a second */
};

/* --- the groups ------------------------------------------------------------------------------- */

static bool add_node(struct cgroup *c, const char *dir)
{
    for (size_t i = 0; i < c->count; i++)
        if (!c->nodes[i].gone && strcmp(c->nodes[i].dir, dir) == 0)
            return true;
    if (c->count == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 8;
        struct node *nodes = realloc(c->nodes, cap * sizeof *nodes);
        if (!nodes)
            return false;
        c->nodes = nodes;
        c->cap = cap;
    }
    struct node node = {.dir = strdup(dir), .procs = -1};
    if (!node.dir)
        return false;
    c->nodes[c->count++] = node;
    return true;
}

static void close_node(struct node *n, struct pr_host *host)
{
    if (n->procs >= 0) {
        close(n->procs);
        host->holding--;
    }
    n->procs = -1;
}

/* Groups that were removed; the one that was named stays. True where there were any: then others
 * may have come in their place, and the number of links tells nothing. */
static bool drop_gone(struct cgroup *c, struct pr_host *host)
{
    size_t kept = 0, before = c->count;
    for (size_t i = 0; i < c->count; i++) {
        if (!c->nodes[i].gone || i == 0) {
            c->nodes[kept++] = c->nodes[i];
            continue;
        }
        close_node(&c->nodes[i], host);
        free(c->nodes[i].dir);
    }
    c->count = kept;
    return kept < before;
}

static void list_below(struct cgroup *c, const struct pr_tick *t, size_t at)
{
    char path[PATH_SIZE];
    int fd = openat(t->host->root, c->nodes[at].dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t n;
    if (fd < 0)
        return;
    while ((n = getdents64(fd, t->text, t->text_size)) > 0)
        for (ssize_t pos = 0; pos < n;) {
            const struct dirent64 *entry = (const void *)(t->text + pos);
            pos += entry->d_reclen;
            if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", c->nodes[at].dir, entry->d_name);
            add_node(c, path);
        }
    close(fd);
}

static void look_at_node(struct node *n, struct pr_host *host)
{
    struct stat st;
    n->gone = fstatat(host->root, n->dir, &st, 0) < 0;
    if (n->gone)
        return;
    if (st.st_ino != n->inode)
        close_node(n, host);
    n->listed &= st.st_ino == n->inode && st.st_nlink == n->links && host->held;
    n->inode = st.st_ino;
    n->links = st.st_nlink;
}

/* Nodes are added behind, so that one pass finds all that is new at any depth. */
static void find_groups(struct cgroup *c, const struct pr_tick *t)
{
    for (size_t i = 0; i < c->count; i++)
        look_at_node(&c->nodes[i], t->host);
    bool anew = drop_gone(c, t->host);
    for (size_t i = 0; i < c->count; i++) {
        if (i > 0 && !c->nodes[i].inode)
            look_at_node(&c->nodes[i], t->host);
        if (c->nodes[i].listed && !anew)
            continue;
        c->nodes[i].listed = true;
        list_below(c, t, i);
    }
}

/* --- their members ---------------------------------------------------------------------------- */

/* The file of a group's members: held, or to be closed by give_back. Descriptor or -errno. */
static int open_procs(const struct cgroup *c, struct pr_host *host, struct node *n)
{
    char path[PATH_SIZE];
    if (n->procs >= 0)
        return n->procs;
    snprintf(path, sizeof path, "%s/cgroup.procs", n->dir);
    int fd = pr_fs_open(host->root, path);
    if (fd >= 0 && c->may_hold && host->holding < host->hold_limit) {
        host->holding++;
        n->procs = fd;
    }
    return fd;
}

/* Who started after our last look cannot have used anything elsewhere that we could tell apart. */
static bool is_late(const struct cgroup *c, const struct pr_host *host,
                    const struct pr_stat_line *line)
{
    return !host->foreign && line->start < c->listing.born_after;
}

/* True where it lives: version 1 names zombies, too, until somebody waits for them. */
static bool meet(struct cgroup *c, const struct pr_tick *t, struct pr_entities *set, pid_t pid)
{
    struct pr_candidate found = {0};
    struct pr_entity *e = pr_entities_find(set, pid);
    if (e) {
        e->listed_at = t->now;
        return !pr_entity_is_dead(e);
    }
    if (pid == c->setting.self || pr_listing_stat(t->host, pid, &found.line) < 0 ||
        pr_stat_line_is_dead(&found.line))
        return false;
    found.late = is_late(c, t->host, &found.line);
    if (pr_listing_join(&c->listing, set, &found, false) && (e = pr_entities_find(set, pid)))
        e->listed_at = t->now;
    return true;
}

static void meet_all(struct cgroup *c, const struct pr_tick *t, struct pr_entities *set,
                     struct pr_scan s)
{
    struct pr_scan line;
    uint64_t pid;
    while (pr_scan_line(&s, &line))
        if (pr_scan_u64(&line, &pid) && pid <= INT32_MAX) /* 0 is of another pid namespace */
            c->members += pid == 0 || meet(c, t, set, (pid_t)pid);
}

/* Of a group with very many members in pieces, each up to its last whole line. */
static int read_members(struct cgroup *c, const struct pr_tick *t, struct pr_entities *set,
                        struct node *n)
{
    int fd = open_procs(c, t->host, n), r = fd < 0 ? fd : 0;
    ssize_t len = 1;
    for (off_t at = 0; r == 0 && len > 0; at += len) {
        len = pread(fd, t->text, t->text_size, at);
        r = len < 0 ? -errno : 0;
        const char *end = len > 0 ? memrchr(t->text, '\n', (size_t)len) : NULL;
        len = end ? end + 1 - t->text : 0;
        meet_all(c, t, set, pr_scan_of(t->text, (size_t)len));
    }
    if (fd >= 0 && fd != n->procs)
        close(fd);
    if (r == -ENODEV || r == -ENOENT) {
        close_node(n, t->host); /* another group may be there by the next look */
        return 0;
    }
    return r == -EOPNOTSUPP ? 0 : r; /* threads, whose processes are in the group above */
}

static int cgroup_update(struct pr_target *target, const struct pr_tick *t, struct pr_entities *set)
{
    struct cgroup *c = (struct cgroup *)target;
    int r = 0;
    c->members = 0;
    c->failed = false;
    find_groups(c, t);
    for (size_t i = 0; i < c->count; i++) {
        int code = read_members(c, t, set, &c->nodes[i]);
        r = r < 0 ? r : code;
    }
    c->failed = r < 0;
    for (size_t i = 0; i < set->count && !c->failed; i++)
        set->items[i]->left = set->items[i]->listed_at != t->now;
    c->had_members |= c->members > 0;
    c->listing.looked = true;
    if (!t->host->foreign)
        c->listing.born_after = (uint64_t)(t->now / (NS_PER_S / t->host->ticks_per_second));
    return r;
}

static bool cgroup_over(const struct pr_target *target, const struct pr_entities *set)
{
    const struct cgroup *c = (const struct cgroup *)target;
    (void)set;
    return !c->failed && (c->nodes[0].gone || (c->had_members && c->members == 0));
}

static void cgroup_free(struct pr_target *target, bool close_files)
{
    struct cgroup *c = (struct cgroup *)target;
    for (size_t i = 0; i < c->count; i++) {
        if (close_files && c->nodes[i].procs >= 0)
            close(c->nodes[i].procs);
        free(c->nodes[i].dir);
    }
    free(c->nodes);
    pr_listing_done(&c->listing, close_files);
    free(c);
}

static const struct pr_target_ops ops = {
    .update = cgroup_update, .over = cgroup_over, .free = cgroup_free, .may_be_empty = true};

/* --- finding it ------------------------------------------------------------------------------- */

/* Length of its list of members, or -errno. */
static ssize_t has_members(const struct pr_host *host, const char *dir)
{
    char path[PATH_SIZE], text[16];
    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    return pr_fs_read(host->root, path, text, sizeof text);
}

/* A group may be there in several hierarchies, and processes in one of them only: the first with
 * members, else the first. Who names a directory means that one. */
static bool find_dir(const struct pr_host *host, const char *name, char *ret_dir, size_t size)
{
    static const char *const controllers[] = {"",        "memory",      "cpuacct", "cpu",
                                              "pids",    "blkio",       "cpuset",  "devices",
                                              "freezer", "name=systemd"};
    char dir[PATH_SIZE];
    bool found = false;
    if (*name == '/' && has_members(host, name + 1) != -ENOENT)
        return pr_cgroup_named(host, name, NULL, ret_dir, size);
    for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
        if (!pr_cgroup_named(host, name, controllers[i], dir, sizeof dir))
            continue;
        bool populated = has_members(host, dir) > 0;
        if (!found || populated)
            snprintf(ret_dir, size, "%s", dir);
        found = true;
        if (populated)
            break;
    }
    return found;
}

static bool is_version_2(const struct pr_host *host, const char *dir)
{
    struct statfs fs;
    int fd = openat(host->root, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is = fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
    if (fd >= 0)
        close(fd);
    return is;
}

int pr_cgroup_new(const struct pr_target_setting *setting, const struct pr_host *host,
                  struct pr_target **ret_target, struct proctor_error *err)
{
    char dir[PATH_SIZE];
    if (!find_dir(host, setting->cgroup, dir, sizeof dir))
        return pr_error(err, ESRCH,
                        "there is no cgroup '%.120s'; name it as in /proc/PID/cgroup, or by its "
                        "directory in /sys/fs/cgroup",
                        setting->cgroup);
    ssize_t members = has_members(host, dir);
    if (members == -EOPNOTSUPP)
        return pr_error(err, EINVAL,
                        "cgroup '%.120s' is a threaded one: name the group above it, which has the "
                        "processes",
                        setting->cgroup);
    struct cgroup *c = calloc(1, sizeof *c);
    if (!c)
        return pr_error(err, ENOMEM, "out of memory");
    *c = (struct cgroup){.target.ops = &ops, .setting = *setting};
    c->listing.loadavg = c->listing.list = -1;
    c->may_hold = host->held && is_version_2(host, dir);
    c->had_members = members > 0; /* it may be empty before we look */
    if (!add_node(c, dir)) {
        cgroup_free(&c->target, true);
        return pr_error(err, ENOMEM, "out of memory");
    }
    *ret_target = &c->target;
    return 0;
}
