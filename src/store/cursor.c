/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cursor.h"

#include <string.h>

/* Which value a column has, -1 for none that is known here. */
static int find(const struct pr_run_columns *columns, const char *name)
{
    struct pr_buf own = {0};
    int found = -1;
    for (int i = 0; i < columns->count && found < 0; i++) {
        pr_buf_reset(&own);
        pr_metric_column(&own, &pr_metrics[columns->id[i]]);
        if (strcmp(pr_buf_text(&own), name) == 0)
            found = columns->slot[i];
    }
    pr_buf_done(&own);
    return found;
}

/* after: NULL for all rows. */
static void open_rows(struct pr_cursor *c, const struct pr_stored *r, enum pr_run_table table,
                      const int64_t *after)
{
    struct pr_run_columns columns;
    struct pr_buf sql = {0};
    *c = (struct pr_cursor){.head = pr_run_table_head(table)};
    pr_run_table_columns(table, &columns);
    pr_run_table_select(&sql, table, after != NULL);
    c->code = pr_query_new(&c->query, r->db, pr_buf_text(&sql));
    pr_buf_done(&sql);
    if (c->code < 0)
        return;
    if (after)
        pr_query_int(c->query, 1, *after);
    c->all = pr_query_columns(c->query);
    c->count = c->all < CURSOR_COLUMNS ? c->all : CURSOR_COLUMNS;
    for (int i = c->head; i < c->count; i++)
        c->slot[i] = find(&columns, pr_query_name(c->query, i));
    pr_cursor_next(c);
}

void pr_cursor_open(struct pr_cursor *c, const struct pr_stored *r, enum pr_run_table table)
{
    open_rows(c, r, table, NULL);
}

void pr_cursor_open_after(struct pr_cursor *c, const struct pr_stored *r, enum pr_run_table table,
                          int64_t sample)
{
    open_rows(c, r, table, &sample);
}

int pr_cursor_more(const struct pr_cursor *c)
{
    return c->all - 1;
}

void pr_cursor_next(struct pr_cursor *c)
{
    int code = c->code < 0 ? c->code : pr_query_step(c->query);
    c->on = code == 1;
    if (c->on)
        c->sample = pr_query_get_int(c->query, 0);
    else if (code < 0)
        c->code = code;
}

void pr_cursor_close(struct pr_cursor *c)
{
    pr_query_free(c->query);
    *c = (struct pr_cursor){0};
}

void pr_cursor_values(struct pr_cursor *c, double *value)
{
    for (int i = c->head; i < c->count; i++)
        if (c->slot[i] >= 0)
            value[c->slot[i]] = pr_query_get_number(c->query, i);
}
