/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/loadavg, "0.52 0.58 0.59 1/467 12345": three averages, tasks that run and all tasks, the
 * last pid. And how many processes there are, by a listing of /proc: that is dear with many of
 * them, so it is done only when somebody was forked or went, and about once a second at most;
 * beside a job, which may be over soon, not in the first second. Where we see the processes of the
 * whole machine, the links of /proc count them: it has one more for each, besides its own folders.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/loadavg.h"
#include "core/machine.h"
#include "util/clock.h"
#include "util/fs.h"

/* Ticks a second apart come a little early now and then. */
#define LIST_EVERY (NS_PER_S * 9 / 10)
#define TRUST_TIME (60 * NS_PER_S)    /* /proc may get a folder more */
#define FIRST_PIDS "pid:[4026531836]" /* the namespace of the machine, by the kernel's constant */

struct load {
    int fd;                 /* held, -1 for none */
    struct pr_loadavg then; /* when the processes were counted */
    int64_t listed_at;      /* or, at first, when it might have been */
    double procs;           /* NaN is not yet */
    double folders; /* links of /proc besides those of processes; NaN where they do not tell */
};

struct listing {
    int proc;
    double processes, folders; /* folders: NaN where they are not asked for */
};

static bool count_one(void *data, const char *name)
{
    struct listing *l = data;
    struct stat st;
    if (name[strspn(name, "0123456789")] == '\0')
        l->processes++;
    else if (!isnan(l->folders) && fstatat(l->proc, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        l->folders += S_ISDIR(st.st_mode);
    return true;
}

static double links(const struct pr_tick *t)
{
    struct stat st;
    return fstat(t->host->proc, &st) == 0 ? (double)st.st_nlink : NAN;
}

/* In another namespace of pids, or where others are hidden, they count whom we do not see. */
static bool sees_all(const struct pr_tick *t)
{
    char name[64];
    ssize_t n = t->host->held ? readlinkat(t->host->proc, "self/ns/pid", name, sizeof name) : -1;
    return n == sizeof FIRST_PIDS - 1 && memcmp(name, FIRST_PIDS, (size_t)n) == 0;
}

/* Nobody is hidden if as many were listed as there are links, but for those who came or went. */
static void trust_links(struct load *l, const struct listing *listing, double before, double after)
{
    double low = fmin(before, after) - listing->folders,
           high = fmax(before, after) - listing->folders, slack = 1 + listing->processes / 50;
    bool agree = listing->processes >= low - slack && listing->processes <= high + slack;
    l->folders = agree ? listing->folders : NAN;
}

static int list(struct load *l, const struct pr_tick *t)
{
    struct listing listing = {t->host->proc, 0, sees_all(t) ? 2 : NAN}; /* . and .. */
    double before = links(t);
    int r = pr_fs_list(t->host->proc, ".", t->text, t->text_size, count_one, &listing);
    l->procs = r < 0 ? NAN : listing.processes;
    trust_links(l, &listing, before, links(t));
    return r;
}

/* A last pid of 0 is made up (lxcfs), and says nothing. */
static bool may_differ(const struct load *l, const struct pr_tick *t, const struct pr_loadavg *now)
{
    return !t->host->held || now->last_pid == 0 || now->last_pid != l->then.last_pid ||
           now->tasks != l->then.tasks;
}

static int count_processes(struct load *l, const struct pr_tick *t, const struct pr_loadavg *now,
                           bool beside)
{
    bool known = !isnan(l->procs), early = t->now - l->listed_at < LIST_EVERY;
    if (beside && !known && !l->listed_at) {
        l->listed_at = t->now;
        return 0;
    }
    if (known && !isnan(l->folders) && t->now - l->listed_at < TRUST_TIME) {
        l->procs = links(t) - l->folders;
        return 0;
    }
    if ((early && (known || beside)) || (known && !may_differ(l, t, now)))
        return 0;
    int r = list(l, t);
    l->listed_at = t->now;
    l->then = *now;
    return r;
}

static struct load *load_of(void **state)
{
    struct load *l = *state;
    if (!l && (l = *state = malloc(sizeof *l)))
        *l = (struct load){.fd = -1, .procs = NAN, .folders = NAN};
    return l;
}

static int read_it(struct pr_machine *m, const struct pr_tick *t, void **state)
{
    struct load *l = load_of(state);
    struct pr_loadavg now = {.load1 = NAN};
    if (!l)
        return -ENOMEM;
    ssize_t n = pr_machine_text(t, &l->fd, m->host->proc, "loadavg", false);
    if (n >= 0 && !pr_loadavg_parse(t->text, (size_t)n, &now))
        n = -EIO;
    if (n < 0) /* proc mounted with subset=pid: processes can still be counted */
        pr_machine_explain(m, MACHINE_sys_load, "/proc/loadavg: %s", strerror((int)-n));
    int r = count_processes(l, t, &now, m->of && m->host->held);
    m->raw[METRIC_SYSTEM_LOAD1] = now.load1;
    m->raw[METRIC_SYSTEM_PROCS] = l->procs;
    return r;
}

static void close_it(void *state, bool close_files)
{
    struct load *l = state;
    if (close_files && l->fd >= 0)
        close(l->fd);
    free(l);
}

const struct pr_machine_source pr_machine_source_sys_load = {
    .name = "/proc/loadavg", .gives = READ_LOAD, .read = read_it, .close = close_it};
