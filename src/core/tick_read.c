/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the members. A process that has not run since it was read last is as it was: its CPU
 * clock says so in a third of a microsecond, and its times, faults, I/O and descriptors are not
 * read again. (Of the process that we are in: without us.) What others can do to it, as the kernel
 * does when it takes pages away, is looked at every eight seconds: its size. Of those that run,
 * times, faults and I/O are read at each tick, the size where faults or stat tell of another, and
 * the rest in turn; a small job has its turn at each tick that the budget leaves room for. What may
 * have changed since it was read is `aged`.
 *
 * The clock is up to one of the kernel's ticks behind for a thread that is on a CPU. So whoever was
 * running is read whatever it says, and so is whoever should have waited for a child. */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/net.h"
#include "core/tick.h"
#include "core/tick_depth.h"
#include "util/clock.h"

#define IDLE_LONG    16 /* looks without having run: it gives its descriptors to others */
#define ASLEEP_AFTER 3  /* still ticks: a pid is handed out a moment before it can be seen */
#define LOOK_MOST    (NS_PER_S * 9 / 10) /* between two searches: orphans come to who sleeps, too */
#define ASKING_MOST  20000               /* ns that the clock takes, while we run ourselves */
#define CACHE_LINE   64

/* --- a source --------------------------------------------------------------------------------- */

/* One reason for all that a failed reading would have given. */
static void give_reason(struct pr_session *s, const struct pr_source *source,
                        const struct pr_entity *e, int code)
{
    const char *why = code == -EIO ? "it is not understood" : strerror(-code);
    for (int id = 0; id < METRIC_COUNT; id++)
        if ((pr_metrics[id].needs & source->gives) && !s->reason[id][0])
            snprintf(s->reason[id], sizeof s->reason[id], "%s of process %d (%.15s): %s",
                     source->name, (int)e->pid, e->comm, why);
}

/* The kernel shows its own threads among the processes. */
static void explain_kernel_thread(struct pr_session *s, const struct pr_entity *e)
{
    for (int id = 0; id < PROC_METRICS; id++)
        if ((pr_metrics[id].needs & (READ_STATM | READ_STATUS | READ_SMAPS)) && !s->reason[id][0])
            snprintf(s->reason[id], sizeof s->reason[id],
                     "process %d (%.15s) is a kernel thread: it has no memory of its own",
                     (int)e->pid, e->comm);
}

/* What depends on this reading is not known now. */
static void blank_reading(struct pr_entity *e, enum pr_read gives)
{
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metrics[id].needs == (unsigned)gives && pr_metrics[id].kind != KIND_COUNTER)
            e->value[id] = NAN;
}

void pr_tick_source(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e, int id)
{
    int r = pr_source_read(t, e, (enum pr_source_id)id);
    if (r == 0 || r == -ESRCH)
        return;
    /* Once, the process may just have ended. */
    bool again = e->missing >> id & 1;
    e->missing |= r == -ENOENT ? 1u << id : 0;
    if (r == -ENOENT && !again)
        return;
    if (id == SOURCE_pid_io && !e->io_denied)
        s->io_unreadable++;
    e->io_denied |= id == SOURCE_pid_io;
    blank_reading(e, pr_sources[id]->gives);
    give_reason(s, pr_sources[id], e, r);
}

/* Between vfork and exec a child borrows its parent's memory: it must not count twice. Once it has
 * its own it never borrows again. */
static bool borrows_memory(const struct pr_session *s, struct pr_entity *e)
{
    const struct pr_entity *parent = e->own_mm ? NULL : pr_entities_find(&s->set, e->ppid);
    if (!parent || s->host.foreign || isnan(e->value[METRIC_MEM_VMS]) ||
        parent->value[METRIC_MEM_VMS] != e->value[METRIC_MEM_VMS]) {
        e->own_mm |= e->looks > LOOKS_YOUNG;
        return false;
    }
    e->own_mm = syscall(SYS_kcmp, e->pid, e->ppid, KCMP_VM, 0, 0) != 0;
    return !e->own_mm;
}

