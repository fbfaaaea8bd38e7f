/* SPDX-License-Identifier: Apache-2.0 */
/* Who took over the account of a member that vanished? A parent that waits for a child gets the
 * child's times, faults and I/O added to its own, in one step and before the child is gone. A
 * parent that ignores SIGCHLD, or one outside the job, gets nothing that we see.
 *
 * The receipt is cminflt, the minor faults of reaped children: an exact count, and no process ever
 * ran without a fault. If the nearest living ancestor's cminflt grew by at least what the vanished
 * one had, it was taken over; adding its last values would count it twice. If not, by the reading
 * after next to be sure of the order of events, its last values are all there will ever be: they
 * are added, and the account is marked incomplete.
 *
 * Members are read parents first. So a child that was still there when it was read cannot be in
 * what its parent had taken over when that was read a moment before. */
#include "core/ledger.h"

#include <math.h>
#include <stdlib.h>

#include "core/match.h"

#define RECEIPT  METRIC_FAULTS_MINOR
#define PATIENCE 10 /* readings, however often others take what one waits for */

/* What a member stands for. */
static double account_of(const struct pr_ledger *l, const struct pr_entity *e, int i)
{
    return pr_value_known(e->value[i]) + (l->own_only ? 0 : e->reaped[i]);
}

void pr_ledger_init(struct pr_ledger *l, pid_t reaper)
{
    *l = (struct pr_ledger){.reaper = reaper};
    for (int i = 0; i < PROC_METRICS; i++)
        l->total[i] = NAN;
}

void pr_ledger_join(struct pr_ledger *l, struct pr_entity *e)
{
    e->receipts_seen = e->reaped[RECEIPT];
    for (int i = 0; i < PROC_METRICS; i++) {
        if (!pr_metric_in_ledger((enum pr_metric_id)i))
            continue;
        if (e->born_inside) {
            e->previous[i] = 0;
        } else {
            l->before[i] += account_of(l, e, i);
            e->previous[i] = e->value[i];
            if (i == METRIC_CPU_TIME)
                e->end.cpu_before = pr_value_known(e->value[i]);
            if (i >= METRIC_IO_READ && i <= METRIC_IO_WCHAR)
                e->end.io_brought[i - METRIC_IO_READ] = pr_value_known(e->value[i]);
        }
    }
}

void pr_ledger_return(struct pr_ledger *l, struct pr_entity *e, const double *value,
                      const double *reaped)
{
    for (int i = 0; i < PROC_METRICS; i++) {
        if (!pr_metric_in_ledger((enum pr_metric_id)i))
            continue;
        l->before[i] += pr_value_known(e->value[i]) - pr_value_known(value[i]);
        l->before[i] += l->own_only ? 0 : e->reaped[i] - reaped[i];
        e->previous[i] = e->value[i];
    }
}

/* Nobody takes this over: it stays as it was read last. */
static void keep_unshared(struct pr_ledger *l, const struct pr_entity *e)
{
    for (int i = 0; i < PROC_METRICS; i++)
        if (pr_metrics[i].fold == FOLD_OWN)
            l->lost[i] += pr_value_known(e->value[i]);
}

void pr_ledger_reap(struct pr_ledger *l, struct pr_entity *e, const double *usage)
{
    for (int i = 0; i < PROC_METRICS; i++)
        if (pr_metric_in_ledger((enum pr_metric_id)i) && !isnan(usage[i])) {
            l->reaped[i] += usage[i];
            l->known[i] = true;
        }
    /* What it has taken over since the last settling may be the receipt of somebody who vanished.
     */
    double had = e ? pr_value_known(e->value[RECEIPT]) + e->receipts_seen : 0;
    l->receipts_new += fmax(0, usage[RECEIPT] - had);
    if (!e)
        return;
    keep_unshared(l, e);
    l->absorbed |= e->reaped[RECEIPT] > e->receipts_seen;
    e->life = LIFE_SETTLED;
    e->ppid = l->reaper; /* whoever it came from: in the end it was ours */
    e->heir = NULL;
}

/* A zombie waits for nobody any more: it is an heir only by what it has taken over before, and its
 * other children went to somebody above it. */
static bool may_be_heir(const struct pr_entity *heir, const struct pr_entity *e)
{
    return heir->life == LIFE_ALIVE &&
           (!pr_entity_is_dead(heir) || heir->receipts_old + heir->receipts_new >= e->claim);
}

