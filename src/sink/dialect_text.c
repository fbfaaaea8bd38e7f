/* SPDX-License-Identifier: Apache-2.0 */
/* How a row is written: as text with separators, as a JSON object, line by line, by a template. */
#include <math.h>
#include <string.h>

#include "sink/dialect_row.h"
#include "util/json.h"
#include "util/text.h"
#include "util/units.h"

static void put_quoted(struct pr_buf *out, const struct pr_table *table, const char *text)
{
    if (table->layout == LAYOUT_OBJECT) {
        struct pr_json j = {.out = out};
        pr_json_string(&j, text);
    } else if (table->quoting == QUOTE_WHERE_NEEDED) {
        pr_text_csv(out, text);
    } else if (table->quoting == QUOTE_TEXT) {
        pr_buf_char(out, '"');
        for (const char *p = text; *p; p++) {
            if (*p == '"')
                pr_buf_char(out, '"');
            pr_buf_char(out, *p);
        }
        pr_buf_char(out, '"');
    } else {
        pr_text_safe(out, text);
    }
}

static void put_number(struct pr_buf *out, const struct pr_column *c, double v)
{
    if (v == 0 && c->zero)
        pr_buf_str(out, c->zero);
    else if (c->shape == SHAPE_FLOAT)
        pr_units_shortest(out, v);
    else
        pr_units_exact(out, v, c->shape == SHAPE_WHOLE ? 0 : c->decimals);
}

static const char *absent_text(const struct pr_table_state *s, const struct pr_column *c,
                               const struct pr_row *row)
{
    if (c->no_gpu && row->job->no_gpu)
        return c->no_gpu;
    if (c->first && row->sample->first)
        return c->first;
    if (c->ended && row->ended)
        return c->ended;
    return c->absent ? c->absent : s->table->absent;
}

static void put_absent(struct pr_buf *out, const struct pr_table_state *s,
                       const struct pr_column *c, const struct pr_row *row)
{
    const char *text = absent_text(s, c, row);
    pr_buf_str(out, text ? text : "");
}

static void put_text(struct pr_buf *out, struct pr_table_state *s, const struct pr_column *c,
                     const struct pr_row *row)
{
    pr_buf_reset(&s->scratch);
    if (c->text(row, &s->scratch))
        put_quoted(out, s->table, pr_buf_text(&s->scratch));
    else
        put_absent(out, s, c, row);
}

static void pad(struct pr_buf *out, size_t start, int width)
{
    size_t len = out->len - start, more = width > (int)len ? (size_t)width - len : 0;
    if (!more || !pr_buf_reserve(out, more))
        return;
    memmove(out->data + start + more, out->data + start, len);
    memset(out->data + start, ' ', more);
    out->len += more;
}

static void put_cell(struct pr_buf *out, struct pr_table_state *s, int i, const struct pr_row *row)
{
    const struct pr_column *c = &s->table->columns[i];
    size_t start = out->len;
    if (c->shape == SHAPE_TEXT) {
        put_text(out, s, c, row);
    } else {
        double v = pr_row_number(s, i, row);
        if (isnan(v))
            put_absent(out, s, c, row);
        else
            put_number(out, c, v);
    }
    pad(out, start, c->width);
}

static int find(const struct pr_table *table, const char *name, size_t len)
{
    for (int i = 0; i < table->column_count; i++)
        if (strlen(table->columns[i].name) == len &&
            strncmp(table->columns[i].name, name, len) == 0)
            return i;
    return -1;
}

/* --- the layouts ------------------------------------------------------------------------------ */

static bool is_wanted(const struct pr_table_state *s, const struct pr_column *c,
                      const struct pr_row *row)
{
    if (!c->if_positive)
        return true;
    int other = find(s->table, c->if_positive, strlen(c->if_positive));
    return other >= 0 && pr_row_number(s, other, row) > 0;
}

static void write_object(struct pr_buf *out, struct pr_table_state *s, const struct pr_row *row)
{
    const char *before = "{";
    for (int i = 0; i < s->table->column_count; i++) {
        const struct pr_column *c = &s->table->columns[i];
        if (!is_wanted(s, c, row))
            continue;
        pr_buf_printf(out, "%s\"%s\": ", before, c->name);
        put_cell(out, s, i, row);
        before = ", ";
    }
    pr_buf_str(out, "}\n");
}

static void write_lines(struct pr_buf *out, struct pr_table_state *s, const struct pr_row *row)
{
    for (int i = 0; i < s->table->column_count; i++) {
        pr_buf_printf(out, "%s%s%s", s->table->line_before ? s->table->line_before : "",
                      s->table->columns[i].name, s->table->separator);
        put_cell(out, s, i, row);
        pr_buf_str(out, s->table->newline);
    }
}

static char unescaped(char c)
{
    return (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
}

static void write_template(struct pr_buf *out, struct pr_table_state *s, const struct pr_row *row)
{
    for (const char *p = s->format; *p; p++) {
        if (*p == '\\' && p[1]) {
            pr_buf_char(out, unescaped(*++p));
        } else if (*p == '%' && p[1]) {
            int i = find(s->table, ++p, 1);
            if (i >= 0)
                put_cell(out, s, i, row);
            else
                pr_buf_printf(out, *p == '%' ? "%%" : "?%c", *p);
        } else {
            pr_buf_char(out, *p);
        }
    }
    pr_buf_str(out, s->table->newline);
}

static void write_row(struct pr_buf *out, struct pr_table_state *s, const struct pr_row *row)
{
    for (int i = 0; i < s->table->column_count; i++) {
        if (i)
            pr_buf_str(out, s->table->separator);
        put_cell(out, s, i, row);
    }
    pr_buf_str(out, s->table->newline);
}

void pr_row_write(struct pr_buf *out, struct pr_table_state *s, const struct pr_row *row)
{
    static void (*const writers[])(struct pr_buf *, struct pr_table_state *,
                                   const struct pr_row *) = {[LAYOUT_ROWS] = write_row,
                                                             [LAYOUT_OBJECT] = write_object,
                                                             [LAYOUT_LINES] = write_lines,
                                                             [LAYOUT_TEMPLATE] = write_template};
    if (s->table->preface)
        s->table->preface(row, out);
    writers[s->table->layout](out, s, row);
}

void pr_row_header(struct pr_buf *out, const struct pr_table *table)
{
    for (int i = 0; i < table->column_count; i++) {
        if (i)
            pr_buf_str(out, table->separator);
        put_quoted(out, table, table->columns[i].name);
    }
    pr_buf_str(out, table->newline);
}
