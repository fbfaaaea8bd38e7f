/* SPDX-License-Identifier: Apache-2.0 */
/* Who a record is about: a process, named by (pid, start time), with its present values; and the
 * set of those that belong to the job. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/end.h"
#include "core/mean.h"
#include "core/metric.h"
#include "core/turns.h"
#include "util/map.h"

enum pr_source_id {
#define SOURCE(name) SOURCE_##name,
#include "core/sources.def"
#undef SOURCE
    SOURCE_COUNT,
};

enum pr_life {
    LIFE_ALIVE,
    LIFE_VANISHED, /* gone; the ledger still has to learn who took its account over */
    LIFE_SETTLED,  /* accounted for: drop it */
};

struct pr_entity {
    pid_t pid, ppid, pgrp;
    uint32_t stat_pages; /* resident, as stat has it */
    uint64_t start;      /* ticks since boot */
    char state;          /* as in stat: R S D Z ... */
    char comm[COMM_MAX];
    /* It has run since all of it was read; it is read in any case; stat has shown page faults. */
    bool aged, awaited, faulted;
    unsigned missing; /* files that were not there, a bit for each source */
    enum pr_life life;
    bool io_old, resized; /* it has run since its I/O was read; stat has shown another size */
    bool left, away;      /* it lives, but is not of the job any more; was so at the last reading */
    int64_t listed_at;    /* boot time at which a cgroup last named it */
    bool born_inside, first;    /* while we recorded: all it used counts; not yet through a tick */
    bool no_mm, own_mm;         /* shares its parent's memory (vfork); is known not to */
    bool kernel_thread;         /* it has no memory of its own, ever */
    bool ignores_children;      /* SIGCHLD: the kernel reaps in its place, and keeps no account */
    bool io_denied, net_denied; /* its I/O, its descriptors could not be read */
    int fd[SOURCE_COUNT];       /* held descriptors, -1 where none */
    unsigned looks;             /* how often it was looked at */
    unsigned idle;              /* looks since it has run */
    int64_t ran, ran_seen;      /* its clock now and when its use was read, ns; -1: not known */
    int64_t refreshed_at, sized_at, marked_at; /* boot time: all was read, its size, its mark */
    double faults_seen;                        /* when its high-water mark was read */
    struct pr_share share;
    int match; /* the rule of --match, -1 for none */
    /* The network (net.h): in which search its descriptors were looked at; its network namespace, 0
     * where that is not known, and when that was looked at. */
    unsigned net_search;
    int64_t net_ran; /* its CPU clock then */
    uint64_t net_space;
    int64_t net_space_at;
    double value[PROC_METRICS];    /* now; NaN is absent */
    double previous[PROC_METRICS]; /* counters at the tick before */
    double reaped[PROC_METRICS];   /* counters taken over from children that it waited for */
    struct pr_mean *mean;          /* for --average, else NULL */
    struct pr_named *named;        /* where there are rules of --match (match.h), else NULL */
    /* The ledger's: receipts for children that were taken over (ledger.c). */
    double receipts_seen, receipts_old, receipts_new, receipts_window, receipts_early;
    struct pr_entity *heir;
    int vanished_for;    /* ticks */
    bool direct, counts; /* its heir was its own parent; it counts though it has vanished */
    double told;         /* CPU time by exit records of its threads (source/taskstats.c) */
    struct pr_end end;
    double claim; /* what it must have left to its heir */
};

struct pr_entities {
    struct pr_entity **items; /* parents before their children */
    size_t count, cap;
    struct pr_map by_pid;       /* the newest with that pid */
    struct pr_entity **spare;   /* dropped ones, to be used again */
    struct pr_entity **scratch; /* room for all, for whoever has to sort some */
    size_t spare_count, spare_cap;
    bool crowd;                 /* they are so many that some readings are older (tick_depth.c) */
    unsigned still;             /* ticks in which nobody has run, come or gone */
    bool with_mean, with_names; /* members have these; set before there are any */
    uint64_t started, exited;   /* how many have ever been members */
};

void pr_entities_done(struct pr_entities *set);
/* It lives, and is of the job. */
bool pr_entity_is_here(const struct pr_entity *e);
/* Has it run since this was read? And all that is of now; the rest is absent. */
bool pr_entity_is_aged(const struct pr_entity *e, enum pr_metric_id id);
void pr_entity_now(const struct pr_entity *e, double *ret);
/* Its I/O so far with what children brought, i counted from METRIC_IO_READ; NaN for unknown. */
double pr_entity_io(const struct pr_entity *e, int i);
/* Nothing of it runs any more. A process whose first thread has ended shows as a zombie, too. */
bool pr_entity_is_dead(const struct pr_entity *e);
/* A new member, values absent, descriptors closed; NULL when memory is out. */
struct pr_entity *pr_entities_add(struct pr_entities *set, pid_t pid, uint64_t start);
/* The living member with this pid, or NULL. */
struct pr_entity *pr_entities_find(const struct pr_entities *set, pid_t pid);
/* The same, or one that vanished and is not swept yet. */
struct pr_entity *pr_entities_find_any(const struct pr_entities *set, pid_t pid);
/* The process is gone. */
void pr_entities_vanish(struct pr_entities *set, struct pr_entity *e);
/* Takes the one that came last out at once. Its descriptors must be closed. */
void pr_entities_drop_last(struct pr_entities *set);
/* Takes the settled ones out, keeping the order. Their descriptors must be closed. */
void pr_entities_sweep(struct pr_entities *set);
