/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a driver's pids are. */
#pragma once
#include "gpu/gpu.h"

struct pr_gpu_owners {
    unsigned first, count;        /* of the vendor's cards */
    bool memory;                  /* it is about memory, else about usage */
    bool blind;                   /* the driver does not tell processes apart */
    unsigned number[GPU_DEVICES]; /* N in /dev/nvidiaN of each card, ~0 where that is not known */
};

/* Pids of another namespace become those of ours. Where nobody can be matched and a member has a
 * device open, it stands for the whole device, and the round says so. */
void pr_gpu_find_owners(struct pr_gpu_work *w, const struct pr_gpu_owners *o);
