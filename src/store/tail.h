/* SPDX-License-Identifier: Apache-2.0 */
/* A run as it grows: the samples since the last one that was taken, of the job, the machine and its
 * GPUs. For publishers, who come back again and again; replay.h has a whole run at once. */
#pragma once
#include "core/snapshot.h"
#include "store/stored.h"

struct pr_tail_gpu;

struct pr_tail {
    int64_t sample; /* the last that was taken; 0 for none, or where to go on */
    bool begun;
    bool sparse;              /* a GPU is there only in samples in which it was read */
    struct pr_tail_gpu *gpus; /* what was last read of each */
    size_t gpu_count, cores;
    struct proctor_snapshot now; /* its devices: all GPUs, and the cores without values */
};

/* Told of one sample, borrowed during the call. False: it is not taken, and comes again the next
 * time; what was taken does not come again. */
typedef bool pr_tail_fn(void *of, int64_t sample, const struct proctor_snapshot *s);

/* All that there is and is taken. 0 or -errno. */
int pr_tail_read(struct pr_tail *t, const struct pr_stored *r, pr_tail_fn *take, void *of,
                 struct proctor_error *err);
/* What comes behind this sample comes once more. */
void pr_tail_back(struct pr_tail *t, int64_t sample);
void pr_tail_done(struct pr_tail *t);
