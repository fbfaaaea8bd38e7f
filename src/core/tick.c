/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tick.h"

#include <math.h>
#include <string.h>

#include "core/exact.h"
#include "core/net.h"
#include "core/self.h"
#include "core/tick_depth.h"
#include "util/clock.h"

#define ABSORBED_TRIES 20

/* --- the job ---------------------------------------------------------------------------------- */

static void count_members(struct pr_session *s, double *value)
{
    double alive = 0;
    int64_t now = s->start_boot + s->now.elapsed, oldest = now;
    for (size_t k = 0; k < s->set.count; k++) {
        const struct pr_entity *e = s->set.items[k];
        if (!pr_entity_is_here(e))
            continue;
        alive++;
        if (e->aged && e->refreshed_at < oldest)
            oldest = e->refreshed_at;
    }
    /* Of a tree only its zombie may be left. */
    value[METRIC_PROCS] = alive > 0 || s->target->ops->may_be_empty ? alive : NAN;
    value[METRIC_FDS_AGE] = alive > 0 ? pr_seconds(now - oldest) : NAN;
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
    mark[METRIC_SCHED_DELAY] = MARK_LOWER_BOUND;
    if (!last || !all_reaped(s))
        mark[METRIC_CTX_VOLUNTARY] = mark[METRIC_CTX_INVOLUNTARY] = MARK_LOWER_BOUND;
    if (pr_exact_undivided(s->exact))
        mark[METRIC_CPU_USER] = mark[METRIC_CPU_SYSTEM] = MARK_LOWER_BOUND;
    bool in_turn = s->turns.io_crowd || s->turns.io_left;
    for (int id = METRIC_IO_READ; id <= METRIC_IO_WCHAR; id++)
        if ((s->io_unreadable && !(last && s->reaping)) || (in_turn && !last))
            mark[id] = MARK_LOWER_BOUND;
    if (in_turn)
        mark[METRIC_IO_READ_RATE] = mark[METRIC_IO_WRITE_RATE] = MARK_AGED;
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
    return (struct pr_basis){dt, &s->limits, s->stats.metric[METRIC_MEM_PSS].known == 0,
                             s->turns.io_dt};
}

/* While a thread of ours writes a reading can be too small, but never too large: where none comes
 * after it the largest of some is taken, until two agree. */
static void read_absorbed_io(double *ret, bool last)
{
    double again[PROC_METRICS];
    bool same = !last;
    pr_self_absorbed_io(ret);
    for (int tries = 0; tries < ABSORBED_TRIES && !same; tries++) {
        pr_self_absorbed_io(again);
        same = true;
        for (int id = METRIC_IO_READ; id <= METRIC_IO_WCHAR; id++) {
            same &= !(again[id] > ret[id] || again[id] < ret[id]);
            ret[id] = fmax(ret[id], again[id]);
        }
    }
}

/* What we reaped has brought its I/O into our own counters. */
static void take_absorbed_io(struct pr_session *s, bool last)
{
    double absorbed[PROC_METRICS];
    if (!s->reaped_lately || !(s->select.reads & READ_IO))
        return;
    s->reaped_lately = false;
    read_absorbed_io(absorbed, last && s->queue); /* which has a thread */
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

void pr_tick_job(struct pr_session *s, double dt, bool last)
{
    double *value = s->now.value;
    take_absorbed_io(s, last);
    pr_ledger_settle(&s->ledger, &s->set, last);
    memset(s->now.mark, MARK_NONE, sizeof s->now.mark);
    memcpy(value, s->ledger.total, sizeof s->ledger.total);
    pr_exact_settle(s->exact, &s->set, value);
    for (int id = PROC_METRICS; id < METRIC_COUNT; id++)
        value[id] = NAN;
    pr_fold(&s->set, value, s->now.mark);
    count_members(s, value);
    double cpu = value[METRIC_CPU_TIME] - s->totals_before[METRIC_CPU_TIME];
    if (s->select.reads & READ_ENERGY)
        value[METRIC_ENERGY] = pr_energy_read(&s->energy, &s->host, cpu);
    take_net(s, value, last);
    pr_tick_gpu(s, value);
    pr_depth_time_io(s, dt);
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
    m->match = e->match == MATCH_NONE ? NULL : s->matches.items[e->match].name;
    pr_derive(e->value, e->previous, basis, NULL);
    pr_entity_now(e, m->value);
}

void pr_tick_members(struct pr_session *s, double dt)
{
    struct pr_basis all = basis_of(s, dt), basis = pr_basis_of_member(&all);
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
    s->now.match_count = 0;
    if (s->want_matches && pr_snapshot_reserve_matches(&s->now, s->matches.count))
        for (size_t i = 0; i < s->matches.count; i++)
            pr_match_show(&s->matches.items[i], &s->now.matches[s->now.match_count++]);
}
