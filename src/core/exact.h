/* SPDX-License-Identifier: Apache-2.0 */
/* A second account of the job's CPU time beside the ledger's, for what the ledger cannot see:
 * children that nobody waits for. For the command only: the library starts nobody and makes no
 * groups. The order is prepare, [fork the job, held], enter, settle at each sample, finish. */
#pragma once
#include "core/entity.h"
#include "core/error.h"
#include "core/host.h"
#include "core/roll.h"

enum pr_exact_part { EXACT_USER, EXACT_SYSTEM, EXACT_TIME, EXACT_PARTS };

struct pr_exact {
    const struct pr_exact_ops *ops; /* NULL where the ledger is all there is */
    const struct pr_host *host;     /* borrowed, or NULL */
    void *state;                    /* the way's own */
    bool automatic;                 /* --exact auto: the best that works, and nothing is refused */
    const char *asked;              /* borrowed */
    size_t at;                      /* which way it is */
    int clone_fd;               /* a cgroup of version 2 that the job is to be born in, -1: none */
    double figure[EXACT_PARTS]; /* by this way, seconds; NaN for unknown */
    double most[EXACT_PARTS];   /* what was given out: it never falls */
    struct pr_roll *roll;       /* where those go of whom only a record tells; borrowed, or NULL */
    double counted;             /* CPU time by the ledger, at the same moment */
    bool lossy;                 /* something that should have been in the figure did not arrive */
    char why[220], remedy[160]; /* why it does not work here, and what would help */
};

struct pr_exact_ops {
    const char *name;   /* as --exact has it */
    const char *source; /* in words, for the summary */
    const char *method; /* for the doctor */
    bool automatic;     /* --exact auto takes it where it works */
    bool records;       /* it hears of the end of every process */
    bool whole;         /* nothing that ran in it is missing from the figure */
    /* Would it work here? Changes nothing. 0 or -errno with why and remedy. */
    int (*probe)(struct pr_exact *x);
    /* Before the fork. 0 or -errno with why and remedy. */
    int (*prepare)(struct pr_exact *x);
    /* The job is there, held; inside: it was born in clone_fd. The same result. */
    int (*enter)(struct pr_exact *x, pid_t pid, bool inside);
    /* Brings figure up to date. `set`: the members after their reading. */
    void (*read)(struct pr_exact *x, const struct pr_entities *set);
    /* Gives everything back. 0 or -errno with why. */
    int (*finish)(struct pr_exact *x);
};

extern const struct pr_exact_ops pr_exact_cgroup, pr_exact_perf, pr_exact_taskstats;
#define EXACT_WAYS 3
extern const struct pr_exact_ops *const pr_exact_ways[EXACT_WAYS]; /* the best first */

/* asked: auto, cgroup, perf, taskstats or none. host: the machine that we are on, borrowed; NULL
 * where it cannot be looked at. 0 or -errno; auto never fails. */
int pr_exact_prepare(struct pr_exact *x, const char *asked, const struct pr_host *host,
                     struct proctor_error *err);
int pr_exact_enter(struct pr_exact *x, pid_t pid, bool inside, struct proctor_error *err);
/* After the ledger has settled: value[] has its totals, and gets what is more. x may be NULL. */
void pr_exact_settle(struct pr_exact *x, const struct pr_entities *set, double *value);
/* 0 or -errno with x->why. May be called again. */
int pr_exact_finish(struct pr_exact *x);
/* Would this way work here, by itself or under --exact auto? 0, or -errno with why and remedy. */
int pr_exact_probe(struct pr_exact *x, const struct pr_exact_ops *ops, bool automatic);

/* Processes of the job have gone where the figure does not see them. */
bool pr_exact_escaped(const struct pr_exact *x);
/* The figure has more than the ledger, and does not say how it divides: user and system time are
 * bounds then. x may be NULL. */
bool pr_exact_undivided(const struct pr_exact *x);
/* Is the figure all there was? */
bool pr_exact_complete(const struct pr_exact *x);

/* For the ways: why and remedy; returns -code. */
int pr_exact_refuse(struct pr_exact *x, int code, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
