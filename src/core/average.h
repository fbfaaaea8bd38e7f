/* SPDX-License-Identifier: Apache-2.0 */
/* --average: the mean of several samples goes out in the place of each. */
#pragma once
#include "core/match.h"
#include "core/snapshot.h"
#include "core/stats.h"

struct pr_average {
    struct pr_mean mean[METRIC_COUNT]; /* of the job; the members have theirs */
    struct pr_said said[METRIC_COUNT];
    struct pr_mean matches[MATCHES_MOST][PROC_METRICS];
    struct proctor_snapshot out;
    struct proctor_snapshot kept; /* the latest devices: they may not be in each sample */
    int pending;                  /* samples in it */
    int64_t interval;
    bool first; /* the first sample is in it */
};

/* Adds a sample. Returns what is to be published now, borrowed until the next call, or NULL: after
 * n samples, and at the last one whatever there is. */
const struct proctor_snapshot *pr_average_add(struct pr_average *a, int n,
                                              const struct proctor_snapshot *sample,
                                              struct pr_entities *set);
