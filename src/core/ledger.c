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

#define RECEIPT METRIC_FAULTS_MINOR

static double known(double v)
{
    return isnan(v) ? 0 : v;
}

void pr_ledger_init(struct pr_ledger *l, pid_t reaper)
{
    *l = (struct pr_ledger){.reaper = reaper};
    for (int i = 0; i < METRIC_COUNT; i++)
        l->total[i] = NAN;
}

void pr_ledger_join(struct pr_ledger *l, struct pr_entity *e)
{
    e->receipts_seen = e->reaped[RECEIPT];
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (!pr_metric_in_ledger((enum pr_metric_id)i))
            continue;
        if (e->born_inside) {
            e->previous[i] = 0;
        } else {
            l->before[i] += known(e->value[i]) + e->reaped[i];
            e->previous[i] = e->value[i];
        }
    }
}

void pr_ledger_reap(struct pr_ledger *l, struct pr_entity *e, const double *usage)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (pr_metric_in_ledger((enum pr_metric_id)i) && !isnan(usage[i])) {
            l->reaped[i] += usage[i];
            l->known[i] = true;
        }
    /* What it has taken over since the last settling may be the receipt of somebody who vanished.
     */
    double had = e ? known(e->value[RECEIPT]) + e->receipts_seen : 0;
    l->receipts_new += fmax(0, usage[RECEIPT] - had);
    if (!e)
        return;
    l->absorbed |= e->reaped[RECEIPT] > e->receipts_seen;
    e->life = LIFE_SETTLED;
}

/* The nearest ancestor that still lives; NULL is us or nobody. */
static struct pr_entity *living_heir(const struct pr_entities *set, const struct pr_entity *e)
{
    struct pr_entity *heir = e->heir ? e->heir : pr_entities_find_any(set, e->ppid);
    /* Bounded: a pid that was used again could close a circle. */
    for (int steps = 0; heir && heir->life != LIFE_ALIVE && steps < 1000; steps++)
        heir = heir->heir ? heir->heir : pr_entities_find_any(set, heir->ppid);
    return heir && heir->life == LIFE_ALIVE ? heir : NULL;
}

static bool take_receipt(double *old, double *fresh, double amount)
{
    if (*old + *fresh < amount)
        return false;
    double from_old = fmin(*old, amount);
    *old -= from_old;
    *fresh -= amount - from_old;
    return true;
}

static void settle_one(struct pr_ledger *l, const struct pr_entities *set, struct pr_entity *e,
                       bool last)
{
    double amount = known(e->value[RECEIPT]) + e->reaped[RECEIPT];
    struct pr_entity *heir = e->heir = living_heir(set, e);
    bool taken = heir ? take_receipt(&heir->receipts_old, &heir->receipts_new, amount)
                      : l->reaper && take_receipt(&l->receipts_old, &l->receipts_new, amount);
    bool can_come = !last && e->vanished_for++ < 1 && (heir || l->reaper);
    if (!taken && can_come)
        return; /* counted as if it lived until the next reading */
    e->life = LIFE_SETTLED;
    if (taken)
        return;
    l->unabsorbed++;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (pr_metric_in_ledger((enum pr_metric_id)i))
            l->lost[i] += known(e->value[i]) + e->reaped[i];
}

/* What was not claimed in two readings belongs to children that we never saw. */
static void age_receipts(double *old, double *fresh, double growth)
{
    *old = *fresh;
    *fresh = growth;
}

void pr_ledger_settle(struct pr_ledger *l, const struct pr_entities *set, bool last)
{
    double sum[METRIC_COUNT];
    for (size_t k = 0; k < set->count; k++) {
        struct pr_entity *e = set->items[k];
        if (e->life != LIFE_ALIVE)
            continue;
        l->absorbed |= e->reaped[RECEIPT] > e->receipts_seen;
        age_receipts(&e->receipts_old, &e->receipts_new, e->reaped[RECEIPT] - e->receipts_seen);
        e->receipts_seen = e->reaped[RECEIPT];
    }
    for (size_t k = 0; k < set->count; k++)
        if (set->items[k]->life == LIFE_VANISHED)
            settle_one(l, set, set->items[k], last);
    age_receipts(&l->receipts_old, &l->receipts_new, 0);

    for (int i = 0; i < METRIC_COUNT; i++)
        sum[i] = l->reaped[i] + l->lost[i] - l->before[i];
    for (size_t k = 0; k < set->count; k++) {
        const struct pr_entity *e = set->items[k];
        for (int i = 0; i < METRIC_COUNT && e->life != LIFE_SETTLED; i++) {
            sum[i] += known(e->value[i]) + e->reaped[i];
            l->known[i] |= !isnan(e->value[i]);
        }
    }
    for (int i = 0; i < METRIC_COUNT; i++)
        if (pr_metric_in_ledger((enum pr_metric_id)i) && l->known[i])
            l->total[i] = fmax(known(l->total[i]), sum[i]);
}