/* Whoever waited for it has its account now, and may not seem to have run: it is read in any case.
 */
static void miss(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e)
{
    struct pr_entity *parent = pr_entities_find(&s->set, e->ppid);
    pr_source_release(t->host, e);
    pr_entities_vanish(&s->set, e);
    if (parent)
        parent->awaited = true;
}

/* Who it is, and its I/O just before: a child that is waited for in between must not be in the I/O
 * of its parent and still wait for a receipt. What was read of another process does not stay. */
static int read_identity(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e,
                         enum pr_depth depth)
{
    double before[END_IO], *io = &e->value[METRIC_IO_READ];
    memcpy(before, io, sizeof before);
    e->io_old = depth == DEPTH_TIMES;
    if ((s->select.reads & READ_IO) && !e->io_old)
        pr_tick_source(s, t, e, SOURCE_pid_io);
    int r = pr_source_read(t, e, SOURCE_pid_stat);
    if (r < 0)
        memcpy(io, before, sizeof before);
    if (r == -ESRCH || r == -ENOENT) {
        miss(s, t, e);
    } else if (r < 0) { /* it may well live, and we are out of descriptors */
        give_reason(s, pr_sources[SOURCE_pid_stat], e, r);
    }
    return r;
}

/* There are no gauges of the dead, nor any once the job has ended; high-water marks of those who
 * are left are still wanted. */
static void blank_gauges(struct pr_entity *e)
{
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metrics[id].kind != KIND_COUNTER &&
            (pr_metrics[id].kind != KIND_HIGH_WATER || pr_entity_is_dead(e)))
            e->value[id] = NAN;
}

/* --- how much is read ------------------------------------------------------------------------- */

static bool is_wanted(const struct pr_session *s, const struct pr_tick *t,
                      const struct pr_entity *e, int id, enum pr_depth depth)
{
    const struct pr_source *source = pr_sources[id];
    bool apart = id == SOURCE_pid_stat || id == SOURCE_pid_io || id == SOURCE_pid_clock;
    /* Does it ignore its children? That has to be known whatever is selected. */
    bool signals = id == SOURCE_pid_status && depth == DEPTH_ALL;
    if (apart || source->can_wait || pr_entity_is_dead(e) ||
        !(signals || s->select.reads & source->gives))
        return false;
    if (s->gone) /* marks, and what was counted to the end */
        return id == SOURCE_pid_status || id == SOURCE_pid_sched;
    /* It has not grown without a fault; what it gave back stat shows, small pieces of it late. */
    if (id == SOURCE_pid_statm && depth == DEPTH_COUNTS && !e->resized && !e->faulted)
        return false;
    return !source->seldom || depth == DEPTH_ALL ||
           (id == SOURCE_pid_status && pr_depth_wants_mark(s, t, e));
}

/* --- a member --------------------------------------------------------------------------------- */

/* It is never below the size, which is read more often. */
static void raise_mark(struct pr_entity *e)
{
    if (e->value[METRIC_MEM_RSS] > e->value[METRIC_MEM_RSS_PEAK])
        e->value[METRIC_MEM_RSS_PEAK] = e->value[METRIC_MEM_RSS];
}

/* Not below 0; what is absent stays absent. */
static void take_off(double *v, double by)
{
    *v = *v < by ? 0 : *v - by;
}

/* CPU time of ours in the process that we are in, ns. */
static int64_t own_cpu(const struct pr_session *s)
{
    int64_t cpu = s->own_cpu + pr_clock_thread_cpu() - s->own_cpu_began;
    cpu += pr_gpu_start_cpu(s->machine.gpu) + s->served.cpu;
    return cpu + (s->queue ? pr_queue_cpu(s->queue) : 0);
}

/* Our thread does nothing but what is here: neither a callback nor an output of ours can have done
 * anything in the name of the process. */
static bool is_apart(const struct pr_session *s)
{
    return s->own_thread && !s->on_sample && !s->queue;
}

