/* SPDX-License-Identifier: Apache-2.0 */
/* Makes rounds: opens the vendors, asks each device what is due, within a budget. Of the GPU thread
 * alone, but for what is atomic. */
#pragma once
#include <stdatomic.h>

#include "gpu/gpu.h"

#define GPU_CALLS 16 /* of a vendor */

struct pr_gpu_call_state {
    int64_t at;
    unsigned long calls, round; /* how many; the round that the last was in */
    int result;
    double cost; /* ns of CPU, about */
    bool never;  /* there is no use in asking again */
};

struct pr_gpu_opened {
    const struct pr_gpu_vendor *vendor;
    void *state;
    unsigned first, count; /* its cards */
    size_t cost;           /* where its rows of costs begin */
    struct pr_gpu_call_state all[GPU_CALLS];
};

struct pr_gpu_reader {
    /* Anybody may look at these. */
    _Atomic int64_t call_began; /* boot time, 0 while no call is under way */
    _Atomic(const char *) call_name;
    _Atomic int64_t cpu, start_cpu;
    atomic_int descriptors;
    /* The rest is the thread's. */
    double budget; /* percent of one core, that the dear calls may use */
    struct pr_gpu_work work;
    struct pr_gpu_round round;
    struct pr_gpu_opened opened[GPU_VENDORS];
    size_t opened_count, cost_count;
    struct pr_gpu_cost cost[GPU_READINGS];
    struct pr_gpu_call_state state[GPU_DEVICES][GPU_CALLS];
    unsigned long rounds;
    bool closing;        /* the last round */
    int64_t began, took; /* the round; how long one takes, a running mean */
    double allowance;    /* ns of CPU for what is dear */
    struct pr_gpu_on {   /* who was on which device, when that was told last */
        pid_t pid;
        unsigned card;
    } on[GPU_USES];
    size_t on_count;
    struct pr_gpu_power { /* energy by power over time, where a device has no counter */
        double joules, watts;
        int64_t at;
    } power[GPU_DEVICES];
};

/* r is zeroed; host and members are borrowed for good. */
void pr_gpu_reader_open(struct pr_gpu_reader *r, const struct pr_host *host, const pid_t *members,
                        double budget);
/* Fills r->round. last: only what has to be known of the end. */
void pr_gpu_reader_read(struct pr_gpu_reader *r, bool last);
void pr_gpu_reader_close(struct pr_gpu_reader *r);
