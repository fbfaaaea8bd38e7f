/* SPDX-License-Identifier: Apache-2.0 */
/* All recorded runs as a list. */
#pragma once
#include <sys/types.h>

#include "store/find.h"
#include "util/json.h"

/* The runs of the folder, those that began last first, and those that cannot be read behind them;
 * the caller frees. How many, or -errno. */
ssize_t pr_run_rows_read(struct pr_run_row **ret_rows, struct proctor_error *err);
void pr_run_rows_free(struct pr_run_row *rows, size_t count);

/* Is it "running", "ok", "failed", "died" or "elsewhere"? One that was recovered has died, too. */
bool pr_run_row_has_status(const struct pr_run_row *row, const char *status);
/* An object with all that is known of it. */
void pr_run_row_json(struct pr_json *j, const struct pr_run_row *row);
