/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/latest.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "util/clock.h"

#define STANDS (3 * NS_PER_S) /* so long a value stands that was not read again */

/* PSS and its age are of each sample in which they are known: an age that stands is too small. */
static bool stands(int id)
{
    return pr_metrics[id].needs != READ_SMAPS;
}

static void take_values(struct pr_latest *l, const struct proctor_snapshot *s)
{
    for (int id = 0; id < METRIC_COUNT; id++) {
        if (isnan(s->value[id]) && stands(id) && s->elapsed - l->known_at[id] <= STANDS)
            continue;
        l->now.value[id] = s->value[id];
        l->known_at[id] = s->elapsed;
    }
}

static int take_gpus(struct pr_latest *l, const struct proctor_snapshot *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->device_count; i++)
        count += s->devices[i].kind == DEVICE_GPU;
    if (!count && s->elapsed - l->gpus_at <= STANDS)
        return 0;
    l->gpus_at = s->elapsed;
    l->now.device_count = 0;
    if (!pr_snapshot_reserve(&l->now, 0, count))
        return -ENOMEM;
    for (size_t i = 0; i < s->device_count; i++)
        if (s->devices[i].kind == DEVICE_GPU)
            l->now.devices[l->now.device_count++] = s->devices[i];
    return 0;
}

/* They come with every sample. */
static int take_matches(struct pr_latest *l, const struct proctor_snapshot *s)
{
    l->now.match_count = 0;
    if (!pr_snapshot_reserve_matches(&l->now, s->match_count))
        return -ENOMEM;
    if (s->match_count)
        memcpy(l->now.matches, s->matches, s->match_count * sizeof *s->matches);
    l->now.match_count = s->match_count;
    return 0;
}

int pr_latest_take(struct pr_latest *l, const struct proctor_snapshot *s)
{
    if (!l->begun)
        pr_values_none(l->now.value, METRIC_COUNT);
    l->begun = true;
    l->now.time = s->time;
    l->now.elapsed = s->elapsed;
    l->now.interval = s->interval;
    take_values(l, s);
    int gpus = take_gpus(l, s), matches = take_matches(l, s);
    return gpus < 0 ? gpus : matches;
}

void pr_latest_done(struct pr_latest *l)
{
    pr_snapshot_done(&l->now);
}
