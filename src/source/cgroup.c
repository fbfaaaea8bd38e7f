/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel has on the account of the job's cgroup, controller by controller: on a hybrid
 * machine some are of version 1 and some of version 2. Others may be in the same group. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/machine.h"
#include "source/cgroup_files.h"
#include "source/cgroup_path.h"
#include "util/clock.h"

#define LOOK_AGAIN (10 * NS_PER_S) /* for a group that is gone */
/* While it sleeps, too: what it used in another group before that was seen is lost. */
#define MOVED_AGAIN (NS_PER_S * 9 / 10)

#define DETAIL_FIRST METRIC_MEM_CGROUP_ANON
#define DETAIL_COUNT (METRIC_MEM_CGROUP_KERNEL - DETAIL_FIRST + 1)

static const enum pr_metric_id counters[] = {METRIC_CPU_CGROUP, METRIC_CPU_THROTTLED,
                                             METRIC_OOM_KILLS};
#define COUNTERS (sizeof counters / sizeof *counters)

struct place {
    char *dir; /* NULL for none */
    size_t top;
    int version;
};

struct group {
    struct pr_host *host; /* borrowed */
    bool known;
    int64_t looked, detailed, checked; /* boot times, 0 for never */
    int groups;                        /* /proc/PID/cgroup, held, -1 for none */
    uint64_t seen;                     /* hash of that */
    struct place at[ACCOUNT_COUNT];
    bool throttle_too; /* is read with the usage */
    struct {
        int fd;
        bool absent; /* for good */
    } file[CGROUP_FILES];
    double detail[DETAIL_COUNT]; /* what memory.stat said last */
    double mark;                 /* the kernel's high-water mark when we came; NaN for unknown */
    /* Another group in the place of one that is gone goes on where that one ended. */
    bool moved;
    double last[COUNTERS], offset[COUNTERS];
};

static const char *path_in(const struct place *p)
{
    return p->dir[p->top] ? p->dir + p->top : "/";
}

/* --- where it is ------------------------------------------------------------------------------ */

static void close_files(struct group *g)
{
    for (size_t i = 0; i < CGROUP_FILES; i++) {
        if (g->file[i].fd >= 0) {
            close(g->file[i].fd);
            g->host->holding--;
        }
        g->file[i].fd = -1;
        g->file[i].absent = false;
    }
}

/* The root of a hierarchy is no group of anybody: its account is the whole machine's. Only there
 * version 1 has a release_agent, and only there version 2 has no cgroup.type. */
static bool is_root(const struct pr_host *host, const struct pr_cgroup_place *p, int version)
{
    char path[CGROUP_DIR + 32];
    if (p->dir[p->top])
        return false;
    snprintf(path, sizeof path, "%s/%s", p->dir, version == 1 ? "release_agent" : "cgroup.type");
    return (faccessat(host->root, path, F_OK, 0) == 0) == (version == 1);
}

/* In version 2 a group may have no controllers of its own, as one that we made for the run: the
 * nearest above that has them keeps the account. */
static void climb(const struct pr_cgroup_view *v, enum pr_cgroup_account account,
                  struct pr_cgroup_place *p)
{
    static const char *const files[ACCOUNT_COUNT] = {[ACCOUNT_MEMORY] = "memory.current",
                                                     [ACCOUNT_THROTTLE] = "cpu.max",
                                                     [ACCOUNT_PIDS] = "pids.current"};
    char path[CGROUP_DIR + 64];
    size_t len = strlen(p->dir);
    while (files[account] && !v->name && len > p->top) {
        snprintf(path, sizeof path, "%.*s/%s", (int)len, p->dir, files[account]);
        if (faccessat(v->host->root, path, F_OK, 0) == 0) {
            p->dir[len] = '\0';
            return;
        }
        while (len > p->top && p->dir[--len] != '/')
            ;
    }
}

/* ret_root: it would be the root, and nobody asked for that. A group of version 2 knows its CPU
 * time without any controller. */
static struct place find(const struct pr_cgroup_view *v, enum pr_cgroup_account account,
                         bool *ret_root)
{
    const char *const controller[] = {pr_cgroup_controllers[account], ""};
    struct pr_cgroup_place found;
    *ret_root = false;
    for (int i = 0; i < 2; i++) {
        bool none = i == 1 && account != ACCOUNT_USAGE && pr_cgroup_is_v1(v, controller[0]);
        if (none || !pr_cgroup_find(v, controller[i], &found) || !found.exists)
            continue;
        if (i == 1)
            climb(v, account, &found);
        if (v->name || !is_root(v->host, &found, i + 1))
            return (struct place){strdup(found.dir), found.top, i + 1};
        *ret_root = true;
    }
    return (struct place){0};
}

