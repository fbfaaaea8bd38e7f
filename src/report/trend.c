/* SPDX-License-Identifier: Apache-2.0 */
/* Theil and Sen: the median of the slopes between all pairs of points. The confidence follows from
 * the variance of Kendall's tau, which says how far from the middle of these slopes the true one
 * can be. That is for points that are independent of each other. What is in memory stays there for
 * a while, so the interval is widened by how much each residual resembles the one before. */
#include "report/trend.h"

#include <math.h>
#include <stdlib.h>

#define SURE       1.96 /* standard deviations for 95 % */
#define ALIKE_MOST 0.95

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *sorted, size_t n)
{
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* Correlation of each residual with the one before; not below 0. */
static double resemblance(const double *x, const double *y, size_t n, double slope)
{
    double left[TREND_MOST], sorted[TREND_MOST], square = 0, product = 0;
    for (size_t i = 0; i < n; i++)
        left[i] = sorted[i] = y[i] - slope * x[i];
    qsort(sorted, n, sizeof *sorted, by_size);
    double middle = median(sorted, n);
    for (size_t i = 0; i < n; i++) {
        square += (left[i] - middle) * (left[i] - middle);
        product += i ? (left[i] - middle) * (left[i - 1] - middle) : 0;
    }
    return square > 0 ? fmin(ALIKE_MOST, fmax(0, product / square)) : 0;
}

bool pr_trend_fit(const double *x, const double *y, size_t count, struct pr_trend *ret)
{
    static const size_t most = TREND_MOST * (TREND_MOST - 1) / 2;
    double slopes[TREND_MOST * (TREND_MOST - 1) / 2];
    size_t n = 0;
    if (count < TREND_LEAST || count > TREND_MOST)
        return false;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count && n < most; k++)
            if (x[k] > x[i])
                slopes[n++] = (y[k] - y[i]) / (x[k] - x[i]);
    if (!n)
        return false;
    qsort(slopes, n, sizeof *slopes, by_size);
    ret->slope = median(slopes, n);
    double points = (double)count, alike = resemblance(x, y, count, ret->slope),
           spread = SURE * sqrt(points * (points - 1) * (2 * points + 5) / 18) *
                    sqrt((1 + alike) / (1 - alike)),
           below = floor(((double)n - spread) / 2), above = ceil(((double)n + spread) / 2);
    ret->low = slopes[below > 0 ? (size_t)below : 0];
    ret->high = slopes[above < (double)n ? (size_t)above : n - 1];
    return true;
}
