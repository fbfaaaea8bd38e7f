/* SPDX-License-Identifier: Apache-2.0 */
/* One immutable instant: what sinks and callbacks are handed. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/device.h"
#include "core/entity.h"

struct pr_member {
    pid_t pid, ppid;
    int64_t started; /* wall time, ns */
    char comm[COMM_MAX];
    const char *match; /* the name of its rule of --match, while the session lives; NULL for none */
    double value[PROC_METRICS];
};

/* Of the members that go by one name of --match. */
struct pr_match_values {
    const char *name; /* of its rule, while the session lives */
    double value[PROC_METRICS];
};

struct proctor_snapshot {
    int64_t time;             /* wall time at the start plus elapsed, ns */
    int64_t elapsed;          /* since the start, ns of CLOCK_BOOTTIME */
    int64_t interval;         /* since the sample before, ns */
    int64_t machine_interval; /* since the machine was read before, ns; it may be longer */
    bool first, last;
    double limit[LIMIT_COUNT];        /* what ratios are of; NaN where unknown */
    size_t enrolled;                  /* entries of the roll that were there */
    double value[METRIC_COUNT];       /* the job's and the machine's; NaN is absent */
    unsigned char mark[METRIC_COUNT]; /* enum pr_mark */
    struct pr_member *members;        /* filled only where a sink asked for processes */
    size_t member_count, member_cap;
    struct pr_device *devices; /* filled only where a sink asked for them */
    size_t device_count, device_cap;
    struct pr_match_values *matches; /* the same */
    size_t match_count, match_cap;
};

/* A deep copy; to keeps its memory. 0 or -ENOMEM, then without members, devices and matches. */
int pr_snapshot_copy(struct proctor_snapshot *to, const struct proctor_snapshot *from);
/* Room for so many. False when memory is out. */
bool pr_snapshot_reserve(struct proctor_snapshot *s, size_t members, size_t devices);
bool pr_snapshot_reserve_matches(struct proctor_snapshot *s, size_t matches);
void pr_snapshot_done(struct proctor_snapshot *s);
