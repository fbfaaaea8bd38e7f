/* SPDX-License-Identifier: Apache-2.0 */
/* Series over one time base, reduced while they come, in bounded memory. As long as there is room
 * each sample has a bucket of its own; then buckets are of equal width, which is doubled when they
 * are full. Least and most survive any reduction; where nothing was known nothing is. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define CURVE_BUCKETS 2000
#define CURVE_LATE    200

struct pr_curve_cell {
    double min, max, sum, weight; /* weight is seconds; 0 where nothing is known */
};

struct pr_curve {
    struct pr_curve_cell *cell; /* CURVE_BUCKETS */
    double last;                /* when it was last known, -1 for never */
    /* Of the whole run, exact. */
    double least, most, most_at, integral, seconds;
    unsigned long known;
};

struct pr_curves {
    double interval;   /* seconds, as it was asked for */
    double usual;      /* between two samples, lately */
    double gap_before; /* the interval before, where it was too long; else 0 */
    double begin[CURVE_BUCKETS], end[CURVE_BUCKETS]; /* while each is a sample */
    double width;                                    /* 0 while each is a sample */
    size_t count;
    double at, from; /* the present sample: when, and since when it stands */
    double gap_end;  /* nothing reaches back beyond it */
    unsigned long samples;
    double late[CURVE_LATE];
    size_t late_count;
    struct pr_curve *items;
    size_t curves, cap;
    bool failed; /* out of memory */
};

void pr_curves_init(struct pr_curves *c, double interval);
void pr_curves_done(struct pr_curves *c);
/* One more series; its number, or -1 when memory is out. */
int pr_curves_new(struct pr_curves *c);
/* A sample begins. An interval that is much too long leaves a gap. */
void pr_curves_sample(struct pr_curves *c, double at, double interval);
/* Its value in this sample, which stands for the time since it was last known where that is no
 * longer than reach, else since the sample before. NaN is nothing. */
void pr_curves_put(struct pr_curves *c, int curve, double v, double reach);
/* The same of what is a reduction already: its mean, least and most since the sample before. */
void pr_curves_put_cell(struct pr_curves *c, int curve, double mean, double least, double most);
/* Seconds since the series was last known, NaN for never. */
double pr_curves_since(const struct pr_curves *c, int curve);
/* At most so many buckets. */
void pr_curves_shrink(struct pr_curves *c, size_t most);
/* What bucket i is of. */
void pr_curves_bounds(const struct pr_curves *c, size_t i, double *ret_begin, double *ret_end);
/* Where bucket i is drawn, and for how many seconds it stands. */
double pr_curves_at(const struct pr_curves *c, size_t i);
double pr_curves_span(const struct pr_curves *c, size_t i);
/* NaN where nothing was known. */
double pr_curve_mean(const struct pr_curve_cell *cell);
