/* SPDX-License-Identifier: Apache-2.0 */
/* memory.events of version 2; memory.failcnt and memory.oom_control of version 1; oom_kill in
 * /proc/vmstat. A kill is counted with the group of its victim, whosever limit it was; that a limit
 * was met is counted with the group that has it, and in version 2 with those above as well, so the
 * nearest one that counts is the one. */
#include "core/oom.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/limits.h"
#include "source/cgroup_path.h"
#include "util/fs.h"
#include "util/scan.h"

static const struct pr_scan_row events[] = {{"oom ", OOM_HITS, 1}, {"oom_kill ", OOM_KILLS, 1}};
static const struct pr_scan_row kill_row = {"oom_kill ", OOM_KILLS, 1};

/* The path of the group so many levels up, as a length of o->dir. */
static size_t length_at(const struct pr_oom *o, int level)
{
    size_t len = strlen(o->dir);
    for (; level > 0; level--)
        while (len > o->top && o->dir[--len] != '/')
            ;
    return len;
}

static ssize_t read_at(const struct pr_oom *o, const struct pr_host *host, int level,
                       const char *file, char *text, size_t size)
{
    char path[CGROUP_DIR + 64];
    snprintf(path, sizeof path, "%.*s/%s", (int)length_at(o, level), o->dir, file);
    return pr_fs_read(host->root, path, text, size);
}

static double number_at(const struct pr_oom *o, const struct pr_host *host, int level,
                        const char *file)
{
    char text[64];
    uint64_t v;
    ssize_t n = read_at(o, host, level, file, text, sizeof text);
    struct pr_scan s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    return pr_scan_u64(&s, &v) ? (double)v : NAN; /* "max" is none */
}

/* In version 1 what is above the group counts no kills of its processes. */
static void count_at(const struct pr_oom *o, const struct pr_host *host, int level, double *ret)
{
    char text[1024];
    bool v2 = o->version == 2;
    ret[OOM_HITS] = v2 ? NAN : number_at(o, host, level, "memory.failcnt");
    ret[OOM_KILLS] = NAN;
    if (!v2 && level > 0)
        return;
    ssize_t n =
        read_at(o, host, level, v2 ? "memory.events" : "memory.oom_control", text, sizeof text);
    if (n > 0 && v2)
        pr_scan_keyed(text, (size_t)n, events, 2, ret);
    else if (n > 0)
        pr_scan_keyed(text, (size_t)n, &kill_row, 1, ret);
}

static double machine_kills(const struct pr_host *host)
{
    char text[16384];
    double count[OOM_COUNTS] = {NAN, NAN};
    ssize_t n = pr_fs_read(host->proc, "vmstat", text, sizeof text);
    if (n > 0)
        pr_scan_keyed(text, (size_t)n, &kill_row, 1, count);
    return count[OOM_KILLS];
}

static void find(struct pr_oom *o, const struct pr_host *host, pid_t pid, const char *name)
{
    static const char *const controllers[] = {"memory", ""};
    struct pr_cgroup_view v;
    struct pr_cgroup_place place;
    int r = pr_cgroup_view_open(&v, host, pid, name);
    for (int i = 0; r == 0 && i < 2 && !o->dir; i++)
        if (pr_cgroup_find(&v, controllers[i], &place) && place.exists) {
            o->dir = strdup(place.dir);
            o->top = place.top;
            o->version = i + 1;
        }
    pr_cgroup_view_close(&v);
}

void pr_oom_open(struct pr_oom *o, const struct pr_host *host, pid_t pid, const char *name)
{
    *o = (struct pr_oom){
        .machine_before = NAN, .kills = NAN, .machine_kills = NAN, .hits = NAN, .limit = NAN};
    /* First: all that a group counts later is in the machine's growth, too. */
    o->machine_before = machine_kills(host);
    if (pid || name)
        find(o, host, pid, name);
    for (bool more = o->dir != NULL; more && o->levels < OOM_LEVELS; o->levels++) {
        count_at(o, host, o->levels, o->before[o->levels]);
        more = length_at(o, o->levels) > o->top;
    }
}

static void take_hit(struct pr_oom *o, const struct pr_host *host, int level, double hits)
{
    size_t len = length_at(o, level);
    o->hits = hits;
    o->own = level == 0;
    o->limit = number_at(o, host, level, o->version == 2 ? "memory.max" : "memory.limit_in_bytes");
    if (o->limit >= LIMIT_NONE)
        o->limit = NAN;
    snprintf(o->where, sizeof o->where, "%.*s", (int)(len - o->top), o->dir + o->top);
    if (!o->where[0])
        snprintf(o->where, sizeof o->where, "/");
}

/* Version 1 counts the kills of a group without those of groups below it. */
static bool has_none_below(const struct pr_oom *o, const struct pr_host *host)
{
    struct stat st;
    return o->dir && fstatat(host->root, o->dir, &st, 0) == 0 && st.st_nlink == 2;
}

void pr_oom_read(struct pr_oom *o, const struct pr_host *host)
{
    o->machine_kills = machine_kills(host) - o->machine_before;
    if (o->machine_kills == 0) { /* which has those of all groups, too */
        o->kills = o->levels ? 0 : NAN;
        return;
    }
    for (int level = 0; level < o->levels; level++) {
        double now[OOM_COUNTS];
        count_at(o, host, level, now);
        double hits = now[OOM_HITS] - o->before[level][OOM_HITS],
               kills = now[OOM_KILLS] - o->before[level][OOM_KILLS];
        if (level == 0 || isnan(o->kills)) /* a group without a controller has no account */
            o->kills = kills;
        if (hits > 0 && !(o->hits > 0))
            take_hit(o, host, level, hits);
    }
    o->whole = !o->left && !isnan(o->kills) && (o->version == 2 || has_none_below(o, host));
}

void pr_oom_done(struct pr_oom *o)
{
    free(o->dir);
    o->dir = NULL;
}
