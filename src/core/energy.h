/* SPDX-License-Identifier: Apache-2.0 */
/* Energy of the CPU packages, and the job's share of it by CPU time. */
#pragma once
#include "core/host.h"

#define ENERGY_ZONES 16

struct pr_energy {
    int zones;
    int fd[ENERGY_ZONES]; /* held, or -1 */
    char path[ENERGY_ZONES][80];
    double range[ENERGY_ZONES], last[ENERGY_ZONES]; /* joules; a counter starts anew at its range */
    double busy;   /* CPU seconds of the whole machine, at the reading before */
    double joules; /* the job's share so far */
    double pending_joules, pending_cpu; /* not yet attributed */
    char reason[80];                    /* why there is none */
};

/* Finds the zones. Absent is normal: zones is 0 and reason says why. */
void pr_energy_open(struct pr_energy *e, const struct pr_host *host);
/* Reads the counters. job_cpu is what the job used of the CPU since the reading before, seconds.
 * Returns the job's joules so far, NaN where there are none. */
double pr_energy_read(struct pr_energy *e, const struct pr_host *host, double job_cpu);
void pr_energy_close(struct pr_energy *e);
