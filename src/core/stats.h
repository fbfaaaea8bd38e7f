/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of each metric over the whole run, in bounded memory. */
#pragma once
#include <math.h>

#include "core/derive.h"
#include "core/quantile.h"
#include "core/snapshot.h"

#define SPARK_WIDTH 32

/* A curve in SPARK_WIDTH points: when it is full, neighbours are merged, the larger stays. */
struct pr_spark {
    double point[SPARK_WIDTH];
    unsigned used, per_point, pending; /* samples in each point, and in the one being filled */
};

/* Where a value came from lately: a point at each TRAIL_STEP, the oldest goes. */
#define TRAIL_POINTS 16
#define TRAIL_STEP   0.7 /* seconds: some ten in all */
struct pr_trail {
    double at[TRAIL_POINTS], value[TRAIL_POINTS];
    double last_at, last;
    unsigned count;
};

/* Marks: of the latest value; the gravest that any had, of those that stay; of the maximum. */
struct pr_said {
    unsigned char mark, old, peak;
};

struct pr_stat {
    unsigned long known;       /* samples in which it was not absent */
    double min, max, last, at; /* at: elapsed seconds of the maximum */
    double integral, weight;   /* of value and of time */
    struct pr_said said;
};

/* When a sample was taken, and for how long its values stand: what is of the machine or of a cgroup
 * is not read each time, and stands for longer. */
struct pr_span {
    double at, dt, machine_dt; /* seconds */
};

struct pr_stats {
    struct pr_stat metric[METRIC_COUNT];
    struct pr_spark cpu, memory, rss; /* memory is PSS, or what a machine uses */
    struct pr_trail rss_trail;
    bool machine;                   /* the curves are of the machine, not of the job */
    double seconds;                 /* elapsed at the last sample */
    const struct pr_limits *limits; /* borrowed: what ratios are of */
    struct pr_sketches *sketches;   /* NULL where no quantiles are computed, or it is over: */
    const double *quantiles;        /* then a row of each metric that has some, borrowed */
};

#define STAT_NONE ((struct pr_stat){.min = NAN, .max = NAN, .last = NAN, .at = NAN})

void pr_stats_init(struct pr_stats *s);
/* From here on with quantiles of the first metrics, `count` of them. Out of memory: without. */
void pr_stats_want_quantiles(struct pr_stats *s, int count);
void pr_stats_done(struct pr_stats *s);
void pr_stats_add(struct pr_stats *s, const struct proctor_snapshot *snapshot);
/* One value of one metric, that stands for dt seconds. */
void pr_stat_add(struct pr_stat *m, double v, double at, double dt);
/* By time; what has not lasted is known by its last value. */
double pr_stat_mean(const struct pr_stat *m);
/* One value more, of this metric, with its mark. A total is known as well as its last value; a peak
 * and a mean are of all values, and do not become newer by one that is of now. */
void pr_said_add(struct pr_said *s, int id, unsigned char mark);
/* The mark of all of them. */
enum pr_mark pr_said_mark(const struct pr_said *s);
/* Of those before and those after together; the maximum has its own. */
void pr_said_merge(struct pr_said *to, const struct pr_said *from);
/* Is that what a summary says of a metric? said: its "mark", NULL for none. */
bool pr_said_is(const char *said, enum pr_mark mark);
#define SAID_ESTIMATED "estimated" /* MARK_ESTIMATED in one word, behind a figure */
/* The same of some metrics alone: `count` values and marks. */
void pr_stats_add_values(struct pr_stats *s, const double *value, const unsigned char *mark,
                         int count, struct pr_span span);
/* By how much the resident memory has grown in the last seconds, and in how many. */
double pr_stats_growth(const struct pr_stats *s, double *ret_seconds);
/* A counter's total, NAN where absent. */
double pr_stats_total(const struct pr_stats *s, enum pr_metric_id id);
/* Time-weighted; for a rate its counter's total over the time, which nothing between samples
 * escapes. */
double pr_stats_mean(const struct pr_stats *s, enum pr_metric_id id);
double pr_stats_peak(const struct pr_stats *s, enum pr_metric_id id);
/* A gauge, a rate or a ratio has quantiles. */
bool pr_metric_has_quantiles(enum pr_metric_id id);
/* Of the first metrics, how many have them. */
int pr_quantile_rows(int count);
/* Weighted by time, of samples. False where they were not computed. */
bool pr_stats_quantiles(const struct pr_stats *s, enum pr_metric_id id, double ret[QUANTILES]);
/* The same of one series whose statistics are kept apart. */
void pr_stat_quantiles(const struct pr_stat *v, const struct pr_sketches *sketches, int series,
                       double ret[QUANTILES]);
