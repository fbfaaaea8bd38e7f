/* SPDX-License-Identifier: Apache-2.0 */
#include "target/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/loadavg.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/scan.h"

/* A process finds its group and its program soon after it was forked; whoever changes later is
 * found at the next look at all. */
#define YOUNG_FOR (2 * NS_PER_S)
#define ALL_EVERY (10 * NS_PER_S)
#define IN_FLIGHT 16 /* pids that may have been handed out without a process to be seen yet */
#define ASK_LEAST 64 /* pids that are asked for whatever a listing would cost */
#define SHORT     (NS_PER_S / 20) /* a job that lasts no longer meets few others */

int pr_listing_stat(const struct pr_host *host, pid_t pid, struct pr_stat_line *ret)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "%d/stat", (int)pid);
    ssize_t n = pr_fs_read(host->proc, path, text, sizeof text);
    if (n < 0)
        return (int)n;
    return pr_stat_line_parse(text, (size_t)n, ret) && ret->pid == pid ? 0 : -EIO;
}

static int open_loadavg(const struct pr_host *host)
{
    int fd = pr_fs_open(host->proc, "loadavg");
    if (fd < 0 || pr_loadavg_is_the_kernels(fd))
        return fd;
    close(fd);
    return -1;
}

void pr_listing_open(struct pr_listing *l, const struct pr_host *host, bool again)
{
    *l = (struct pr_listing){.again = again, .loadavg = -1, .list = -1};
    if (host->held) {
        /* Its last pid is one of the reader's namespace, whatever is mounted. */
        l->loadavg = host->foreign ? -1 : open_loadavg(host);
        l->list = openat(host->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    l->in_turn = l->loadavg >= 0 && pr_clock_pid_cpu(getpid()) >= 0 && pr_clock_pid_cpu(1) >= 0;
    if (!host->foreign)
        l->born_after = (uint64_t)(pr_clock_boot() / (NS_PER_S / host->ticks_per_second));
}

int pr_listing_files(const struct pr_listing *l)
{
    return (l->loadavg >= 0) + (l->list >= 0);
}

/* --- has anything been forked? ---------------------------------------------------------------- */

static bool may_have_forked(struct pr_listing *l, const struct pr_tick *t)
{
    struct pr_loadavg load;
    ssize_t n = l->loadavg < 0 ? -1 : pr_fs_pread(l->loadavg, t->text, t->text_size);
    if (n <= 0)
        return true;
    if (!pr_loadavg_parse(t->text, (size_t)n, &load) || load.last_pid == 0) {
        l->in_turn = false; /* made up */
        return true;
    }
    bool changed = load.last_pid != l->last_pid;
    l->last_pid = load.last_pid;
    /* A pid is handed out a moment before its process can be seen: it is looked for some times. */
    return changed || (l->in_turn && l->then[0] != l->last_pid);
}

bool pr_listing_due(struct pr_listing *l, const struct pr_tick *t)
{
    l->all = l->again && t->now - l->all_at >= ALL_EVERY;
    return may_have_forked(l, t) || l->look_again || l->all || l->young.count;
}

/* --- who is new? ------------------------------------------------------------------------------ */

static struct pr_candidate *next_candidate(struct pr_listing *l)
{
    if (l->count == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 256;
        struct pr_candidate *more = realloc(l->candidates, cap * sizeof *more);
        if (!more)
            return NULL;
        l->candidates = more;
        l->cap = cap;
    }
    return &l->candidates[l->count];
}

/* Is it to be looked at, though it is known? */
static bool is_open(const struct pr_listing *l, uint64_t pid)
{
    uint64_t since;
    return l->again && (l->all || pr_map_get(&l->young, pid, &since));
}

static int consider(struct pr_listing *l, const struct pr_tick *t, uint64_t pid, uint64_t inode,
                    bool known)
{
    struct pr_candidate *c = next_candidate(l);
    int r = c ? pr_listing_stat(t->host, (pid_t)pid, &c->line) : -ENOMEM;
    if (r == 0) {
        c->inode = inode;
        c->late = known;
        l->count++;
    } else if (r != -ENOENT && r != -ESRCH) {
        l->look_again = true;
    }
    return r;
}

static void list_entry(struct pr_listing *l, const struct pr_tick *t, const struct dirent64 *entry,
                       pid_t only)
{
    struct pr_scan s = pr_scan_of(entry->d_name, strlen(entry->d_name));
    uint64_t pid, inode;
    if (!pr_scan_u64(&s, &pid) || s.p != s.end || pid == 0 || pid > INT32_MAX)
        return;
    bool known = pr_map_get(&l->known, pid, &inode) && inode == entry->d_ino;
    bool stranger = (only && (pid_t)pid != only) || (!known && pid <= l->before);
    if ((known && !is_open(l, pid)) || stranger)
        pr_map_set(&l->next, pid, entry->d_ino);
    else
        consider(l, t, pid, entry->d_ino, known);
}

static int list_all(struct pr_listing *l, const struct pr_tick *t, pid_t only)
{
    int fd = l->list;
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
            list_entry(l, t, entry, only);
            at += entry->d_reclen;
        }
    int r = n < 0 ? -errno : 0;
    if (fd != l->list)
        close(fd);
    return r;
}

/* --- the pids that were handed out ------------------------------------------------------------ */

static uint64_t less_of(uint64_t n, uint64_t by)
{
    return n > by ? n - by : 1;
}

/* Asking for a pid costs less than listing it, but most that were handed out are gone or threads.
 */
static bool can_ask(const struct pr_listing *l, int64_t now)
{
    return l->in_turn && l->looked && !l->look_again && !l->all && l->last_pid >= l->then[0] &&
           l->last_pid - l->then[0] <= l->known.count + ASK_LEAST && now - l->listed_at < ALL_EVERY;
}

static bool inode_of(const struct pr_tick *t, pid_t pid, uint64_t *ret)
{
    char path[16];
    struct stat st;
    snprintf(path, sizeof path, "%d", (int)pid);
    if (fstatat(t->host->proc, path, &st, 0) < 0)
        return false;
    *ret = st.st_ino;
    return true;
}

static void ask_for(struct pr_listing *l, const struct pr_tick *t, uint64_t pid)
{
    uint64_t inode, before;
    if (pr_clock_pid_cpu((pid_t)pid) < 0) /* most have ended */
        return;
    if ((pid_t)pid == gettid() && (pid_t)pid != getpid())
        return; /* the kernel takes the thread that asks for its process */
    if (inode_of(t, (pid_t)pid, &inode) && (!pr_map_get(&l->next, pid, &before) || before != inode))
        consider(l, t, pid, inode, false);
}

/* Who is a member already, and held: there is nothing new in its files. */
static void remember(struct pr_listing *l, const struct pr_tick *t, pid_t pid)
{
    uint64_t inode;
    if (inode_of(t, pid, &inode))
        pr_map_set(&l->next, (uint64_t)pid, inode);
}

/* All that were known stay so until /proc is listed again, but for the young. */
static void ask_for_new(struct pr_listing *l, const struct pr_tick *t)
{
    struct pr_map known = l->known;
    l->known = l->next;
    l->next = known;
    uint64_t from = l->then[0] > l->before ? l->then[0] : l->before;
    for (uint64_t pid = from + 1; pid <= l->last_pid; pid++)
        ask_for(l, t, pid);
    for (size_t i = 0; i < l->young.cap && l->young.count; i++) {
        uint64_t pid = l->young.slots[i].key, inode;
        if (!pid || !pr_map_get(&l->next, pid, &inode))
            continue;
        int r = consider(l, t, pid, inode, true);
        if (r == -ENOENT || r == -ESRCH)
            pr_map_remove(&l->next, pid);
    }
}

bool pr_listing_is_stranger(const struct pr_listing *l, pid_t pid)
{
    uint64_t inode;
    return (uint64_t)pid <= l->before || pr_map_get(&l->next, (uint64_t)pid, &inode);
}

int pr_listing_look(struct pr_listing *l, const struct pr_tick *t, pid_t only)
{
    bool first = only && l->in_turn; /* a job may well have ended before anybody else matters */
    if (!first && t->now - l->listed_at >= SHORT) { /* room for more of others than there are now */
        pr_map_reserve(&l->known, 1024);
        pr_map_reserve(&l->next, 1024);
    }
    bool ask = can_ask(l, t->now);
    l->look_again = false;
    if (l->all || !l->looked)
        l->all_at = t->now;
    int r = 0;
    if (first) {
        l->before = l->last_pid;
        l->listed_at = t->now;
        remember(l, t, only);
    } else if (ask) {
        ask_for_new(l, t);
    } else {
        l->before = l->last_pid < l->before ? 0 : l->before; /* pids begin anew */
        r = list_all(l, t, only);
        l->listed_at = t->now;
        l->before = 0;
    }
    l->then[0] = l->looked ? l->then[1] : less_of(l->last_pid, IN_FLIGHT);
    l->then[1] = l->looked ? l->then[2] : l->then[0];
    l->then[2] = l->last_pid;
    return r;
}

/* --- those who have been placed --------------------------------------------------------------- */

void pr_listing_placed(struct pr_listing *l, const struct pr_tick *t, const struct pr_candidate *c,
                       bool member)
{
    uint64_t pid = (uint64_t)c->line.pid, since;
    pr_map_set(&l->next, pid, c->inode);
    if (!l->again)
        return;
    bool was_young = c->late && pr_map_get(&l->young, pid, &since);
    if (member || (was_young && t->now - (int64_t)since >= YOUNG_FOR))
        pr_map_remove(&l->young, pid);
    else if (!c->late && l->looked) /* who was there before us is not young any more */
        pr_map_set(&l->young, pid, (uint64_t)t->now);
}

static void start_over(struct pr_map *map)
{
    if (map->cap)
        memset(map->slots, 0, map->cap * sizeof *map->slots);
    map->count = 0;
}

/* The young who have ended. */
static void forget_gone(struct pr_listing *l)
{
    uint64_t inode;
    for (size_t i = 0; i < l->young.cap && l->young.count; i++) {
        uint64_t pid = l->young.slots[i].key;
        if (!pid || pr_map_get(&l->known, pid, &inode))
            continue;
        pr_map_remove(&l->young, pid);
        i--; /* another one may have moved here */
    }
}

void pr_listing_end(struct pr_listing *l)
{
    struct pr_map known = l->known;
    l->known = l->next;
    l->next = known;
    start_over(&l->next);
    forget_gone(l);
    l->looked = true;
    l->count = 0;
}

void pr_listing_done(struct pr_listing *l, bool close_files)
{
    if (close_files && l->loadavg >= 0)
        close(l->loadavg);
    if (close_files && l->list >= 0)
        close(l->list);
    pr_map_done(&l->known);
    pr_map_done(&l->next);
    pr_map_done(&l->young);
    free(l->candidates);
}

bool pr_listing_join(const struct pr_listing *l, struct pr_entities *set,
                     const struct pr_candidate *c, bool fresh)
{
    const struct pr_stat_line *line = &c->line;
    struct pr_entity *e = pr_entities_find(set, line->pid);
    if (e && e->start == line->start)
        return true;
    e = pr_entities_add(set, line->pid, line->start);
    if (!e)
        return false;
    e->ppid = line->ppid;
    e->pgrp = line->pgrp;
    e->state = line->state;
    e->born_inside = fresh || (l->looked && !c->late && line->start >= l->born_after);
    memcpy(e->comm, line->comm, sizeof e->comm);
    return true;
}

void pr_listing_part_with_reused(const struct pr_listing *l, struct pr_entities *set)
{
    for (size_t i = 0; i < l->count; i++) {
        struct pr_entity *e = pr_entities_find(set, l->candidates[i].line.pid);
        if (e && e->start != l->candidates[i].line.start)
            pr_entities_vanish(set, e);
    }
}

int pr_listing_update(struct pr_listing *l, const struct pr_target *target, const struct pr_tick *t,
                      struct pr_entities *set, pr_listing_rule *wants)
{
    if (!pr_listing_due(l, t))
        return 0;
    int r = pr_listing_look(l, t, 0);
    if (r < 0)
        return r;
    pr_listing_part_with_reused(l, set);
    for (size_t i = 0; i < l->count; i++) {
        const struct pr_candidate *c = &l->candidates[i];
        bool wanted = wants(target, t, &c->line);
        if (wanted && !pr_listing_join(l, set, c, false))
            l->look_again = true;
        pr_listing_placed(l, t, c, wanted);
    }
    pr_listing_end(l);
    return 0;
}
