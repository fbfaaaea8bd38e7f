/* SPDX-License-Identifier: Apache-2.0 */
/* What concerns our own process: so that the monitor is not in the measurement. */
#pragma once
#include <sys/types.h>

#include "core/metric.h"

/* I/O of children that this process has waited for, into value[METRIC_IO_*]. */
void pr_self_absorbed_io(double *value);
/* Adds to value[METRIC_IO_*] what a child that has ended will bring when it is waited for. */
void pr_self_expect_io(pid_t child, double *value);
/* When we were started, in ticks since boot; 0 where unknown. */
uint64_t pr_self_start(void);
/* Our own largest resident size so far, bytes; NaN where unknown. */
double pr_self_rss_peak(void);
/* The same of a forked copy of ours before it executes the job: what rusage will show of the job at
 * the least. */
double pr_self_copy_peak(pid_t child);
