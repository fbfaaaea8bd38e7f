/* SPDX-License-Identifier: Apache-2.0 */
#include "report/rank.h"

#include <math.h>
#include <stdlib.h>

struct ranked {
    double value;
    size_t twice; /* its rank, times two: equal ones share the mean of theirs */
    int first;    /* of the first group? */
};

static int by_value(const void *a, const void *b)
{
    double x = ((const struct ranked *)a)->value, y = ((const struct ranked *)b)->value;
    return (x > y) - (x < y);
}

/* Ranks of all together; the sum of cubes of ties less their number into ret_ties. */
static struct ranked *rank(const double *a, size_t a_count, const double *b, size_t b_count,
                           double *ret_ties)
{
    size_t count = a_count + b_count;
    struct ranked *all = calloc(count, sizeof *all);
    if (!all)
        return NULL;
    for (size_t i = 0; i < count; i++)
        all[i] = (struct ranked){i < a_count ? a[i] : b[i - a_count], 0, i < a_count};
    qsort(all, count, sizeof *all, by_value);
    *ret_ties = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && all[end].value == all[i].value;)
            end++;
        for (size_t k = i; k < end; k++)
            all[k].twice = i + 1 + end;
        double n = (double)(end - i);
        *ret_ties += n * n * n - n;
    }
    return all;
}

/* ways[k * (most + 1) + s]: in how many ways k of the figures have ranks of sum s. */
static double *count_ways(const struct ranked *all, size_t count, size_t taken, size_t most)
{
    double *ways = calloc((taken + 1) * (most + 1), sizeof *ways);
    if (!ways)
        return NULL;
    ways[0] = 1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = taken; k-- > 0;)
            for (size_t s = most + 1; s-- > all[i].twice;)
                ways[(k + 1) * (most + 1) + s] += ways[k * (most + 1) + s - all[i].twice];
    return ways;
}

static double exact(const struct ranked *all, size_t count, size_t taken, double sum, double mean)
{
    size_t most = count * (count + 1); /* the sum of all, times two */
    double *ways = count_ways(all, count, taken, most), far = 0, total = 0;
    for (size_t s = 0; ways && s <= most; s++) {
        double n = ways[taken * (most + 1) + s];
        total += n;
        if (fabs((double)s - mean) >= fabs(sum - mean))
            far += n;
    }
    free(ways);
    return ways ? far / total : NAN;
}

/* e to the power of y, 0 <= y < 50. The library's own cannot be linked into the command
 * (meson.build), and is not worth another file to load. */
static double power_of_e(double y)
{
    double sum = 1, term = 1;
    for (int i = 1; i < 20; i++)
        sum += term *= y / 64 / i;
    for (int i = 0; i < 6; i++) /* 64 is 2 six times */
        sum *= sum;
    return sum;
}

/* How often a normal variable is at least x deviations away from its mean, to either side. */
static double tails(double x)
{
    double half = x * x / 2, term = x, sum = 0;
    if (x > 8)
        return 0;
    for (int n = 1; term > 1e-18 * sum && n < 1000; n++) { /* all terms are above 0 */
        sum += term;
        term *= x * x / (2 * n + 1);
    }
    return fmax(0, 1 - sum * sqrt(2 / M_PI) / power_of_e(half));
}

double pr_rank_p(const double *a, size_t a_count, const double *b, size_t b_count)
{
    double ties = 0, sum = 0, n = (double)a_count, m = (double)b_count, all_n = n + m;
    if (!a_count || !b_count)
        return NAN;
    struct ranked *all = rank(a, a_count, b, b_count, &ties);
    if (!all)
        return NAN;
    for (size_t i = 0; i < a_count + b_count; i++)
        sum += all[i].first ? (double)all[i].twice : 0;
    double mean = n * (all_n + 1), p; /* both times two */
    if (a_count + b_count <= RANK_EXACT) {
        p = exact(all, a_count + b_count, a_count, sum, mean);
    } else {
        double variance = n * m / 12 * (all_n + 1 - ties / (all_n * (all_n - 1)));
        double off = fmax(0, fabs(sum - mean) / 2 - 0.5); /* what is counted goes in steps of one */
        p = variance > 0 ? tails(off / sqrt(variance)) : 1;
    }
    free(all);
    return fmin(1, p);
}

double pr_rank_least(size_t a_count, size_t b_count)
{
    double ways = 1;
    for (size_t i = 1; i <= a_count; i++)
        ways *= (double)(b_count + i) / (double)i;
    return fmin(1, 2 / ways);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double pr_median(double *v, size_t count)
{
    if (!count)
        return NAN;
    qsort(v, count, sizeof *v, ascending);
    return count % 2 ? v[count / 2] : (v[count / 2 - 1] + v[count / 2]) / 2;
}