static void explain_root(struct pr_machine *m, enum pr_cgroup_account account)
{
    static const char *const what[ACCOUNT_COUNT] = {[ACCOUNT_MEMORY] = "memory",
                                                    [ACCOUNT_USAGE] = "CPU time",
                                                    [ACCOUNT_THROTTLE] = "CPU time",
                                                    [ACCOUNT_PIDS] = "processes"};
    pr_machine_explain(m, MACHINE_cgroup,
                       "the job is in the root cgroup, for which the kernel keeps no account of %s",
                       what[account]);
}

static void explain_none(struct pr_machine *m)
{
    if (m->cgroup)
        pr_machine_explain(m, MACHINE_cgroup, "there is no cgroup %s", m->cgroup);
    else
        pr_machine_explain(m, MACHINE_cgroup, "the cgroup of process %d cannot be seen from here",
                           (int)m->of);
}

static void explain_gone(struct pr_machine *m, const struct place *p)
{
    m->reason[MACHINE_cgroup][0] = '\0'; /* it says more than what was absent before */
    pr_machine_explain(m, MACHINE_cgroup, "cgroup %s is gone", path_in(p));
}

static bool is_wanted(const struct pr_machine *m, const struct pr_cgroup_file *f)
{
    return m->reads & pr_metrics[f->rows[0].metric].needs;
}

static bool has_wanted_files(const struct pr_machine *m, enum pr_cgroup_account account)
{
    for (size_t i = 0; i < CGROUP_FILES; i++)
        if (pr_cgroup_files[i].account == account && is_wanted(m, &pr_cgroup_files[i]))
            return true;
    return false;
}

/* Finds the directories, again where they are not what they were. t->text has so much of the
 * process's groups; 0 where they have to be read. */
static void look(struct pr_machine *m, const struct pr_tick *t, struct group *g, size_t len)
{
    struct pr_cgroup_view v;
    bool had = g->known;
    int r = len ? pr_cgroup_view_of(&v, m->host, t->text, len)
                : pr_cgroup_view_open(&v, m->host, m->of, m->cgroup);
    close_files(g);
    g->known = false;
    for (int i = 0; i < ACCOUNT_COUNT; i++) {
        struct place old = g->at[i];
        bool root = false, wanted = r == 0 && has_wanted_files(m, (enum pr_cgroup_account)i);
        g->at[i] = wanted ? find(&v, (enum pr_cgroup_account)i, &root) : (struct place){0};
        if (root && !g->at[i].dir)
            explain_root(m, (enum pr_cgroup_account)i);
        if (old.dir && (!g->at[i].dir || g->at[i].version != old.version))
            explain_gone(m, &old);
        g->known |= g->at[i].dir != NULL;
        free(old.dir);
    }
    pr_cgroup_view_close(&v);
    if (!g->known)
        explain_none(m);
    /* In version 2 both are in one file. */
    g->throttle_too = g->at[ACCOUNT_USAGE].version == 2 && g->at[ACCOUNT_THROTTLE].version == 2 &&
                      strcmp(g->at[ACCOUNT_USAGE].dir, g->at[ACCOUNT_THROTTLE].dir) == 0;
    g->moved |= had;
    g->detailed = 0;
    g->mark = NAN;
}

/* --- reading ---------------------------------------------------------------------------------- */

static void explain_absent(struct pr_machine *m, const struct pr_cgroup_file *f,
                           const struct place *p)
{
    if (!p->dir[p->top])
        explain_root(m, f->account);
    else
        pr_machine_explain(m, MACHINE_cgroup, "cgroup %.60s has no %s: no such controller there",
                           path_in(p), f->name);
}

/* 0, or -errno where the group is gone. */
static int read_file(struct pr_machine *m, const struct pr_tick *t, struct group *g, size_t i)
{
    const struct pr_cgroup_file *f = &pr_cgroup_files[i];
    const struct place *p = &g->at[f->account];
    char path[CGROUP_DIR + 64] = "";
    if (g->file[i].fd < 0)
        snprintf(path, sizeof path, "%s/%s", p->dir, f->name);
    ssize_t n = pr_machine_text(t, &g->file[i].fd, m->host->root, path, false);
    if (n == -ENODEV || (n == -ENOENT && !pr_cgroup_exists(m->host, p->dir)))
        return (int)n;
    if (n == -ENOENT) {
        g->file[i].absent = m->host->held;
        if (f->main)
            explain_absent(m, f, p);
    } else if (n < 0) {
        pr_machine_explain(m, MACHINE_cgroup, "%s of cgroup %.60s: %s", f->name, path_in(p),
                           strerror((int)-n));
    } else {
        pr_cgroup_parse(f, t->text, (size_t)n, m->raw);
    }
    return 0;
}

