/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tick.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/exact.h"
#include "core/net.h"
#include "core/self.h"
#include "util/clock.h"

/* --- reading ---------------------------------------------------------------------------------- */

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

static void read_source(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e, int id)
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
        parent->value[METRIC_MEM_VMS] != e->value[METRIC_MEM_VMS])
        return false;
    e->own_mm = syscall(SYS_kcmp, e->pid, e->ppid, KCMP_VM, 0, 0) != 0;
    return !e->own_mm;
}

/* Who it is, and its I/O just before: a child that is waited for in between must not be in the I/O
 * of its parent and still wait for a receipt. What was read of another process does not stay. */
static int read_identity(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e)
{
    double before[PROC_METRICS];
    memcpy(before, e->value, sizeof before);
    if (s->select.reads & READ_IO)
        read_source(s, t, e, SOURCE_pid_io);
    int r = pr_source_read(t, e, SOURCE_pid_stat);
    if (r < 0)
        memcpy(e->value, before, sizeof before);
    if (r == -ESRCH || r == -ENOENT) {
        pr_source_release(t->host, e);
        pr_entities_vanish(&s->set, e);
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

static bool is_wanted(const struct pr_session *s, const struct pr_entity *e, int id)
{
    bool apart = id == SOURCE_pid_stat || id == SOURCE_pid_io || pr_sources[id]->can_wait;
    if (apart || !(s->select.reads & pr_sources[id]->gives) || pr_entity_is_dead(e))
        return false;
    return !s->gone || id == SOURCE_pid_clock || id == SOURCE_pid_status;
}

/* Does it ignore its children? That has to be known whatever is selected, but not at each tick. */
static void look_at_signals(const struct pr_tick *t, struct pr_entity *e)
{
    if (e->signals_at && t->now - e->signals_at < NS_PER_S)
        return;
    e->signals_at = t->now;
    pr_source_read(t, e, SOURCE_pid_status);
}

static void read_member(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e)
{
    if (read_identity(s, t, e) < 0)
        return;
    e->looks++;
    for (int id = 0; id < SOURCE_COUNT; id++)
        if (is_wanted(s, e, id))
            read_source(s, t, e, id);
    if (!(s->select.reads & READ_STATUS))
        look_at_signals(t, e);
    if (s->gone || pr_entity_is_dead(e))
        blank_gauges(e);
    e->no_mm = borrows_memory(s, e);
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
        pr_source_release(t->host, e);
        pr_entities_vanish(&s->set, e);
        return;
    }
    s->departed += !e->away && !pr_entity_is_dead(e); /* a zombie is in no group any more */
    e->away = true;
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metrics[id].kind != KIND_COUNTER)
            e->value[id] = NAN;
}

static void read_returned(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e)
{
    double value[PROC_METRICS], reaped[PROC_METRICS];
    memcpy(value, e->value, sizeof value);
    memcpy(reaped, e->reaped, sizeof reaped);
    read_member(s, t, e);
    if (e->life == LIFE_ALIVE) {
        pr_ledger_return(&s->ledger, e, value, reaped);
        pr_match_return(e, value);
    }
    e->away = false;
}

static void read_one(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e)
{
    if (e->life != LIFE_ALIVE)
        return;
    if (e->left)
        read_left(s, t, e);
    else if (e->away)
        read_returned(s, t, e);
    else
        read_member(s, t, e);
}

/* Readings that can wait go round in turn, as far as the budget allows. */
static void read_patient(struct pr_session *s, const struct pr_tick *t, int id)
{
    size_t count = s->set.count, done = 0;
    if (!(s->select.reads & pr_sources[id]->gives))
        return;
    for (; done < count && s->allowance >= 0; done++) {
        struct pr_entity *e = s->set.items[(s->turn + done) % count];
        if (!pr_entity_is_here(e) || e->no_mm || e->kernel_thread)
            continue;
        int64_t began = pr_clock_thread_cpu();
        read_source(s, t, e, id);
        int64_t cost = pr_clock_thread_cpu() - began;
        s->allowance -= cost;
        s->patient_cost += cost;
    }
    s->turn = count ? (s->turn + done) % count : 0;
}

/* How old PSS is; and where a process has become smaller than its PSS was, that is its size. */
static void keep_patient(struct pr_session *s, int64_t now)
{
    for (size_t k = 0; k < s->set.count; k++) {
        struct pr_entity *e = s->set.items[k];
        double *v = e->value;
        bool known = e->pss_at && pr_entity_is_here(e) && !s->gone;
        v[METRIC_MEM_PSS_AGE] = known ? pr_seconds(now - e->pss_at) : NAN;
        if (known && e->pss_at != now && v[METRIC_MEM_PSS] > v[METRIC_MEM_RSS]) {
            v[METRIC_MEM_PSS] = v[METRIC_MEM_RSS];
            v[METRIC_MEM_USS] = fmin(v[METRIC_MEM_USS], v[METRIC_MEM_RSS]);
        }
    }
}

