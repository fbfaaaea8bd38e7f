/* SPDX-License-Identifier: Apache-2.0 */
/* What is known now, for whoever looks at a moment of his own. The machine and GPUs are not read at
 * each sample: what they were stands for a while, as it does in reports. */
#pragma once
#include "core/snapshot.h"

struct pr_latest {
    struct proctor_snapshot now;    /* without members, and of devices the GPUs alone */
    int64_t known_at[METRIC_COUNT]; /* elapsed, ns */
    int64_t gpus_at;
    bool begun;
};

/* *l is all zero before the first. 0 or -ENOMEM, then without GPUs or names. */
int pr_latest_take(struct pr_latest *l, const struct proctor_snapshot *s);
void pr_latest_done(struct pr_latest *l);