/* The nearest ancestor of whom that holds; NULL is us or nobody. */
static struct pr_entity *ancestor(const struct pr_entities *set, const struct pr_entity *e,
                                  bool (*holds)(const struct pr_entity *, const struct pr_entity *))
{
    struct pr_entity *up = e->heir ? e->heir : pr_entities_find_any(set, e->ppid);
    /* Bounded: a pid that was used again could close a circle. */
    for (int steps = 0; up && !holds(up, e) && steps < 1000; steps++)
        up = up->heir ? up->heir : pr_entities_find_any(set, up->ppid);
    return up && holds(up, e) ? up : NULL;
}

/* A direct claim takes the receipt away; an indirect one may be a part of what is left, and if it
 * is, it must not count again. */
static bool take_receipt(double *old, double *fresh, double *early, const struct pr_entity *e)
{
    if (*old + *fresh < e->claim)
        return false;
    if (e->direct) {
        double from_old = fmin(*old, e->claim);
        *old -= from_old;
        *fresh -= e->claim - from_old;
        *early += e->vanished_for == 0 ? e->claim : 0;
    }
    return true;
}

static void lose(struct pr_ledger *l, const struct pr_entity *e)
{
    l->unabsorbed++;
    for (int i = 0; i < PROC_METRICS; i++)
        if (pr_metric_in_ledger((enum pr_metric_id)i))
            l->lost[i] += account_of(l, e, i);
}

/* Its heir has its I/O now. The rest of what the heir took over does not count where only the own
 * use of each does. */
static void keep_own(struct pr_ledger *l, const struct pr_entity *e)
{
    for (int i = 0; i < PROC_METRICS; i++)
        if (pr_metric_in_ledger((enum pr_metric_id)i) && !(pr_metrics[i].needs & READ_IO))
            l->lost[i] += pr_value_known(e->value[i]);
}

/* Its heir has its I/O as if it were its own; in the accounts by name (match.c) and in the roll
 * each has its own alone. */
static void keep_io_apart(const struct pr_entity *e, struct pr_entity *heir)
{
    for (int i = 0; i < PROC_METRICS && heir->named; i++)
        if (pr_metrics[i].needs & READ_IO)
            heir->named->since[i] += pr_value_known(e->value[i]);
    for (int i = METRIC_IO_READ; i <= METRIC_IO_WCHAR; i++)
        heir->end.io_brought[i - METRIC_IO_READ] +=
            pr_value_known(pr_entity_io(e, i - METRIC_IO_READ));
}

/* A direct child that has only just vanished comes first, but what it takes may have been left by
 * another: its own can come with the next reading, and then makes up for it. */
static bool was_robbed(const struct pr_ledger *l, const struct pr_entity *e)
{
    const struct pr_entity *heir = e->heir;
    double left = heir ? heir->receipts_old + heir->receipts_new + heir->receipts_early
                       : l->receipts_old + l->receipts_new + l->receipts_early;
    return !e->direct && e->claim <= left && e->vanished_for < PATIENCE;
}

/* Its files have the I/O of whom it waited for: it lives, or we have waited for it, and its files
 * were read at its end. */
static bool has_its_io(const struct pr_entity *heir, const struct pr_entity *e)
{
    (void)e;
    return heir->life == LIFE_ALIVE || heir->end.waited;
}

static void settle_one(struct pr_ledger *l, const struct pr_entities *set, struct pr_entity *e,
                       bool last)
{
    struct pr_entity *heir = e->heir;
    bool taken =
        heir ? take_receipt(&heir->receipts_old, &heir->receipts_new, &heir->receipts_early, e)
             : l->reaper && take_receipt(&l->receipts_old, &l->receipts_new, &l->receipts_early, e);
    bool can_come = !last && (e->vanished_for == 0 || was_robbed(l, e)) && (heir || l->reaper);
    e->vanished_for++;
    /* Until the next reading it counts as if it lived, unless its receipt may be among those that
     * others have taken: rather too little for a moment than too much for ever. */
    e->counts = e->claim > (heir ? heir->receipts_window : l->receipts_window);
    if (!taken && can_come) {
        if (heir)
            heir->awaited = true;
        return;
    }
    e->life = LIFE_SETTLED;
    if (taken && (heir = ancestor(set, e, has_its_io)))
        keep_io_apart(e, heir);
    if (!taken)
        lose(l, e);
    else if (l->own_only)
        keep_own(l, e);
    else
        keep_unshared(l, e);
}