/* What is left of its clock without us. We run while we ask: as much as that takes is left open,
 * and a difference that is smaller is none. It adds up until it is one. Returns what is ours. */
static int64_t read_clock_without_us(const struct pr_session *s, const struct pr_tick *t,
                                     struct pr_entity *e)
{
    int64_t before = own_cpu(s);
    pr_source_read(t, e, SOURCE_pid_clock);
    int64_t ours = own_cpu(s);
    if (e->ran < 0)
        return ours;
    e->ran = e->ran > ours ? e->ran - ours : 0;
    if (!is_apart(s))
        e->ran_seen = -1;
    else if (ours - before < ASKING_MOST && llabs(e->ran - e->ran_seen) < ASKING_MOST)
        e->ran = e->ran_seen;
    return ours;
}

/* Returns the CPU time in it that is ours, ns. */
static int64_t read_clock(const struct pr_session *s, const struct pr_tick *t, struct pr_entity *e)
{
    if (e->pid == s->inside)
        return read_clock_without_us(s, t, e);
    pr_source_read(t, e, SOURCE_pid_clock);
    return 0;
}

/* Inside a process of the job: our own threads, descriptors and CPU time are not the job's. As much
 * as there was when it was read; descriptors are counted in a full reading alone. */
static void take_ourselves_out(const struct pr_session *s, struct pr_entity *e, enum pr_depth depth,
                               int64_t ours)
{
    double seconds = pr_seconds(ours);
    take_off(&e->value[METRIC_CPU_TIME], seconds);
    take_off(&e->value[METRIC_CPU_SYSTEM], seconds); /* nearly all that we do is in the kernel */
    take_off(&e->value[METRIC_THREADS], s->own_threads + s->served.threads);
    if (depth == DEPTH_ALL)
        take_off(&e->value[METRIC_FDS], s->own_fds + s->record_fds + s->served.files +
                                            s->host.holding + pr_gpu_descriptors(s->machine.gpu));
}

/* Behind stat: what is its own, by the clock, which is finer and was read a moment before. */
static void settle_use(const struct pr_session *s, struct pr_entity *e, enum pr_depth depth,
                       int64_t ours)
{
    double seconds = pr_seconds(e->ran);
    if (e->pid == s->inside)
        take_ourselves_out(s, e, depth, ours);
    if (e->ran >= 0 && (s->select.reads & READ_CLOCK) && seconds >= e->value[METRIC_CPU_TIME])
        e->value[METRIC_CPU_TIME] = seconds;
}

/* The size: where stat is all that is held, only once that has shown another one. Small changes it
 * shows late. */
static void read_size(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e)
{
    if ((s->select.reads & READ_STATM) && (!s->turns.crowd || e->resized))
        pr_tick_source(s, t, e, SOURCE_pid_statm);
}

static void read_files(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e,
                       enum pr_depth depth)
{
    if (depth == DEPTH_TIMES) {
        if (!pr_entity_is_dead(e) && !s->gone)
            read_size(s, t, e);
        pr_source_release_others(t->host, e);
        e->aged = true;
        return;
    }
    for (int id = 0; id < SOURCE_COUNT; id++)
        if (is_wanted(s, t, e, id, depth))
            pr_tick_source(s, t, e, id);
    e->aged = depth != DEPTH_ALL;
    if (depth > DEPTH_COUNTS)
        e->sized_at = t->now;
    if (depth == DEPTH_ALL)
        e->refreshed_at = t->now;
}

/* It has not run. Where its size has changed all the same, more has: pages went to swap. */
static void let_rest(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e,
                     enum pr_depth depth, int64_t ours)
{
    e->idle += e->idle < IDLE_LONG;
    if (depth == DEPTH_SIZE) {
        double before = e->value[METRIC_MEM_RSS];
        if (s->turns.crowd && pr_source_read(t, e, SOURCE_pid_stat) == 0)
            settle_use(s, e, depth, ours);
        read_size(s, t, e);
        e->aged |= fabs(e->value[METRIC_MEM_RSS] - before) > 0; /* not where it is unknown */
        e->sized_at = t->now;
    }
    if (s->host.crowded && e->idle == IDLE_LONG)
        pr_source_release(&s->host, e);
}

