/* SPDX-License-Identifier: Apache-2.0 */
#include "core/job.h"

#include <math.h>

#include "core/tick.h"
#include "util/clock.h"

#define LOOKS_ENOUGH 3

void pr_session_meet(struct pr_session *s)
{
    pr_tick_meet(s, pr_clock_boot());
}

void pr_session_look(struct pr_session *s, pid_t pid)
{
    struct pr_tick t = {&s->host, pr_clock_boot(), s->text, SESSION_TEXT};
    struct pr_entity *e = pr_entities_find(&s->set, pid);
    if (!e)
        return;
    pr_source_read(&t, e, SOURCE_pid_stat);
    pr_source_read(&t, e, SOURCE_pid_status);
    s->children_ignored |= e->ignores_children;
}

void pr_session_reaped(struct pr_session *s, pid_t pid, const double *usage, double maxrss)
{
    struct pr_entity *e = pr_entities_find(&s->set, pid);
    s->reaped_lately = true;
    /* What is not above our own size at the fork is a bound and not a mark; a process that was
     * looked at some times has shown its own. */
    if (maxrss > s->rss_floor || !e || e->looks < LOOKS_ENOUGH)
        s->high[METRIC_MEM_RSS_PEAK] = fmax(s->high[METRIC_MEM_RSS_PEAK], maxrss);
    if (e)
        pr_entities_vanish(&s->set, e);
    else { /* it lived between two samples */
        s->set.started++;
        s->set.exited++;
    }
    pr_ledger_reap(&s->ledger, e, usage);
}

void pr_session_call_off(struct pr_session *s)
{
    s->begun = false;
}
