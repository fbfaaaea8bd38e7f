/* SPDX-License-Identifier: Apache-2.0 */
/* One row of a table: its numbers, and how they are written. */
#pragma once
#include "sink/dialect.h"

/* What is kept of a column from row to row. */
struct pr_column_state {
    double before, whole_before; /* what it and `share_of` were */
    double sum, max;             /* of the rows of another table */
    unsigned long count;
};

struct pr_table_state {
    const struct pr_table *table;
    struct pr_column_state *columns;
    bool second;           /* not the first row any more */
    const char *format;    /* of a template */
    struct pr_buf scratch; /* a text before it is quoted */
};

/* 0 or -ENOMEM. */
int pr_table_state_init(struct pr_table_state *s, const struct pr_table *table);
void pr_table_state_done(struct pr_table_state *s);

/* The rows that a sample has in this table, one by one: start with row->sample and *cursor 0. */
bool pr_row_next(const struct pr_table *table, struct pr_row *row, size_t *cursor);
/* A row without what it needs is not written. */
bool pr_row_is_there(const struct pr_table_state *s, const struct pr_row *row);
/* The number of a column, rounded as it is written; NaN is absent. */
double pr_row_number(const struct pr_table_state *s, int column, const struct pr_row *row);
/* What the rows of this sample were is now what was before. */
void pr_row_advance(struct pr_table_state *s, const struct proctor_snapshot *sample);
/* Appends the names, and a row. */
void pr_row_header(struct pr_buf *out, const struct pr_table *table);
void pr_row_write(struct pr_buf *out, struct pr_table_state *s, const struct pr_row *row);
