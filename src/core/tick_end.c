/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a tick: what is now becomes what was before, and those who are gone go into the roll.
 */
#include <math.h>
#include <string.h>

#include "core/tick.h"

void pr_tick_enroll(struct pr_session *s, const struct pr_entity *e)
{
    struct pr_roll_entry entry = pr_roll_entry_of(e);
    entry.started = pr_host_wall_of(&s->host, e->start);
    entry.ended = e->end.at ? s->start_wall + e->end.at - s->start_boot : 0;
    entry.peak_final |= !e->end.at; /* there was no more of it while we looked */
    /* How those ended for whom it waited, be they sampled or not, it alone was told. */
    s->roll.killed |= e->reaped[METRIC_FAULTS_MINOR] > 0;
    pr_roll_add(&s->roll, &entry);
}

void pr_tick_finish(struct pr_session *s)
{
    if (s->now.first)
        s->roll.at_first = s->set.started;
    pr_derive_next(s->totals_before, s->now.value, s->turns.io_dt);
    for (size_t k = 0; k < s->set.count; k++) {
        struct pr_entity *e = s->set.items[k];
        memcpy(e->previous, e->value, sizeof e->previous);
        e->end.mark = fmax(e->end.mark, e->value[METRIC_MEM_RSS_PEAK]);
        if (!e->end.at && (e->life != LIFE_ALIVE || pr_entity_is_dead(e)))
            e->end.at = s->sampled;
        if (e->life != LIFE_SETTLED)
            continue;
        pr_source_release(&s->host, e);
        pr_tick_enroll(s, e);
    }
    pr_entities_sweep(&s->set);
}

void pr_tick_last(struct pr_session *s)
{
    for (size_t k = 0; k < s->set.count; k++)
        pr_tick_enroll(s, s->set.items[k]);
}
