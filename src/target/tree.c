/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery: the last pid in /proc/loadavg tells for a microsecond whether anything was forked
 * since the last look. Only then /proc is listed, and only the stat files of pids that are new to
 * us are read; a pid is known by its directory's inode number, which changes when the pid is used
 * again. Children of any thread are found, since every child names its parent process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/stat_line.h"
#include "core/target.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/map.h"
#include "util/scan.h"

struct candidate {
    struct pr_stat_line line;
    uint64_t inode;
};

struct tree {
    struct pr_target target;
    struct pr_tree_setting setting;
    struct pr_stat_line root;
    int loadavg, list; /* held descriptors, -1 where they cannot be */
    uint64_t last_pid;
    uint64_t born_after;       /* ticks since boot: whoever started earlier was there before us */
    bool looked;               /* at least once */
    bool look_again;           /* a parent was not known yet */
    struct pr_map known, next; /* pid -> inode of all that have been placed */
    struct candidate *candidates;
    size_t candidate_count, candidate_cap;
};

static int read_stat_line(const struct pr_host *host, pid_t pid, struct pr_stat_line *ret)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "%d/stat", (int)pid);
    ssize_t n = pr_fs_read(host->proc, path, text, sizeof text);
    if (n < 0)
        return (int)n;
    return pr_stat_line_parse(text, (size_t)n, ret) && ret->pid == pid ? 0 : -EIO;
}

/* --- has anything been forked? ---------------------------------------------------------------- */

static bool may_have_forked(struct tree *tree, const struct pr_tick *t)
{
    uint64_t last_pid = 0;
    ssize_t n = tree->loadavg < 0 ? -1 : pr_fs_pread(tree->loadavg, t->text, t->text_size);
    if (n <= 0)
        return true;
    const char *space = memrchr(t->text, ' ', (size_t)n);
    struct pr_scan s =
        pr_scan_of(space ? space : t->text, space ? (size_t)(t->text + n - space) : 0);
    if (!pr_scan_u64(&s, &last_pid) || last_pid == 0) /* faked by a container's file system */
        return true;
    bool changed = last_pid != tree->last_pid;
    tree->last_pid = last_pid;
    return changed;
}

/* --- who is new? ------------------------------------------------------------------------------ */

static struct candidate *next_candidate(struct tree *tree)
{
    if (tree->candidate_count == tree->candidate_cap) {
        size_t cap = tree->candidate_cap ? tree->candidate_cap * 2 : 256;
        struct candidate *more = realloc(tree->candidates, cap * sizeof *more);
        if (!more)
            return NULL;
        tree->candidates = more;
        tree->candidate_cap = cap;
    }
    return &tree->candidates[tree->candidate_count];
}

static void list_entry(struct tree *tree, const struct pr_tick *t, const struct dirent64 *entry)
{
    struct pr_scan s = pr_scan_of(entry->d_name, strlen(entry->d_name));
    uint64_t pid, inode;
    if (!pr_scan_u64(&s, &pid) || s.p != s.end || pid == 0 || pid > INT32_MAX)
        return;
    bool before_us = tree->setting.held && !tree->looked && (pid_t)pid != tree->root.pid;
    if (before_us || (pr_map_get(&tree->known, pid, &inode) && inode == entry->d_ino)) {
        pr_map_set(&tree->next, pid, entry->d_ino);
        return;
    }
    struct candidate *c = next_candidate(tree);
    int r = c ? read_stat_line(t->host, (pid_t)pid, &c->line) : -ENOMEM;
    if (r == 0) {
        c->inode = entry->d_ino;
        tree->candidate_count++;
    } else if (r != -ENOENT && r != -ESRCH) {
        tree->look_again = true;
    }
}

