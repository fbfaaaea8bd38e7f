/* SPDX-License-Identifier: Apache-2.0 */
/* What to request next time, from recorded runs of a job. */
#pragma once
#include "core/error.h"
#include "store/stored.h"

enum pr_need { NEED_NONE, NEED_CORES, NEED_MEMORY, NEED_TIME, NEED_GPUS, NEEDS };

/* What a run used, and how it ended. NaN is unknown. */
struct pr_use {
    char id[64], ending[64], finding[512],
        vendor[32]; /* vendor: of GPUs, as Kubernetes calls what they offer */
    bool good, oom, own_limit,
        timed; /* own_limit: it is not the machine's; timed: from its start */
    const char *memory_how;
    double memory, upper; /* at least, and at the most */
    double limit;         /* of memory */
    double cores, cores_limit, throttled;
    double ask; /* cores: those, or more where it waited much for a CPU; then also */
    double wanted, used, delay; /* cores, CPU time, waiting */
    double seconds, gpus, gpu_memory;
};

struct pr_suggestion {
    struct pr_use *uses;
    size_t count;
    double margin;            /* a share */
    double need[NEEDS];       /* to be requested, in base units; NaN for unknown */
    struct pr_buf why[NEEDS]; /* a sentence each */
    struct pr_buf notes;      /* lines: what is to be known besides */
    double cores;             /* that were busy in the run that asks for most */
    double gpu_memory;        /* each must have */
    const char *vendor;
};

void pr_suggestion_done(struct pr_suggestion *s);
/* Adds a run. -EINVAL where it is not of a job. */
int pr_suggestion_add(struct pr_suggestion *s, const struct pr_stored *r,
                      struct proctor_error *err);
/* Once all are there: what follows from them. */
void pr_suggest(struct pr_suggestion *s);

/* As lines for a system, NULL for people; as JSON, with the lines where there is a system. */
void pr_suggest_text(struct pr_buf *out, struct pr_suggestion *s, const char *system);
void pr_suggest_json(struct pr_buf *out, struct pr_suggestion *s, const char *system);
