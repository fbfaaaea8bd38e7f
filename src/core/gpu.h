/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs, read by a thread of their own: a driver may take milliseconds for an answer, or for ever.
 * A tick takes what has been read since the tick before; one of the schedule never waits. Done by
 * src/gpu/. */
#pragma once
#include "core/device.h"
#include "core/entity.h"
#include "core/event.h"
#include "core/host.h"
#include "core/stats.h"

#define GPU_DEVICES  64  /* the most that are read; parts of a divided one are some of them */
#define GPU_USES     512 /* pairs of a process and a device */
#define GPU_READINGS 32

/* One device, or one part of a divided one. */
struct pr_gpu_card {
    char name[16];                                 /* "gpu0", "gpu0/mig1": unique here */
    char model[96], uuid[96], driver[48], bus[32]; /* "" where that is not known */
    bool lost;                                     /* it does not answer any more */
    bool part;                         /* of another one: its memory and work are in that, too */
    bool sure_energy;                  /* by its own counter, else by power over time */
    bool listed;                       /* who is on it was told in this round */
    double value[DEVICE_VALUES];       /* by slot, of DEVICE_GPU; NaN: not read this time */
    const char *reason[DEVICE_VALUES]; /* why it cannot be read; NULL where it can */
};

/* What a process has of a device; NaN is absent. */
struct pr_gpu_use {
    pid_t pid;
    unsigned card;
    double memory, usage; /* bytes; GPUs */
    bool on;              /* it has memory there, as far as was told last */
};

struct pr_gpu_round {
    int64_t at; /* boot time at which it was complete */
    size_t card_count, use_count;
    /* Of processes: who is not in uses has none. They may not be told apart: then what is there is
     * of whole devices that a member can see. Why it is not known, where that will not change. */
    bool memory_known, usage_known, memory_whole, usage_whole;
    bool cut; /* there was no room for all: neither is known */
    const char *no_memory, *no_usage;
    struct pr_gpu_card card[GPU_DEVICES];
    struct pr_gpu_use use[GPU_USES];
};

/* What a kind of call has cost. */
struct pr_gpu_cost {
    const char *name;
    unsigned long calls, failed;
    int64_t cpu, wall, wall_most; /* ns */
};

struct pr_gpu_setting {
    const struct pr_host *host;
    double budget; /* percent of one core that dear calls may use, until tell says otherwise */
    int patience;  /* milliseconds that the end may wait for a driver */
    bool stays;    /* in a process that goes on after the end */
};

struct pr_gpu;

/* Might there be one? Cheap: nothing is loaded. Else why not, into text. */
bool pr_gpu_expected(const struct pr_host *host, char *why, size_t size);
/* Starts the thread. 0 or -errno. */
int pr_gpu_start(struct pr_gpu **ret, const struct pr_gpu_setting *setting);
/* Who the members are, when the next tick is due (0: that is not known), and what dear calls may
 * use from now on. g may be NULL here and below. */
void pr_gpu_tell(struct pr_gpu *g, const struct pr_entities *set, int64_t next, double budget);
/* For a tick that nobody could foresee: a reading now. Waits for it for at most 100 ms. */
void pr_gpu_ask(struct pr_gpu *g, const struct pr_entities *set);
/* What has been read since this was called before; NULL where that is nothing. Borrowed until the
 * next call. What happened meanwhile becomes events; start: boot time from which they count. */
struct pr_gpu_round *pr_gpu_take(struct pr_gpu *g, int64_t now, struct pr_events *events,
                                 int64_t start);
/* Counters once more, then the end: waits for some milliseconds, and never for a driver that does
 * not answer. False where the thread had to be left behind, with its memory. */
bool pr_gpu_finish(struct pr_gpu *g);
/* After that. forked: in a child, where there is no such thread. */
void pr_gpu_free(struct pr_gpu *g, bool forked);
/* Some thread was left behind, in some library: a process should end without its destructors. */
bool pr_gpu_left_behind(void);
/* Descriptors that the drivers' libraries hold. */
int pr_gpu_descriptors(const struct pr_gpu *g);
/* CPU time of the thread, ns: what comes once (loading, first and last calls), and the rest. */
int64_t pr_gpu_start_cpu(const struct pr_gpu *g);
int64_t pr_gpu_cpu(const struct pr_gpu *g);
/* Why there is nothing; NULL where there is, or where it is not known yet. */
const char *pr_gpu_reason(const struct pr_gpu *g);
/* How often the driver kept us waiting for longer than a tick can accept. */
unsigned long pr_gpu_stalls(const struct pr_gpu *g);
/* What the calls cost, into at least GPU_READINGS rows; how many. */
size_t pr_gpu_costs(struct pr_gpu *g, struct pr_gpu_cost *rows);

/* How the event begins that a device is slower than it could be, behind its name. */
#define GPU_HELD_DOWN "clocks are held down: "

/* What is kept of each device over the run (core/tick_gpu.c). */
struct pr_gpu_account {
    size_t count;
    struct pr_gpu_card card[GPU_DEVICES]; /* with the values of this tick */
    struct pr_stat stat[GPU_DEVICES][DEVICE_VALUES];
    struct pr_sketches *sketches[GPU_DEVICES]; /* a series for each slot; NULL: without memory */
    int64_t read_at[GPU_DEVICES][DEVICE_VALUES];
    int64_t cpu; /* of the thread, that has been accounted for */
};

void pr_gpu_account_free(struct pr_gpu_account *a);
