/* SPDX-License-Identifier: Apache-2.0 */
/* What concerns our own process: so that the monitor is not in the measurement. */
#pragma once
#include "core/metric.h"

/* I/O of children that this process has waited for, into value[METRIC_IO_*]. */
void pr_self_absorbed_io(double *value);
/* Our own largest resident size so far, bytes; NaN where unknown. */
double pr_self_rss_peak(void);
