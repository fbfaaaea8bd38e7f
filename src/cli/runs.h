/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands on recorded runs share. */
#pragma once
#include "cli/cli.h"
#include "store/find.h"

enum { EXIT_FAILED = 1 };

/* Parses options into c, which the caller ends with pr_config_done, and counts operands: at least
 * and at most so many. The index of the first one, or 0, and then *ret_status says how to exit. */
int pr_runs_begin(const char *name, int argc, char **argv, int least, int most, struct pr_config *c,
                  int *ret_status);
/* Finds and opens the run that the user named; complains where that fails. */
struct pr_stored *pr_runs_open(const char *command, const char *run);
/* Its summary as JSON: the stored one, else one that is rebuilt. False after a complaint. */
bool pr_runs_summary(const char *command, const struct pr_stored *r, struct pr_buf *out);
/* Is it the same file? Opening an output would empty it. */
bool pr_runs_is_file(const char *path, const char *run);
/* Columns of the terminal on standard output; 0 where there is none. */
unsigned pr_runs_width(void);
/* Local time: "2026-11-15 18:32:05". */
void pr_runs_time(struct pr_buf *out, int64_t wall_ns);
/* "exit 3", "SIGKILL", "running", "died", "elsewhere", "recovered", "ended", "damaged". */
void pr_runs_status(struct pr_buf *out, const struct pr_run_row *row);
/* The colour of that. */
const char *pr_runs_paint(const struct pr_run_row *row);
/* All runs of the folder, those that began last first; the caller frees with pr_run_rows_free.
 * Negative after a complaint. */
ssize_t pr_runs_all(const char *command, struct pr_run_row **ret_rows);