/* At low rates the job has had the caches in between: what will be needed comes while the kernel
 * answers. */
static void fetch(const void *from, const void *to)
{
    for (const char *p = from; p < (const char *)to; p += CACHE_LINE)
        __builtin_prefetch(p, 1);
}

static void read_member(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e,
                        size_t k)
{
    int64_t ours = read_clock(s, t, e);
    enum pr_depth depth = pr_depth_of(s, t, e, k);
    bool first_time = !s->turns.again || !e->looks, comes = !e->looks || e->no_mm;
    if (depth < DEPTH_TIMES) {
        e->looks += first_time;
        let_rest(s, t, e, depth, ours);
        return;
    }
    fetch(e->value, e + 1);
    e->idle = 0;
    s->turns.stirred |= !e->looks || pr_depth_has_run(s, e); /* else it is its turn */
    if (read_identity(s, t, e, depth) < 0)
        return;
    e->looks += first_time;
    e->ran_seen = e->ran;
    e->awaited = false;
    read_files(s, t, e, depth);
    settle_use(s, e, depth, ours);
    raise_mark(e);
    if (s->gone || pr_entity_is_dead(e))
        blank_gauges(e);
    e->no_mm = borrows_memory(s, e);
    s->turns.rested = comes && !e->no_mm ? 0 : s->turns.rested;
    s->children_ignored |= e->ignores_children;
    if (e->kernel_thread && s->set.count == 1)
        explain_kernel_thread(s, e);
}

/* It is not of the job: what counts is what it had used when it left. Its files still say whether
 * it lives, and whether it has come back. */
static void read_left(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e)
{
    double value[PROC_METRICS], reaped[PROC_METRICS];
    memcpy(value, e->value, sizeof value);
    memcpy(reaped, e->reaped, sizeof reaped);
    int r = pr_source_read(t, e, SOURCE_pid_stat);
    memcpy(e->value, value, sizeof value);
    memcpy(e->reaped, reaped, sizeof reaped);
    if (r == -ESRCH || r == -ENOENT) {
        miss(s, t, e);
        return;
    }
    s->departed += !e->away && !pr_entity_is_dead(e); /* a zombie is in no group any more */
    e->away = true;
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metrics[id].kind != KIND_COUNTER)
            e->value[id] = NAN;
}

static void read_returned(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e,
                          size_t k)
{
    double value[PROC_METRICS], reaped[PROC_METRICS];
    memcpy(value, e->value, sizeof value);
    memcpy(reaped, e->reaped, sizeof reaped);
    e->awaited = true; /* whatever it did, it is not where it was */
    read_member(s, t, e, k);
    if (e->life == LIFE_ALIVE) {
        pr_ledger_return(&s->ledger, e, value, reaped);
        pr_match_return(e, value);
    }
    e->away = false;
}

static void read_one(struct pr_session *s, const struct pr_tick *t, size_t k)
{
    struct pr_entity *e = s->set.items[k];
    s->turns.stirred |= e->life != LIFE_ALIVE || e->left;
    if (e->life == LIFE_ALIVE && e->left)
        read_left(s, t, e);
    else if (e->life == LIFE_ALIVE && e->away)
        read_returned(s, t, e, k);
    else if (e->life == LIFE_ALIVE)
        read_member(s, t, e, k);
    s->turns.lost |= pr_depth_has_ended(e); /* parents come before their children */
}

static void join_new(struct pr_session *s)
{
    for (size_t k = 0; k < s->set.count; k++) {
        struct pr_entity *e = s->set.items[k];
        if (!e->first || e->life != LIFE_ALIVE || isnan(e->value[METRIC_FAULTS_MINOR]))
            continue;
        pr_ledger_join(&s->ledger, e);
        e->first = false;
    }
}

