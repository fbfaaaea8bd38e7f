/* SPDX-License-Identifier: Apache-2.0 */
/* What processes of one name used together, over the run: those of a rule of --match, else of a
 * command. It takes a replay with all members, and is made only for documents that show it. */
#pragma once
#include "core/match.h"
#include "report/model.h"

#define BY_NAME_RULES    16 /* names that are told apart, with rules and without */
#define BY_NAME_COMMANDS 8
#define BY_NAME_MOST     (BY_NAME_RULES + 1) /* and all others */

enum pr_name_curve {
    NAME_USS,
    NAME_RSS,
    NAME_CPU,
    NAME_CPU_TIME,
    NAME_INSTANCES,
    NAME_CURVES,
};

struct pr_name_use {
    char name[NAME_SIZE];
    int curve[NAME_CURVES];
    unsigned long instances, samples; /* processes; samples of single ones */
    double one_uss, one_cpu;          /* the most that one of them had; NaN for unknown */
    double uss, rss, pss;             /* the most that they had together */
    double mean_uss, mean_cpu;        /* of one, over its samples */
    double user, system, time;        /* of the CPU, that of the dead included */
    double first, last;               /* elapsed at samples that had any */
};

struct pr_by_name {
    struct pr_curves time;
    struct pr_name_use items[BY_NAME_MOST]; /* by name, all others last */
    size_t count;
    bool rules;              /* of --match; else commands */
    int total;               /* curve: USS of all of them */
    double peak, at;         /* of that */
    double memory, duration; /* what the machine has; how long it all took */
    const char *absent;      /* why USS is not known; borrowed from the model */
};

/* End it with pr_by_name_done, whatever comes back. 0 or -errno. */
int pr_by_name_read(struct pr_by_name *n, const struct pr_stored *r, struct pr_model *m,
                    struct proctor_error *err);
void pr_by_name_done(struct pr_by_name *n);