/* Whose receipt is it? First those whose own parent has it; of those the ones who cannot wait any
 * longer; then the largest: what a small claim would break off would be missing from a large one.
 */
static int by_right(const void *a, const void *b)
{
    const struct pr_entity *x = *(struct pr_entity *const *)a, *y = *(struct pr_entity *const *)b;
    if (x->direct != y->direct)
        return x->direct ? -1 : 1;
    if (x->vanished_for != y->vanished_for)
        return y->vanished_for - x->vanished_for;
    return (x->claim < y->claim) - (x->claim > y->claim);
}

static void claim(const struct pr_ledger *l, const struct pr_entities *set, struct pr_entity *e)
{
    e->claim = pr_value_known(e->value[RECEIPT]) + e->reaped[RECEIPT];
    struct pr_entity *heir = ancestor(set, e, may_be_heir);
    if (e->vanished_for && heir != e->heir)
        e->vanished_for = 0; /* whom it waited for is gone, too: the receipt can come later */
    e->heir = heir;
    e->direct = heir ? heir->pid == e->ppid : e->ppid == l->reaper;
}

static void settle_vanished(struct pr_ledger *l, const struct pr_entities *set, bool last)
{
    size_t count = 0;
    for (size_t k = 0; k < set->count; k++) {
        struct pr_entity *e = set->items[k];
        if (e->life != LIFE_VANISHED)
            continue;
        claim(l, set, e);
        set->scratch[count++] = e;
    }
    if (count > 1)
        qsort(set->scratch, count, sizeof *set->scratch, by_right);
    for (size_t k = 0; k < count; k++)
        settle_one(l, set, set->scratch[k], last);
}

/* What was not claimed in two readings belongs to children that we never saw. */
static void age_receipts(double *old, double *fresh, double growth)
{
    *old = *fresh;
    *fresh = growth;
}

static void count_receipts(struct pr_ledger *l, const struct pr_entities *set)
{
    for (size_t k = 0; k < set->count; k++) {
        struct pr_entity *e = set->items[k];
        if (e->life != LIFE_ALIVE)
            continue;
        l->absorbed |= e->reaped[RECEIPT] > e->receipts_seen;
        age_receipts(&e->receipts_old, &e->receipts_new, e->reaped[RECEIPT] - e->receipts_seen);
        e->receipts_seen = e->reaped[RECEIPT];
        e->receipts_window = e->receipts_old + e->receipts_new;
        e->receipts_early = 0;
    }
    l->receipts_early = 0;
    l->receipts_window = l->receipts_old + l->receipts_new;
}

/* Who never waited for anybody stands for itself: that is not looked at, there may be thousands. */
static void add(struct pr_ledger *l, const struct pr_entity *e, const int *ids, size_t n,
                double *sum)
{
    bool childless = e->reaped[RECEIPT] == 0 && e->reaped[METRIC_CPU_TIME] == 0;
    for (size_t k = 0; k < n; k++) {
        int i = ids[k];
        sum[i] += childless ? pr_value_known(e->value[i]) : account_of(l, e, i);
        l->known[i] |= !isnan(e->value[i]);
    }
}

void pr_ledger_settle(struct pr_ledger *l, const struct pr_entities *set, bool last)
{
    double sum[PROC_METRICS];
    int ids[PROC_METRICS];
    size_t n = 0;
    count_receipts(l, set);
    settle_vanished(l, set, last);
    age_receipts(&l->receipts_old, &l->receipts_new, 0);

    for (int i = 0; i < PROC_METRICS; i++) {
        sum[i] = l->reaped[i] + l->lost[i] - l->before[i];
        if (pr_metric_in_ledger((enum pr_metric_id)i))
            ids[n++] = i;
    }
    for (size_t k = 0; k < set->count; k++) {
        const struct pr_entity *e = set->items[k];
        if (e->life == LIFE_ALIVE || (e->life == LIFE_VANISHED && e->counts))
            add(l, e, ids, n, sum);
    }
    for (size_t k = 0; k < n; k++)
        if (l->known[ids[k]])
            l->total[ids[k]] = fmax(pr_value_known(l->total[ids[k]]), sum[ids[k]]);
}
