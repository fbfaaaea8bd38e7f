/* SPDX-License-Identifier: Apache-2.0 */
#include "core/snapshot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "util/clock.h"

bool pr_snapshot_reserve(struct proctor_snapshot *s, size_t n)
{
    if (n <= s->member_cap)
        return true;
    size_t cap = s->member_cap ? s->member_cap : 16;
    while (cap < n)
        cap *= 2;
    struct pr_member *members = realloc(s->members, cap * sizeof *members);
    if (!members)
        return false;
    s->members = members;
    s->member_cap = cap;
    return true;
}

int pr_snapshot_copy(struct proctor_snapshot *to, const struct proctor_snapshot *from)
{
    struct pr_member *members = to->members;
    size_t cap = to->member_cap;
    *to = *from;
    to->members = members;
    to->member_cap = cap;
    to->member_count = 0;
    if (!pr_snapshot_reserve(to, from->member_count))
        return -ENOMEM;
    if (from->member_count)
        memcpy(to->members, from->members, from->member_count * sizeof *to->members);
    to->member_count = from->member_count;
    return 0;
}

void pr_snapshot_done(struct proctor_snapshot *s)
{
    free(s->members);
    s->members = NULL;
    s->member_count = s->member_cap = 0;
}

int proctor_snapshot_value(const struct proctor_snapshot *s, const char *key, double *ret)
{
    enum pr_metric_id id = pr_metric_find(key);
    if (id == METRIC_NONE)
        return -ENOENT;
    if (isnan(s->value[id]))
        return -ENODATA;
    *ret = s->value[id];
    return 0;
}

const char *proctor_snapshot_mark(const struct proctor_snapshot *s, const char *key)
{
    enum pr_metric_id id = pr_metric_find(key);
    return id == METRIC_NONE ? NULL : pr_mark_name((enum pr_mark)s->mark[id]);
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
