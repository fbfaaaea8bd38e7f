/* SPDX-License-Identifier: Apache-2.0 */
/* What those who judge recorded runs ask of them. */
#pragma once
#include "core/error.h"
#include "report/summary.h"
#include "store/stored.h"

/* The summary as JSON, stored or else rebuilt, into out. 0 or -errno. */
int pr_recorded_summary(const struct pr_stored *r, struct pr_buf *out, struct proctor_error *err);
/* "exit 3", "killed by SIGKILL", "still running" ... into text; did it end well, as far as is
 * known?
 */
bool pr_recorded_ending(const struct pr_stored *r, char *text, size_t size);
/* How it was recorded. */
enum pr_way pr_recorded_way(const struct pr_stored *r);
/* Is it of a machine, not of a job? */
bool pr_recorded_machine(const struct pr_stored *r);