/* Whoever of the job lives on, or a forefather of his, has come to us: who waits for all that is
 * orphaned and has no child has nobody to look for. That is so at the end of most jobs. */
static bool nobody_is_left(const struct pr_session *s)
{
    siginfo_t info;
    return s->watched.all_come &&
           waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD;
}

static void discover(struct pr_session *s, const struct pr_tick *t)
{
    if (nobody_is_left(s))
        return;
    s->turns.searched = t->now;
    int r = s->target->ops->update(s->target, t, &s->set);
    if (r == 0 || s->discovery_said)
        return;
    s->discovery_said = true;
    pr_event_problem(&s->events, pr_session_elapsed(s, t->now), "cannot look for new processes: %s",
                     strerror(-r));
}

void pr_tick_meet(struct pr_session *s, int64_t now)
{
    struct pr_tick t = {&s->host, now, s->text, SESSION_TEXT};
    discover(s, &t);
    for (size_t k = 0; k < s->set.count; k++)
        pr_source_read(&t, s->set.items[k], SOURCE_pid_stat);
}

/* --peaks interval: from here on the kernel's mark counts anew. Never in a captured tree. */
static void reset_mark(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e)
{
    char path[32];
    if (!pr_entity_is_here(e) || e->kernel_thread || e->no_mm)
        return;
    snprintf(path, sizeof path, "%d/clear_refs", (int)e->pid);
    int fd = openat(t->host->proc, path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "5", 1) == 1;
    int code = errno;
    if (fd >= 0)
        close(fd);
    if (done || code == ESRCH || code == ENOENT || s->peaks_said)
        return;
    s->peaks_said = true;
    pr_event_problem(&s->events, pr_session_elapsed(s, t->now),
                     "--peaks: the mark of process %d (%.15s) cannot be reset: %s", (int)e->pid,
                     e->comm, strerror(code));
}

static void reset_marks(struct pr_session *s, const struct pr_tick *t)
{
    bool wanted = s->config->peaks && s->host.held && (s->select.reads & READ_STATUS) && !s->gone;
    for (size_t k = 0; k < s->set.count && wanted; k++)
        reset_mark(s, t, s->set.items[k]);
}

bool pr_tick_reads_again(const struct pr_session *s)
{
    return s->now.last || s->phases.ending;
}

/* Who has not run has no new child, but for an orphan. */
static bool is_asleep(const struct pr_session *s, const struct pr_tick *t)
{
    return s->target->ops->from_within && s->set.still >= ASLEEP_AFTER &&
           t->now - s->turns.searched < LOOK_MOST;
}

/* From this one on. */
static void read_all(struct pr_session *s, const struct pr_tick *t, size_t k)
{
    for (; k < s->set.count; k++) {
        const struct pr_entity *next = k + 1 < s->set.count ? s->set.items[k + 1] : NULL;
        if (next)
            fetch(next, next->value);
        read_one(s, t, k);
    }
}

void pr_tick_read(struct pr_session *s, int64_t now, bool again)
{
    struct pr_tick t = {&s->host, now, s->text, SESSION_TEXT};
    bool asleep = is_asleep(s, &t) && !again;
    if (!asleep)
        discover(s, &t);
    s->turns.again = again;
    if (!again)
        pr_depth_turns(s);
    s->turns.stirred = again;
    read_all(s, &t, 0);
    s->set.still = s->turns.stirred ? 0 : s->set.still + 1;
    if (asleep && s->turns.stirred) { /* it wakes up */
        size_t known = s->set.count;
        discover(s, &t);
        read_all(s, &t, known);
    }
    if (again || !pr_tick_reads_again(s)) /* the second reading would find none */
        reset_marks(s, &t);
    if (s->net) /* before what uses the budget up: sockets may soon be gone */
        pr_net_read(s->net, &s->set, &t, s->allowance >= 0, s->now.last);
    pr_tick_shares(s, &t);
    join_new(s);
}
