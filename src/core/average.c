/* SPDX-License-Identifier: Apache-2.0 */
#include "core/average.h"

static void take_members(struct proctor_snapshot *out, struct pr_entities *set)
{
    for (size_t i = 0; i < out->member_count; i++) {
        struct pr_entity *e = pr_entities_find(set, out->members[i].pid);
        if (e)
            pr_mean_take(e->mean, out->members[i].value, PROC_METRICS);
    }
}

const struct proctor_snapshot *pr_average_add(struct pr_average *a, int n,
                                              const struct proctor_snapshot *sample,
                                              struct pr_entities *set)
{
    if (n < 2)
        return sample;
    pr_mean_add(a->mean, sample->value, METRIC_COUNT);
    for (size_t k = 0; k < set->count; k++)
        pr_mean_add(set->items[k]->mean, set->items[k]->value, PROC_METRICS);
    a->interval += sample->interval;
    if (++a->pending < n && !sample->last)
        return NULL;
    pr_snapshot_copy(&a->out, sample);
    pr_mean_take(a->mean, a->out.value, METRIC_COUNT);
    take_members(&a->out, set);
    a->out.interval = a->interval;
    a->pending = 0;
    a->interval = 0;
    return &a->out;
}
