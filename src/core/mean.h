/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of several samples, for --average: gauges and rates their mean over the samples in which
 * they are known, counters their last value. */
#pragma once
#include "core/metric.h"

/* Of one metric; a record has an array of them, indexed as its values are. */
struct pr_mean {
    double sum;
    unsigned known;
};

void pr_mean_add(struct pr_mean *m, const double *value, int count);
/* Replaces gauges and rates in value by their means, counters by the last that was known; and
 * starts anew. */
void pr_mean_take(struct pr_mean *m, double *value, int count);