static int read_files(struct pr_machine *m, const struct pr_tick *t, struct group *g)
{
    bool detail = pr_machine_due(m, g->detailed, t->now);
    for (size_t i = 0; i < CGROUP_FILES; i++) {
        const struct pr_cgroup_file *f = &pr_cgroup_files[i];
        const struct place *p = &g->at[f->account];
        if (!p->dir || (f->version && f->version != p->version) || g->file[i].absent ||
            !is_wanted(m, f) || (f->costly && !detail) ||
            (f->account == ACCOUNT_THROTTLE && g->throttle_too))
            continue;
        int r = read_file(m, t, g, i);
        if (r < 0)
            return r;
    }
    if (detail)
        g->detailed = t->now;
    for (int i = 0; i < DETAIL_COUNT; i++) {
        double *raw = &m->raw[DETAIL_FIRST + i];
        if (detail)
            g->detail[i] = *raw;
        else if (isnan(*raw))
            *raw = g->detail[i];
    }
    return 0;
}

static void settle(struct pr_machine *m, struct group *g)
{
    double *raw = m->raw, peak = raw[METRIC_MEM_CGROUP_PEAK];
    /* What is below zero comes of two counts that are not taken at once. */
    double file = raw[METRIC_MEM_CGROUP_FILE] - raw[METRIC_MEM_CGROUP_SHMEM];
    raw[METRIC_MEM_CGROUP_FILE] = isnan(file) || file > 0 ? file : 0;
    if (isnan(g->mark))
        g->mark = peak;
    /* Who was in the group before the job may have set the mark. */
    raw[METRIC_MEM_CGROUP_PEAK] = peak > g->mark ? peak : NAN;
    for (size_t i = 0; i < COUNTERS; i++) {
        double *now = &raw[counters[i]];
        if (isnan(*now))
            continue;
        if (g->moved)
            g->offset[i] = g->last[i] - *now;
        *now += isnan(g->offset[i]) ? 0 : g->offset[i];
        g->last[i] = *now;
    }
    g->moved = false;
    for (int id = METRIC_CPU_CGROUP; id <= METRIC_THREADS_CGROUP; id++)
        if (isnan(raw[id]) && id != METRIC_MEM_CGROUP_PEAK && m->reads & pr_metrics[id].needs)
            pr_machine_explain(m, MACHINE_cgroup,
                               "it is not accounted for in the cgroups of this machine");
}

/* A zombie is nowhere any more. */
static bool is_nowhere(const char *text, size_t len)
{
    struct pr_scan s = pr_scan_of(text, len), line;
    while (pr_scan_line(&s, &line))
        if (line.end - line.p < 2 || line.end[-1] != '/' || line.end[-2] != ':')
            return false;
    return true;
}

/* Has the process moved to another group? It is asked once a second, and t->text then has so much
 * of its groups. */
static bool has_moved(const struct pr_machine *m, const struct pr_tick *t, struct group *g,
                      size_t *ret_len)
{
    char path[32];
    *ret_len = 0;
    if (!m->of || m->cgroup || t->now - g->checked < MOVED_AGAIN)
        return false;
    g->checked = t->now;
    snprintf(path, sizeof path, "%d/cgroup", (int)m->of);
    ssize_t n = pr_machine_text(t, &g->groups, m->host->proc, path, false);
    if (n <= 0 || is_nowhere(t->text, (size_t)n))
        return false;
    *ret_len = (size_t)n;
    uint64_t before = g->seen;
    g->seen = pr_scan_hash(t->text, (size_t)n);
    return before && before != g->seen;
}

static struct group *new_group(struct pr_host *host)
{
    struct group *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->host = host;
    g->groups = -1;
    g->mark = NAN;
    for (size_t i = 0; i < CGROUP_FILES; i++)
        g->file[i].fd = -1;
    for (size_t i = 0; i < COUNTERS; i++)
        g->last[i] = NAN;
    return g;
}

static int read_it(struct pr_machine *m, const struct pr_tick *t, void **state)
{
    if (!m->of && !m->cgroup) {
        pr_machine_explain(m, MACHINE_cgroup, "no cgroup is watched");
        return 0;
    }
    struct group *g = *state ? *state : (*state = new_group(m->host));
    if (!g)
        return -ENOMEM;
    size_t len;
    if (has_moved(m, t, g, &len)) {
        look(m, t, g, len);
        m->moved = true;
    }
    for (int tries = 0; tries < 2; tries++, len = 0) {
        if (!g->known && g->looked && t->now - g->looked < LOOK_AGAIN)
            return 0;
        if (!g->known || tries > 0) {
            g->looked = t->now;
            look(m, t, g, len);
        }
        if (g->known && read_files(m, t, g) == 0) {
            settle(m, g);
            return 0;
        }
        for (int id = METRIC_CPU_CGROUP; id <= METRIC_THREADS_CGROUP; id++)
            m->raw[id] = NAN;
    }
    return 0;
}

static void close_it(void *state, bool close_fds)
{
    struct group *g = state;
    if (close_fds)
        close_files(g);
    if (close_fds && g->groups >= 0)
        close(g->groups);
    for (int i = 0; i < ACCOUNT_COUNT; i++)
        free(g->at[i].dir);
    free(g);
}

const struct pr_machine_source pr_machine_source_cgroup = {
    .name = "cgroup", .gives = READ_CGROUP | READ_CGROUP_REST, .read = read_it, .close = close_it};
