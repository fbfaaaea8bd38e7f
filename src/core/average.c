/* SPDX-License-Identifier: Apache-2.0 */
#include "core/average.h"

#include <math.h>
#include <string.h>

/* What is said of one value is said of the mean; of a total, what is said of the last. */
static void say(struct pr_average *a, const struct proctor_snapshot *sample, int id)
{
    if (sample->mark[id] || pr_metric_is_total((enum pr_metric_id)id))
        pr_said_add(&a->said[id], id, sample->mark[id]);
}

static void add_job(struct pr_average *a, const struct proctor_snapshot *sample)
{
    pr_mean_add(a->mean, sample->value, METRIC_COUNT);
    for (int id = 0; id < METRIC_COUNT; id++)
        if (!isnan(sample->value[id]))
            say(a, sample, id);
}

static void take_job(struct pr_average *a)
{
    pr_mean_take(a->mean, a->out.value, METRIC_COUNT);
    for (int id = 0; id < METRIC_COUNT; id++)
        a->out.mark[id] = (unsigned char)pr_said_mark(&a->said[id]);
    memset(a->said, 0, sizeof a->said);
}

static void add_members(struct pr_entities *set)
{
    double value[PROC_METRICS];
    for (size_t k = 0; k < set->count; k++) {
        struct pr_entity *e = set->items[k];
        if (e->left) { /* nobody asks for its mean, unless it comes back */
            memset(e->mean, 0, PROC_METRICS * sizeof *e->mean);
            continue;
        }
        pr_entity_now(e, value);
        pr_mean_add(e->mean, value, PROC_METRICS);
    }
}

/* Of a counter that was not read for the last sample there is nothing of now. */
static void take_member(struct pr_mean *mean, double *value)
{
    double last[PROC_METRICS];
    memcpy(last, value, sizeof last);
    pr_mean_take(mean, value, PROC_METRICS);
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metrics[id].kind == KIND_COUNTER && isnan(last[id]))
            value[id] = NAN;
}

static void take_members(struct proctor_snapshot *out, struct pr_entities *set)
{
    for (size_t i = 0; i < out->member_count; i++) {
        struct pr_entity *e = pr_entities_find(set, out->members[i].pid);
        if (e)
            take_member(e->mean, out->members[i].value);
    }
}

static void add_matches(struct pr_average *a, const struct proctor_snapshot *sample)
{
    for (size_t i = 0; i < sample->match_count; i++)
        pr_mean_add(a->matches[i], sample->matches[i].value, PROC_METRICS);
}

static void take_matches(struct pr_average *a)
{
    for (size_t i = 0; i < a->out.match_count; i++)
        pr_mean_take(a->matches[i], a->out.matches[i].value, PROC_METRICS);
}

/* The devices of one become those of the other. */
static void copy_devices(struct proctor_snapshot *to, const struct proctor_snapshot *from)
{
    if (!from->device_count || !pr_snapshot_reserve(to, 0, from->device_count))
        return;
    memcpy(to->devices, from->devices, from->device_count * sizeof *to->devices);
    to->device_count = from->device_count;
    to->machine_interval = from->machine_interval;
}

const struct proctor_snapshot *pr_average_add(struct pr_average *a, int n,
                                              const struct proctor_snapshot *sample,
                                              struct pr_entities *set)
{
    if (n < 2)
        return sample;
    add_job(a, sample);
    add_members(set);
    add_matches(a, sample);
    a->interval += sample->interval;
    a->first |= sample->first;
    copy_devices(&a->kept, sample);
    if (++a->pending < n && !sample->last)
        return NULL;
    pr_snapshot_copy(&a->out, sample);
    take_job(a);
    take_members(&a->out, set);
    take_matches(a);
    copy_devices(&a->out, &a->kept);
    a->kept.device_count = 0;
    a->out.interval = a->interval;
    a->out.first = a->first;
    a->pending = 0;
    a->interval = 0;
    a->first = false;
    return &a->out;
}