/* Not below 0; what is absent stays absent. */
static void take_off(double *v, double by)
{
    *v = *v < by ? 0 : *v - by;
}

/* Inside a process of the job: our own thread, descriptors and CPU time are not the job's. */
static void take_ourselves_out(struct pr_session *s)
{
    struct pr_entity *e = s->inside ? pr_entities_find(&s->set, getpid()) : NULL;
    if (!e)
        return;
    int64_t cpu = s->own_cpu + pr_clock_thread_cpu() - s->own_cpu_began;
    cpu += pr_gpu_start_cpu(s->machine.gpu);
    if (s->queue)
        cpu += pr_queue_cpu(s->queue);
    double seconds = pr_seconds(cpu);
    take_off(&e->value[METRIC_THREADS], s->own_threads);
    take_off(&e->value[METRIC_FDS],
             s->own_fds + s->host.holding + pr_gpu_descriptors(s->machine.gpu));
    take_off(&e->value[METRIC_CPU_TIME], seconds);
    take_off(&e->value[METRIC_CPU_SYSTEM], seconds); /* nearly all that we do is in the kernel */
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

static void discover(struct pr_session *s, const struct pr_tick *t)
{
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

void pr_tick_read(struct pr_session *s, int64_t now)
{
    struct pr_tick t = {&s->host, now, s->text, SESSION_TEXT};
    discover(s, &t);
    for (size_t k = 0; k < s->set.count; k++)
        read_one(s, &t, s->set.items[k]);
    reset_marks(s, &t);
    if (s->net) /* before what uses the budget up: sockets may soon be gone */
        pr_net_read(s->net, &s->set, &t, s->allowance >= 0, s->now.last);
    for (int id = 0; id < SOURCE_COUNT && !s->gone; id++)
        if (pr_sources[id]->can_wait)
            read_patient(s, &t, id);
    keep_patient(s, now);
    take_ourselves_out(s);
    join_new(s);
}

/* --- the job ---------------------------------------------------------------------------------- */

static void count_members(struct pr_session *s, double *value)
{
    double alive = 0;
    for (size_t k = 0; k < s->set.count; k++)
        alive += pr_entity_is_here(s->set.items[k]);
    /* Of a tree only its zombie may be left. */
    value[METRIC_PROCS] = alive > 0 || s->target->ops->may_be_empty ? alive : NAN;
    value[METRIC_PROCS_STARTED] = (double)s->set.started;
    value[METRIC_PROCS_EXITED] = (double)s->set.exited;
}

/* Nobody is left, and we waited for all: what only rusage knows is exact. */
static bool all_reaped(const struct pr_session *s)
{
    for (size_t k = 0; k < s->set.count; k++)
        if (s->set.items[k]->life == LIFE_ALIVE)
            return false;
    return s->reaping && s->ledger.unabsorbed == 0;
}

/* Values that are right as far as they go. */
static void mark_bounds(struct pr_session *s, bool last)
{
    unsigned char *mark = s->now.mark;
    mark[METRIC_PROCS_STARTED] = mark[METRIC_PROCS_EXITED] = MARK_LOWER_BOUND;
    if (!last || !all_reaped(s))
        mark[METRIC_CTX_VOLUNTARY] = mark[METRIC_CTX_INVOLUNTARY] = MARK_LOWER_BOUND;
    if (pr_exact_undivided(s->exact))
        mark[METRIC_CPU_USER] = mark[METRIC_CPU_SYSTEM] = MARK_LOWER_BOUND;
    for (int id = METRIC_IO_READ; id <= METRIC_IO_WCHAR; id++)
        if (s->io_unreadable && !(last && s->reaping))
            mark[id] = MARK_LOWER_BOUND;
    mark[METRIC_ENERGY] = MARK_CPU_SHARE;
}

/* With --peaks a mark is of its interval alone. */
static void high_water(struct pr_session *s, double *value)
{
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metrics[id].kind == KIND_HIGH_WATER) {
            value[id] = fmax(value[id], s->high[id]);
            s->high[id] = s->config->peaks ? NAN : value[id];
        }
}

/* One basis for the whole run: ratios do not change from PSS to RSS where PSS is read less often.
 */
static struct pr_basis basis_of(const struct pr_session *s, double dt)
{
    return (struct pr_basis){dt, &s->limits, s->stats.metric[METRIC_MEM_PSS].known == 0};
}

/* What we reaped has brought its I/O into our own counters. */
static void take_absorbed_io(struct pr_session *s)
{
    double absorbed[PROC_METRICS];
    if (!s->reaped_lately || !(s->select.reads & READ_IO))
        return;
    s->reaped_lately = false;
    pr_self_absorbed_io(absorbed);
    for (int id = METRIC_IO_READ; id <= METRIC_IO_WCHAR; id++)
        if (!isnan(absorbed[id])) {
            s->ledger.reaped[id] = absorbed[id] - s->strange_io[id];
            s->ledger.known[id] = true;
        }
}

/* It is not the ledger's: nobody takes over what a child has moved. */
static void take_net(struct pr_session *s, double *value, bool last)
{
    if (!s->net)
        return;
    if (last)
        pr_net_settle(s->net, &s->set);
    struct pr_net_sum sum = pr_net_sum(s->net);
    value[METRIC_NET_RX] = sum.rx;
    value[METRIC_NET_TX] = sum.tx;
    value[METRIC_NET_UNATTRIBUTED] = sum.unattributed;
    for (int id = 0; id < JOB_METRICS; id++)
        if (sum.short_of && pr_metrics[id].needs == READ_NET)
            s->now.mark[id] = MARK_LOWER_BOUND;
}

static void find_largest(struct pr_entities *set)
{
    for (size_t k = 0; k < set->count; k++) {
        const struct pr_entity *e = set->items[k];
        if (!(e->value[METRIC_MEM_RSS] > set->largest_rss))
            continue;
        set->largest_rss = e->value[METRIC_MEM_RSS];
        set->largest.pid = e->pid;
        memcpy(set->largest.comm, e->comm, sizeof set->largest.comm);
    }
}

void pr_tick_job(struct pr_session *s, double dt, bool last)
{
    double *value = s->now.value;
    take_absorbed_io(s);
    pr_ledger_settle(&s->ledger, &s->set, last);
    memset(s->now.mark, MARK_NONE, sizeof s->now.mark);
    memcpy(value, s->ledger.total, sizeof s->ledger.total);
    pr_exact_settle(s->exact, &s->set, value);
    for (int id = PROC_METRICS; id < METRIC_COUNT; id++)
        value[id] = NAN;
    pr_fold(&s->set, value, s->now.mark);
    count_members(s, value);
    find_largest(&s->set);
    double cpu = value[METRIC_CPU_TIME] - s->totals_before[METRIC_CPU_TIME];
    if (s->select.reads & READ_ENERGY)
        value[METRIC_ENERGY] = pr_energy_read(&s->energy, &s->host, cpu);
    take_net(s, value, last);
    pr_tick_gpu(s, value);
    struct pr_basis basis = basis_of(s, dt);
    pr_derive(value, s->totals_before, &basis, s->now.mark);
    high_water(s, value);
    mark_bounds(s, last);
    for (int id = 0; id < METRIC_COUNT; id++) {
        if (s->gone && pr_metrics[id].kind == KIND_GAUGE)
            value[id] = NAN;
        if (isnan(value[id]))
            s->now.mark[id] = MARK_NONE;
    }
}

/* --- members ---------------------------------------------------------------------------------- */

static void copy_member(struct pr_session *s, struct pr_entity *e, const struct pr_basis *basis,
                        struct pr_member *m)
{
    m->pid = e->pid;
    m->ppid = e->ppid;
    m->started = pr_host_wall_of(&s->host, e->start);
    memcpy(m->comm, e->comm, sizeof m->comm);
    pr_derive(e->value, e->previous, basis, NULL);
    memcpy(m->value, e->value, sizeof m->value);
}

void pr_tick_members(struct pr_session *s, double dt)
{
    struct pr_basis basis = basis_of(s, dt);
    s->now.member_count = 0;
    if (!pr_snapshot_reserve(&s->now, s->set.count, 0))
        return;
    for (size_t k = 0; k < s->set.count; k++) {
        struct pr_entity *e = s->set.items[k];
        if (e->life == LIFE_ALIVE && !e->left)
            copy_member(s, e, &basis, &s->now.members[s->now.member_count++]);
    }
}

void pr_tick_matches(struct pr_session *s, int64_t now, double dt)
{
    struct pr_tick t = {&s->host, now, s->text, SESSION_TEXT};
    struct pr_basis basis = basis_of(s, dt);
    pr_matches_sample(&s->matches, &s->set, &t, &s->now, &basis);
}

void pr_tick_finish(struct pr_session *s)
{
    memcpy(s->totals_before, s->now.value, sizeof s->totals_before);
    for (size_t k = 0; k < s->set.count; k++) {
        struct pr_entity *e = s->set.items[k];
        memcpy(e->previous, e->value, sizeof e->previous);
        if (e->life == LIFE_SETTLED)
            pr_source_release(&s->host, e);
    }
    pr_entities_sweep(&s->set);
}
