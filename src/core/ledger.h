/* SPDX-License-Identifier: Apache-2.0 */
/* What the job has used so far, exited members included: totals that never fall and never count
 * anything twice. For each counter:
 *
 *   total = sum over living members of (own + taken over from reaped children)
 *         + what we ourselves reaped (run: wait4 as subreaper)
 *         + last values of members that left without anybody in the job taking their account over
 *         - what members had used before they joined */
#pragma once
#include <stdbool.h>

#include "core/entity.h"

struct pr_ledger {
    double reaped[PROC_METRICS]; /* by us */
    double lost[PROC_METRICS];   /* last values of those that nobody took over */
    double before[PROC_METRICS]; /* used before joining */
    bool own_only;               /* of members, without what they have taken over from children */
    bool absorbed;            /* a member has reaped children: there were more than those we saw */
    bool known[PROC_METRICS]; /* has it been read at all? */
    double total[PROC_METRICS]; /* the result; NaN until something was read */
    double receipts_old, receipts_new, receipts_window,
        receipts_early;       /* as in struct pr_entity, for what we reaped */
    pid_t reaper;             /* our pid where we reap, else 0 */
    unsigned long unabsorbed; /* members that left without being taken over */
};

void pr_ledger_init(struct pr_ledger *l, pid_t reaper);
/* A member's first reading: what it used before it joined does not count, unless it was born while
 * we recorded. */
void pr_ledger_join(struct pr_ledger *l, struct pr_entity *e);
/* A member that had left is back: what it used since then, compared with these values of before,
 * does not count. */
void pr_ledger_return(struct pr_ledger *l, struct pr_entity *e, const double *value,
                      const double *reaped);
/* We waited for a process: `usage` holds what it and all it reaped used. e is its entity where it
 * was a member known to us, else NULL; it is settled by this. */
void pr_ledger_reap(struct pr_ledger *l, struct pr_entity *e, const double *usage);
/* After each reading of all members: settles those that vanished and makes the totals. `last`: no
 * later reading can bring a receipt any more. */
void pr_ledger_settle(struct pr_ledger *l, const struct pr_entities *set, bool last);
