/* SPDX-License-Identifier: Apache-2.0 */
/* What several dialects have in their columns and no metric is. */
#pragma once
#include "sink/dialect.h"

#define KIB 0x1p10
#define MIB 0x1p20
#define GIB 0x1p30

/* Seconds: of the wall clock, and since the start. */
double pr_field_time(const struct pr_row *row);
double pr_field_elapsed(const struct pr_row *row);
double pr_field_pid(const struct pr_row *row);      /* of the process that the row is about */
double pr_field_root_pid(const struct pr_row *row); /* of the job's first process */
double pr_field_children(const struct pr_row *row); /* processes besides that one */
/* CPU time over time, percent of one core. */
double pr_field_load(const struct pr_row *row);
