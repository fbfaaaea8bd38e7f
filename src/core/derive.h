/* SPDX-License-Identifier: Apache-2.0 */
/* From readings to values: members folded into the job, rates, ratios, peaks. All by table. */
#pragma once
#include "core/entity.h"

struct pr_limits {
    double total[LIMIT_COUNT];     /* what ratios are of; NaN where unknown */
    char source[LIMIT_COUNT][160]; /* where that comes from, in words */
};

/* Folds the living members' gauges into the job's values; a sum from which a member is missing is
 * marked as a lower bound, and one from which much is missing is absent. What a member had when it
 * was last read, and may not have now, is marked so, in sums and in the largest of all. */
void pr_fold(const struct pr_entities *set, double *job, unsigned char *marks);
/* The same of the members that belong to one rule of --match. */
void pr_fold_match(const struct pr_entities *set, int match, double *value, unsigned char *marks);
/* What a record is derived with. */
struct pr_basis {
    double dt; /* seconds since the sample before; NaN where rates make no sense */
    const struct pr_limits *limits;
    bool otherwise; /* ratios whose metric has never been known use the next best one */
    double io_dt;   /* the same for I/O, since all of it was read before; 0: its rates stand */
};

/* Fills the derived metrics of a process or the job. `previous` holds the counters one interval
 * ago; marks may be NULL; a ratio gets that of what it is of. */
void pr_derive(double *value, const double *previous, const struct pr_basis *basis,
               unsigned char *marks);
/* The same for what is read of the machine: the metrics from PROC_METRICS on. */
void pr_derive_machine(double *value, const double *previous, double dt);
/* What is now becomes what was before; not I/O while its rates stand. */
void pr_derive_next(double *previous, const double *value, double io_dt);
/* For some members: no rates of I/O where that of all was not read for this interval. */
struct pr_basis pr_basis_of_member(const struct pr_basis *basis);
