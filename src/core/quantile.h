/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of series in which each value stands for some time, in bounded memory. Up to
 * SKETCH_VALUES different values are kept as they are, so that the quantiles of a constant, of a
 * few samples or of a small number of states are exact. Beyond that values are counted in buckets
 * of a fixed relative width, and a quantile is at most SKETCH_ERROR of itself away from the true
 * one. Values are not negative; what lies below 2^-24 or above 2^56 counts as that. */
#pragma once

#define QUANTILES     4
#define SKETCH_VALUES 16
#define SKETCH_ERROR  (1.0 / 128)

/* Which shares of the time, and what they are called: "p50", ... */
extern const double pr_quantile_share[QUANTILES];
extern const char *const pr_quantile_name[QUANTILES];

struct pr_sketches;

/* So many series, all empty. All memory that they will ever need is mapped here, and resident only
 * as far as it is used: adding allocates nothing. NULL when memory is out. */
struct pr_sketches *pr_sketches_new(int series);
void pr_sketches_free(struct pr_sketches *s);
/* All of them are empty again. */
void pr_sketches_reset(struct pr_sketches *s);
void pr_sketch_add(struct pr_sketches *s, int series, double v, double seconds);
/* The smallest value below or at which the series was for that share of the time. All NaN where
 * nothing has lasted. */
void pr_sketch_quantiles(const struct pr_sketches *s, int series, double ret[QUANTILES]);
