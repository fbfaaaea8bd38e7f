/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a comparison, and the words in them. */
#pragma once
#include "report/compare.h"

#define COMPARE_COLUMNS 10

enum pr_compare_kind {
    COLUMN_METRIC,
    COLUMN_MEDIAN, /* at: of the baseline, of the runs */
    COLUMN_LEAST,
    COLUMN_RUN, /* at: which */
    COLUMN_DIFFERENCE,
    COLUMN_NOISE,
};
struct pr_compare_column {
    enum pr_compare_kind kind;
    size_t at;
    char key[24], title[48];
};
struct pr_compare_table {
    struct pr_compare_column columns[COMPARE_COLUMNS];
    size_t count;
};

void pr_compare_columns(struct pr_compare_table *t, const struct pr_comparison *c);
void pr_compare_cell(struct pr_buf *out, const struct pr_comparison *c, const struct pr_row *r,
                     const struct pr_compare_column *column);
/* One of the runs that did not end well, where less than the baseline is no gain; NULL for none. */
const struct pr_case *pr_compare_failed(const struct pr_comparison *c);
/* What the rank test says, behind `before`; nothing where there was none. */
void pr_compare_noise(struct pr_buf *out, const struct pr_row *r, const char *before);
