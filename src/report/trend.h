/* SPDX-License-Identifier: Apache-2.0 */
/* Does it grow? The slope of a series with its confidence, that neither a few outliers nor a saw
 * tooth can deceive. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define TREND_MOST  100 /* points */
#define TREND_LEAST 10

struct pr_trend {
    double slope;     /* of y for each of x */
    double low, high; /* between which it is with 95 % confidence */
};

/* x ascending. False where there are too few points, or too many. */
bool pr_trend_fit(const double *x, const double *y, size_t count, struct pr_trend *ret);
