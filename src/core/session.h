/* SPDX-License-Identifier: Apache-2.0 */
/* The live run: owns target, members, ledger, statistics, outputs and the clock. One thread at a
 * time calls it; it never waits for a disk. The order is
 *   init, [spawn a job], watch, open, begin, tick..., end, (summary is read), done. */
#pragma once
#include "core/average.h"
#include "core/config.h"
#include "core/energy.h"
#include "core/event.h"
#include "core/ledger.h"
#include "core/machine.h"
#include "core/match.h"
#include "core/oom.h"
#include "core/phase.h"
#include "core/queue.h"
#include "core/roll.h"
#include "core/target.h"

#define SESSION_TEXT 131072 /* room for one file or a part of a directory */

struct pr_session {
    const struct pr_config *config; /* borrowed */
    struct pr_select select;
    struct pr_host host;
    struct pr_target *target;
    struct pr_target_setting watched;
    struct pr_entities set;
    struct pr_ledger ledger;
    struct pr_roll roll;
    struct pr_exact *exact; /* the command's, borrowed; NULL for none */
    struct pr_limits limits;
    struct pr_energy energy;
    struct pr_oom oom;
    struct pr_net *net; /* NULL where it is not wanted */
    struct pr_machine machine;
    struct pr_matches matches;
    struct pr_stats stats;
    struct pr_phases phases;
    struct pr_events events;
    struct pr_queue *queue;     /* NULL without outputs */
    struct pr_sink **own_sinks; /* of the library's user: the queue's when it is there */
    proctor_sample_fn *on_sample;
    struct pr_sink_job job;
    const char *(*introduce)(void *), *(*summarize)(void *); /* for sinks: the run; its summary */
    void *on_sample_data, *words_data;                       /* words_data: of those two */
    int64_t step; /* the interval, ns; longer than asked for where the budget demands it */
    int64_t stretched, stretched_cpu, first_cpu; /* when; our CPU time then; in the first tick */
    int timer; /* readable when a tick is due; -1 inside, where a thread knows by `next` */
    int64_t start_boot, start_wall;
    int64_t next, sampled; /* boot time: when a tick is due; of the last sample, 0 for never */
    unsigned long taken, late, missed;
    bool begun, ended, stuck; /* stuck: a thread hangs; what it can reach must stay */
    bool gone, over_budget, discovery_said, peaks_said, clock_stepped; /* gone: the job */

    bool reaping, reaped_lately;     /* the command waits for children; has since the last tick */
    double strange_io[PROC_METRICS]; /* absorbed from children that are not of the job */
    pid_t inside; /* the library: the process that our threads and descriptors are in; else 0 */
    int own_threads, own_fds; /* of ours, to be taken out where inside */
    _Atomic int record_fds;   /* the same, of the run file: SQLite opens its own in its time */
    struct pr_sink_served served;
    int64_t own_cpu, own_cpu_began, self_cpu; /* ns: in ticks, and waiting; all, at the end */
    double self_rss;             /* at the end of the run, before reports; 0 until then */
    struct proctor_snapshot now; /* being made */
    struct pr_average average;
    bool want_members, want_devices, want_matches, own_thread; /* the last: it only samples */
    double totals_before[PROC_METRICS];                        /* counters at the sample before */
    double high[METRIC_COUNT], oom_kills; /* high-water marks; kills that have been said */
    double rss_floor; /* below this, what rusage says of memory is our own size at the fork */
    /* ns of CPU that readings which can wait may still use, and those of the machine. */
    int64_t allowance, machine_allowance, patient_cost; /* the last: of those that can wait */
    struct pr_turns turns;

    char reason[METRIC_COUNT][96];         /* why a metric is absent; the first one stays */
    unsigned long io_unreadable, departed; /* members whose I/O could not be read; that left */
    bool children_ignored; /* by a member: those that end between samples leave no account */
    struct pr_left *left;  /* who is still running at the end */
    size_t left_count, own_sink_count;   /* of the latter those that no queue has yet */
    const char *run_id;                  /* the one that was asked for, else own_id */
    char own_id[64], parent[128], *file; /* the run that we are part of; ours, NULL for none */
    char text[SESSION_TEXT];             /* what is being read */
};

/* A new run id into text: YYYYMMDDTHHMMSSZ-8hex. */
void pr_session_name(char *text, size_t size);
int pr_session_init(struct pr_session *s, const struct pr_config *config,
                    struct proctor_error *err);
int pr_session_watch(struct pr_session *s, const struct pr_target_setting *setting,
                     struct proctor_error *err);
/* Opens the outputs and starts the writer. */
int pr_session_open(struct pr_session *s, struct proctor_error *err);
/* Time begins: the schedule counts from here. 0 or -errno. */
int pr_session_begin(struct pr_session *s);
/* The next tick is due one interval from now. 0 or -errno. */
int pr_session_arm(struct pr_session *s);
/* Takes a sample; called when one is due, and whenever one is wanted. */
void pr_session_tick(struct pr_session *s);
/* What became due is accounted for: missed ticks are skipped and counted. False for nothing. */
bool pr_session_due(struct pr_session *s);
/* The watched process, or with --wait-tree everybody, is gone. */
bool pr_session_over(const struct pr_session *s);
/* Takes the last sample, final where the job has ended, and closes the outputs. */
void pr_session_end(struct pr_session *s);
void pr_session_done(struct pr_session *s);
/* Frees memory and nothing else: for a handle that a fork has copied. */
void pr_session_abandon(struct pr_session *s);

static inline double pr_session_elapsed(const struct pr_session *s, int64_t boot)
{
    return s->begun ? (double)(boot - s->start_boot) * 1e-9 : 0;
}
