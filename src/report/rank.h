/* SPDX-License-Identifier: Apache-2.0 */
/* Do two groups of figures differ by more than chance? The rank test of Mann and Whitney, also
 * known as Wilcoxon's: it asks nothing of how the figures are distributed. */
#pragma once
#include <stddef.h>

#define RANK_EXACT 40 /* figures together, up to which all ways to divide them are counted */

/* The probability, where nothing distinguishes the groups, of ranks at least as far apart; 1 where
 * all are equal. Equal figures share their ranks. Exact for up to RANK_EXACT figures, else by the
 * normal approximation. NaN where a group is empty or memory is out. */
double pr_rank_p(const double *a, size_t a_count, const double *b, size_t b_count);
/* The least that can come out of so many figures without ties: what is above 0.05 cannot tell. */
double pr_rank_least(size_t a_count, size_t b_count);
/* Sorts v. NaN for none. */
double pr_median(double *v, size_t count);
