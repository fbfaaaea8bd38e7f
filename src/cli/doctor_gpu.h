/* SPDX-License-Identifier: Apache-2.0 */
/* What `proctor doctor` says of GPUs. */
#pragma once
#include "core/gpu.h"
#include "util/buf.h"

struct pr_gpu_check {
    struct pr_gpu *gpu; /* NULL for none */
    struct pr_gpu_round *round;
    bool usage, memory; /* of processes: known */
    char found[160];    /* what, or why nothing */
};

/* Asks the drivers as a recording would, for some seconds at the most. */
void pr_gpu_check(struct pr_gpu_check *c, const struct pr_host *host);
void pr_gpu_check_done(struct pr_gpu_check *c);
/* A line for each device and for processes; all, or some of it, can be read. */
typedef void pr_gpu_line_fn(void *of, bool all, bool some, const char *what, const char *how);
void pr_gpu_check_lines(const struct pr_gpu_check *c, pr_gpu_line_fn *line, void *of);
