/* SPDX-License-Identifier: Apache-2.0 */
#include "core/snapshot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "util/clock.h"

/* Room for n items of this size; doubles what there is. */
static bool grow(void **items, size_t *cap, size_t n, size_t size)
{
    size_t more = *cap ? *cap : 16;
    if (n <= *cap)
        return true;
    while (more < n)
        more *= 2;
    void *bigger = realloc(*items, more * size);
    if (!bigger)
        return false;
    *items = bigger;
    *cap = more;
    return true;
}

bool pr_snapshot_reserve(struct proctor_snapshot *s, size_t members, size_t devices)
{
    return grow((void **)&s->members, &s->member_cap, members, sizeof *s->members) &&
           grow((void **)&s->devices, &s->device_cap, devices, sizeof *s->devices);
}

bool pr_snapshot_reserve_matches(struct proctor_snapshot *s, size_t matches)
{
    return grow((void **)&s->matches, &s->match_cap, matches, sizeof *s->matches);
}

int pr_snapshot_copy(struct proctor_snapshot *to, const struct proctor_snapshot *from)
{
    struct proctor_snapshot kept = *to;
    *to = *from;
    to->members = kept.members;
    to->member_cap = kept.member_cap;
    to->devices = kept.devices;
    to->device_cap = kept.device_cap;
    to->matches = kept.matches;
    to->match_cap = kept.match_cap;
    to->member_count = to->device_count = to->match_count = 0;
    if (!pr_snapshot_reserve(to, from->member_count, from->device_count) ||
        !pr_snapshot_reserve_matches(to, from->match_count))
        return -ENOMEM;
    if (from->member_count)
        memcpy(to->members, from->members, from->member_count * sizeof *to->members);
    if (from->device_count)
        memcpy(to->devices, from->devices, from->device_count * sizeof *to->devices);
    if (from->match_count)
        memcpy(to->matches, from->matches, from->match_count * sizeof *to->matches);
    to->member_count = from->member_count;
    to->device_count = from->device_count;
    to->match_count = from->match_count;
    return 0;
}

void pr_snapshot_done(struct proctor_snapshot *s)
{
    free(s->members);
    free(s->devices);
    free(s->matches);
    s->members = NULL;
    s->devices = NULL;
    s->matches = NULL;
    s->member_count = s->member_cap = 0;
    s->device_count = s->device_cap = 0;
    s->match_count = s->match_cap = 0;
}

static int give(double v, double *ret)
{
    if (isnan(v))
        return -ENODATA;
    *ret = v;
    return 0;
}

int proctor_snapshot_value(const struct proctor_snapshot *s, const char *key, double *ret)
{
    enum pr_metric_id id = pr_metric_find(key);
    return id == METRIC_NONE ? -ENOENT : give(s->value[id], ret);
}

size_t proctor_snapshot_values(const struct proctor_snapshot *s, double *ret, size_t count)
{
    memcpy(ret, s->value, (count < METRIC_COUNT ? count : METRIC_COUNT) * sizeof *ret);
    return METRIC_COUNT;
}

const char *proctor_snapshot_mark(const struct proctor_snapshot *s, const char *key)
{
    enum pr_metric_id id = pr_metric_find(key);
    return id == METRIC_NONE ? NULL : pr_mark_name((enum pr_mark)s->mark[id]);
}

size_t proctor_snapshot_marks(const struct proctor_snapshot *s, const char **ret, size_t count)
{
    for (size_t id = 0; id < METRIC_COUNT && id < count; id++)
        ret[id] = pr_mark_name((enum pr_mark)s->mark[id]);
    return METRIC_COUNT;
}

double proctor_snapshot_elapsed(const struct proctor_snapshot *s)
{
    return pr_seconds(s->elapsed);
}

double proctor_snapshot_interval(const struct proctor_snapshot *s)
{
    return pr_seconds(s->interval);
}

int64_t proctor_snapshot_time(const struct proctor_snapshot *s)
{
    return s->time;
}

/* --- processes and devices -------------------------------------------------------------------- */

size_t proctor_snapshot_processes(const struct proctor_snapshot *s)
{
    return s->member_count;
}

pid_t proctor_snapshot_process_pid(const struct proctor_snapshot *s, size_t i)
{
    return i < s->member_count ? s->members[i].pid : -EINVAL;
}

const char *proctor_snapshot_process_command(const struct proctor_snapshot *s, size_t i)
{
    return i < s->member_count ? s->members[i].comm : NULL;
}

int proctor_snapshot_process_value(const struct proctor_snapshot *s, size_t i, const char *key,
                                   double *ret)
{
    int id = (int)pr_metric_find(key);
    if (i >= s->member_count)
        return -EINVAL;
    return id >= PROC_METRICS ? -ENOENT : give(s->members[i].value[id], ret);
}

size_t proctor_snapshot_process_values(const struct proctor_snapshot *s, size_t i, double *ret,
                                       size_t count)
{
    if (i >= s->member_count)
        return 0;
    memcpy(ret, s->members[i].value, (count < PROC_METRICS ? count : PROC_METRICS) * sizeof *ret);
    return PROC_METRICS;
}

size_t proctor_snapshot_devices(const struct proctor_snapshot *s)
{
    return s->device_count;
}

const char *proctor_snapshot_device_kind(const struct proctor_snapshot *s, size_t i)
{
    return i < s->device_count ? pr_device_kind_name(s->devices[i].kind) : NULL;
}

const char *proctor_snapshot_device_name(const struct proctor_snapshot *s, size_t i)
{
    return i < s->device_count ? s->devices[i].name : NULL;
}

int proctor_snapshot_device_value(const struct proctor_snapshot *s, size_t i, const char *key,
                                  double *ret)
{
    enum pr_metric_id id = pr_metric_find(key);
    if (i >= s->device_count)
        return -EINVAL;
    int slot = id == METRIC_NONE ? -1 : pr_device_slot(s->devices[i].kind, id);
    return slot < 0 ? -ENOENT : give(s->devices[i].value[slot], ret);
}

size_t proctor_snapshot_device_values(const struct proctor_snapshot *s, size_t i, double *ret,
                                      size_t count)
{
    if (i >= s->device_count)
        return 0;
    for (size_t id = 0; id < count && id < METRIC_COUNT; id++) {
        int slot = pr_device_slot(s->devices[i].kind, (enum pr_metric_id)id);
        ret[id] = slot < 0 ? NAN : s->devices[i].value[slot];
    }
    return METRIC_COUNT;
}
