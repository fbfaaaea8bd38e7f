/* SPDX-License-Identifier: Apache-2.0 */
/* A table of samples, read row by row in its order. Columns are found by their names: another
 * version may have more of them, or fewer. */
#pragma once
#include "core/run_file.h"
#include "store/stored.h"

#define CURSOR_COLUMNS 256

struct pr_cursor {
    struct pr_query *query;
    int64_t sample;           /* of the row that it is on */
    bool on;                  /* there is a row */
    int code;                 /* -errno, 0 while all is well */
    int head;                 /* columns before the metrics */
    int all, count;           /* columns: there are, and are looked at */
    int slot[CURSOR_COLUMNS]; /* where a column's value goes, -1 for nowhere */
};

/* Stands on the first row. What goes wrong is in code, here and below. */
void pr_cursor_open(struct pr_cursor *c, const struct pr_stored *r, enum pr_run_table table);
/* The same of the rows after this sample. */
void pr_cursor_open_after(struct pr_cursor *c, const struct pr_stored *r, enum pr_run_table table,
                          int64_t sample);
/* The column behind the metrics (run_file.h). */
int pr_cursor_more(const struct pr_cursor *c);
void pr_cursor_next(struct pr_cursor *c);
void pr_cursor_close(struct pr_cursor *c);
/* The values of the row; those that it does not have stay as they are. */
void pr_cursor_values(struct pr_cursor *c, double *value);