static int list_all(struct tree *tree, const struct pr_tick *t)
{
    int fd = tree->list;
    ssize_t n;
    if (fd < 0)
        fd = openat(t->host->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    else
        lseek(fd, 0, SEEK_SET);
    if (fd < 0)
        return -errno;
    while ((n = getdents64(fd, t->text, t->text_size)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *entry = (const void *)(t->text + at);
            list_entry(tree, t, entry);
            at += entry->d_reclen;
        }
    int r = n < 0 ? -errno : 0;
    if (fd != tree->list)
        close(fd);
    return r;
}

/* --- is it ours? ------------------------------------------------------------------------------ */

enum place { OURS, NOT_OURS, UNKNOWN };

static bool is_stranger(const struct tree *tree, pid_t pid)
{
    for (size_t i = 0; i < tree->setting.stranger_count; i++)
        if (tree->setting.strangers[i] == pid)
            return true;
    return false;
}

static enum place place_of(const struct tree *tree, const struct pr_entities *set,
                           const struct pr_stat_line *line)
{
    uint64_t inode;
    if (line->pid == tree->setting.self || is_stranger(tree, line->pid))
        return NOT_OURS;
    if (tree->setting.adopter && line->ppid == tree->setting.adopter)
        return OURS;
    if (pr_entities_find(set, line->ppid))
        return OURS;
    if (line->ppid <= 1 || line->ppid == tree->setting.self ||
        pr_map_get(&tree->next, (uint64_t)line->ppid, &inode))
        return NOT_OURS;
    return UNKNOWN;
}

static bool join(struct tree *tree, struct pr_entities *set, const struct pr_stat_line *line)
{
    struct pr_entity *e = pr_entities_find(set, line->pid);
    if (e && e->start == line->start)
        return true;
    e = pr_entities_add(set, line->pid, line->start);
    if (!e)
        return false;
    e->ppid = line->ppid;
    e->state = line->state;
    e->born_inside = tree->setting.fresh || (tree->looked && line->start >= tree->born_after);
    memcpy(e->comm, line->comm, sizeof e->comm);
    return true;
}

/* Members whose pid is another's by now must not pass for the parents of its children. */
static void part_with_reused(struct tree *tree, struct pr_entities *set)
{
    for (size_t i = 0; i < tree->candidate_count; i++) {
        const struct pr_stat_line *line = &tree->candidates[i].line;
        struct pr_entity *e = pr_entities_find(set, line->pid);
        if (e && e->start != line->start)
            pr_entities_vanish(set, e);
    }
}

/* Places candidates until nothing moves any more: a child may be listed before its parent. */
static void place_all(struct tree *tree, struct pr_entities *set)
{
    bool moved = true;
    while (moved) {
        size_t left = 0;
        moved = false;
        for (size_t i = 0; i < tree->candidate_count; i++) {
            struct candidate *c = &tree->candidates[i];
            enum place place = place_of(tree, set, &c->line);
            if (place == UNKNOWN || (place == OURS && !join(tree, set, &c->line))) {
                tree->candidates[left++] = *c;
                continue;
            }
            pr_map_set(&tree->next, (uint64_t)c->line.pid, c->inode);
            moved = true;
        }
        tree->candidate_count = left;
    }
    /* A parent that is in neither list was born, or died, while we looked. */
    tree->look_again |= tree->candidate_count > 0;
    tree->candidate_count = 0;
}

static void start_over(struct pr_map *map)
{
    if (map->cap)
        memset(map->slots, 0, map->cap * sizeof *map->slots);
    map->count = 0;
}

static int tree_update(struct pr_target *target, const struct pr_tick *t, struct pr_entities *set)
{
    struct tree *tree = (struct tree *)target;
    if (!tree->looked && !join(tree, set, &tree->root))
        return -ENOMEM;
    if (tree->setting.alone || (!may_have_forked(tree, t) && !tree->look_again)) {
        tree->looked = true;
        return 0;
    }
    if (!tree->looked) /* processes of others come and go, too: room for more than there are now */
        for (int i = 0; i < 2; i++)
            pr_map_reserve(i ? &tree->known : &tree->next, 1024);
    tree->look_again = false;
    int r = list_all(tree, t);
    if (r < 0)
        return r;
    part_with_reused(tree, set);
    place_all(tree, set);
    struct pr_map known = tree->known;
    tree->known = tree->next;
    tree->next = known;
    start_over(&tree->next);
    tree->looked = true;
    return 0;
}

static bool tree_over(const struct pr_target *target, const struct pr_entities *set)
{
    const struct tree *tree = (const struct tree *)target;
    for (size_t i = 0; i < set->count; i++) {
        const struct pr_entity *e = set->items[i];
        bool alive = e->life == LIFE_ALIVE && !pr_entity_is_dead(e);
        if (alive &&
            (tree->setting.wait_tree || (e->pid == tree->root.pid && e->start == tree->root.start)))
            return false;
    }
    return tree->looked;
}

static void tree_free(struct pr_target *target, bool close_files)
{
    struct tree *tree = (struct tree *)target;
    if (close_files && tree->loadavg >= 0)
        close(tree->loadavg);
    if (close_files && tree->list >= 0)
        close(tree->list);
    pr_map_done(&tree->known);
    pr_map_done(&tree->next);
    free(tree->candidates);
    free(tree);
}

static const struct pr_target_ops ops = {tree_update, tree_over, tree_free};

/* The process that a thread belongs to; 0 where that cannot be read. */
static pid_t thread_group(const struct pr_host *host, pid_t pid)
{
    char path[32], text[4096];
    static const struct pr_scan_row row = {"Tgid:", 0, 1};
    double group[1] = {0};
    snprintf(path, sizeof path, "%d/status", (int)pid);
    ssize_t n = pr_fs_read(host->proc, path, text, sizeof text);
    if (n > 0)
        pr_scan_keyed(text, (size_t)n, &row, 1, group);
    return (pid_t)group[0];
}

int pr_tree_new(const struct pr_tree_setting *setting, const struct pr_host *host,
                struct pr_target **ret_target, struct proctor_error *err)
{
    struct tree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return pr_error(err, ENOMEM, "out of memory");
    *tree = (struct tree){.target.ops = &ops, .setting = *setting, .loadavg = -1, .list = -1};
    int r = read_stat_line(host, setting->root, &tree->root);
    if (r == 0 && (tree->root.state == 'Z' || tree->root.state == 'X'))
        r = -ESRCH;
    if (r < 0) {
        free(tree);
        return r == -ENOENT || r == -ESRCH
                   ? pr_error(err, ESRCH, "there is no process %d%s", (int)setting->root,
                              pr_host_hidden(host))
                   : pr_error(err, -r, "process %d: %s%s", (int)setting->root,
                              r == -EIO ? "its stat file is not understood" : strerror(-r),
                              pr_host_hidden(host));
    }
    pid_t group = thread_group(host, setting->root);
    if (group && group != setting->root) {
        free(tree);
        return pr_error(err, ESRCH, "%d is a thread of process %d", (int)setting->root, (int)group);
    }
    if (host->held) {
        /* Its last pid is one of the reader's namespace, whatever is mounted. */
        tree->loadavg = host->foreign ? -1 : pr_fs_open(host->proc, "loadavg");
        tree->list = openat(host->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (!host->foreign)
        tree->born_after = (uint64_t)(pr_clock_boot() / (NS_PER_S / host->ticks_per_second));
    *ret_target = &tree->target;
    return 0;
}
