/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as a table of words, which text, Markdown and the page all show. */
#include "report/compare_words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/doc.h"
#include "report/model_parts.h"
#include "util/scan.h"
#include "util/text.h"

#define RUNS_SHOWN 4    /* each in a column of its own */
#define SAME       5e-4 /* a smaller share is no difference to people */

void pr_compare_noise(struct pr_buf *out, const struct pr_row *r, const char *before)
{
    if (!r->can_tell)
        return;
    pr_buf_str(out, before);
    pr_buf_str(out, r->beyond ? "beyond noise, p " : "within noise, p ");
    if (r->p < 0.001)
        pr_buf_str(out, "below 0.001");
    else
        pr_units_fixed(out, r->p, r->p < 0.0995 ? 3 : 2);
}

/* "28 % more (+290 ms)" */
static void put_difference(struct pr_buf *out, const struct pr_row *r)
{
    double change = r->median[1] - r->median[0], share = change / fabs(r->median[0]);
    if (isnan(change)) {
        pr_buf_str(out, isnan(r->median[0]) ? "not in the baseline" : "absent");
        return;
    }
    if (change == 0 || fabs(share) < SAME) {
        pr_buf_str(out, "the same");
        return;
    }
    if (isfinite(share)) {
        pr_units_fixed(out, fabs(share) * 100, fabs(share) < 0.0995 ? 1 : 0);
        pr_buf_str(out, " % ");
    }
    pr_buf_printf(out, "%s (%c", change > 0 ? "more" : "less", change > 0 ? '+' : '-');
    pr_model_human(out, fabs(change), pr_figure_unit(r->of));
    pr_buf_char(out, ')');
}

static void put_value(struct pr_buf *out, double v, struct pr_figure of)
{
    if (isnan(v))
        pr_buf_str(out, "absent");
    else
        pr_model_human(out, v, pr_figure_unit(of));
}

/* Of several runs each says by how much it differs. */
static void put_run(struct pr_buf *out, const struct pr_comparison *c, const struct pr_row *r,
                    size_t run)
{
    double v = pr_case_value(&c->side[1].items[run], r->phase, r->of), base = r->median[0];
    put_value(out, v, r->of);
    if (c->side[1].count < 2 || isnan(v) || !(fabs(base) > 0) || fabs(v - base) < SAME * fabs(base))
        return;
    pr_buf_str(out, v > base ? " +" : " -");
    pr_units_fixed(out, fabs(v / base - 1) * 100, fabs(v / base - 1) < 0.0995 ? 1 : 0);
    pr_buf_str(out, " %");
}

static void put_name(struct pr_buf *out, const struct pr_row *r)
{
    if (r->phase) {
        pr_text_safe(out, r->phase);
        pr_buf_str(out, ": ");
    }
    pr_figure_name(out, r->of);
    if (r->few)
        pr_buf_str(out, " (few samples)");
    else if (r->estimated)
        pr_buf_str(out, " (" SAID_ESTIMATED ")");
}

void pr_compare_cell(struct pr_buf *out, const struct pr_comparison *c, const struct pr_row *r,
                     const struct pr_compare_column *column)
{
    switch (column->kind) {
    case COLUMN_METRIC:
        put_name(out, r);
        break;
    case COLUMN_MEDIAN:
        put_value(out, r->median[column->at], r->of);
        break;
    case COLUMN_LEAST:
        put_value(out, r->least[column->at], r->of);
        break;
    case COLUMN_RUN:
        put_run(out, c, r, column->at);
        break;
    case COLUMN_DIFFERENCE:
        put_difference(out, r);
        break;
    case COLUMN_NOISE:
        pr_compare_noise(out, r, "");
        break;
    }
}

static struct pr_compare_column *add(struct pr_compare_table *t, enum pr_compare_kind kind,
                                     size_t at)
{
    struct pr_compare_column *column = &t->columns[t->count++];
    *column = (struct pr_compare_column){.kind = kind, .at = at};
    return column;
}

static void titled(struct pr_compare_column *column, const char *key, const char *title,
                   size_t number)
{
    struct pr_buf text = {0};
    pr_buf_str(&text, key);
    if (column->kind == COLUMN_RUN)
        pr_buf_printf(&text, "%zu", column->at);
    snprintf(column->key, sizeof column->key, "%s", pr_buf_text(&text));
    pr_buf_reset(&text);
    pr_buf_str(&text, title);
    if (number)
        pr_buf_printf(&text, "%zu", number);
    snprintf(column->title, sizeof column->title, "%s", pr_buf_text(&text));
    pr_buf_done(&text);
}

void pr_compare_columns(struct pr_compare_table *t, const struct pr_comparison *c)
{
    size_t base = c->side[0].count, runs = c->side[1].count;
    bool tested = false;
    *t = (struct pr_compare_table){0};
    for (size_t i = 0; i < c->rows.count; i++)
        tested |= c->rows.items[i].can_tell;
    titled(add(t, COLUMN_METRIC, 0), "metric", "metric", 0);
    titled(add(t, COLUMN_MEDIAN, 0), "baseline", base > 1 ? "baseline, median of " : "baseline",
           base > 1 ? base : 0);
    if (base > 1)
        titled(add(t, COLUMN_LEAST, 0), "baseline_least", "least", 0);
    for (size_t i = 0; i < runs && (runs == 1 || (base == 1 && runs <= RUNS_SHOWN)); i++)
        titled(add(t, COLUMN_RUN, i), "run", runs > 1 ? "run " : "run", runs > 1 ? i + 1 : 0);
    if (runs > 1) {
        titled(add(t, COLUMN_MEDIAN, 1), "median", "median of ", runs);
        titled(add(t, COLUMN_LEAST, 1), "least", "least", 0);
    }
    titled(add(t, COLUMN_DIFFERENCE, 0), "difference", "difference", 0);
    if (tested)
        titled(add(t, COLUMN_NOISE, 0), "noise", "noise", 0);
}

/* --- text ------------------------------------------------------------------------------------- */

/* Characters that it takes on a screen, nearly: bytes that begin one. */
static size_t width(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put_padded(struct pr_buf *out, const char *text, size_t to, bool right)
{
    size_t n = width(text), blanks = to > n ? to - n : 0;
    if (!right)
        pr_buf_str(out, text);
    pr_buf_printf(out, "%*s", (int)blanks, "");
    if (right)
        pr_buf_str(out, text);
}

static void put_case(struct pr_buf *out, const struct pr_case *k)
{
    pr_text_safe(out, k->id ? k->id : "");
    const char *called = k->name ? k->name : k->command;
    if (called) {
        struct pr_buf cut = {0};
        pr_text_safe(&cut, called);
        size_t n = cut.len > 60 ? 57 : cut.len;
        while (n < cut.len && n && ((unsigned char)cut.data[n] & 0xc0) == 0x80)
            n--;
        pr_buf_printf(out, "  %.*s%s", (int)n, pr_buf_text(&cut), n < cut.len ? "..." : "");
        pr_buf_done(&cut);
    }
    if (k->ending) {
        pr_buf_str(out, "  ");
        pr_text_safe(out, k->ending);
    }
    pr_buf_char(out, '\n');
}

static void put_what(struct pr_buf *out, const char *what, bool columns)
{
    pr_buf_printf(out, columns ? "%-9s " : "%s: ", what);
}

/* A line for each run, in columns or as items of a list, in which blanks at the begin would mean
 * something. */
static void put_cases(struct pr_buf *out, const struct pr_comparison *c, bool columns)
{
    char what[32];
    for (size_t i = 0; i < c->side[0].count; i++) {
        put_what(out, i && columns ? "" : "baseline", columns);
        put_case(out, &c->side[0].items[i]);
    }
    for (size_t i = 0; i < c->side[1].count; i++) {
        snprintf(what, sizeof what, "run %zu", i + 1);
        put_what(out, c->side[1].count > 1 ? what : "run", columns);
        put_case(out, &c->side[1].items[i]);
    }
    if (c->aligned) {
        put_what(out, "aligned", columns);
        pr_buf_str(out, "by the begin of phase ");
        pr_text_safe(out, c->aligned);
        pr_buf_char(out, '\n');
    }
}

/* row NULL: titles. */
static void put_cell(struct pr_buf *out, const struct pr_comparison *c, const struct pr_row *row,
                     const struct pr_compare_column *column)
{
    pr_buf_reset(out);
    if (row)
        pr_compare_cell(out, c, row, column);
    else
        pr_buf_str(out, column->title);
}

static bool is_figure(enum pr_compare_kind kind)
{
    return kind == COLUMN_MEDIAN || kind == COLUMN_LEAST || kind == COLUMN_RUN;
}

static void put_table(struct pr_buf *out, const struct pr_comparison *c)
{
    struct pr_compare_table t;
    struct pr_buf cell = {0};
    size_t widths[COMPARE_COLUMNS] = {0};
    pr_compare_columns(&t, c);
    for (size_t i = 0; i <= c->rows.count; i++)
        for (size_t k = 0; k < t.count; k++) {
            put_cell(&cell, c, i ? &c->rows.items[i - 1] : NULL, &t.columns[k]);
            size_t n = width(pr_buf_text(&cell));
            widths[k] = n > widths[k] ? n : widths[k];
        }
    for (size_t i = 0; i <= c->rows.count; i++) {
        for (size_t k = 0; k < t.count; k++) {
            put_cell(&cell, c, i ? &c->rows.items[i - 1] : NULL, &t.columns[k]);
            pr_buf_str(out, k ? "  " : "");
            put_padded(out, pr_buf_text(&cell), widths[k], is_figure(t.columns[k].kind));
        }
        while (out->len && out->data[out->len - 1] == ' ')
            out->len--;
        pr_buf_char(out, '\n');
    }
    pr_buf_done(&cell);
}

void pr_compare_text(struct pr_buf *out, const struct pr_comparison *c)
{
    put_cases(out, c, true);
    pr_buf_char(out, '\n');
    put_table(out, c);
    for (size_t i = 0; i < c->gates.count; i++) {
        pr_buf_str(out, i ? "" : "\n");
        pr_gate_words(out, c, &c->gates.items[i]);
        pr_buf_char(out, '\n');
    }
}

/* --- Markdown --------------------------------------------------------------------------------- */

#define MARKDOWN_SIGNS "_{}|!"

/* row NULL: titles. */
static void put_line(struct pr_buf *out, const struct pr_comparison *c,
                     const struct pr_compare_table *t, const struct pr_row *row)
{
    struct pr_buf cell = {0};
    for (size_t k = 0; k < t->count; k++) {
        bool strong =
            row && t->columns[k].kind == COLUMN_DIFFERENCE && row->severity == SEVERITY_BAD;
        put_cell(&cell, c, row, &t->columns[k]);
        pr_buf_str(out, strong ? "| **" : "| ");
        pr_doc_escape(out, pr_buf_text(&cell), MARKDOWN_SIGNS);
        pr_buf_str(out, strong ? "** " : " ");
    }
    pr_buf_str(out, "|\n");
    pr_buf_done(&cell);
}

static void put_list(struct pr_buf *out, const struct pr_comparison *c)
{
    struct pr_buf words = {0}, one = {0};
    put_cases(&words, c, false);
    struct pr_scan s = pr_scan_of(words.data, words.len), line;
    while (pr_scan_line(&s, &line)) {
        pr_buf_reset(&one);
        pr_buf_add(&one, line.p, (size_t)(line.end - line.p));
        pr_buf_str(out, "- ");
        pr_doc_escape(out, pr_buf_text(&one), MARKDOWN_SIGNS);
        pr_buf_char(out, '\n');
    }
    pr_buf_done(&one);
    for (size_t i = 0; i < c->gates.count; i++) {
        pr_buf_reset(&words);
        pr_gate_words(&words, c, &c->gates.items[i]);
        pr_buf_str(out, c->gates.items[i].holds          ? "- **failed**: "
                        : *c->gates.items[i].why.message ? "- **not decided**: "
                                                         : "- passed: ");
        pr_doc_escape(out, pr_buf_text(&words), MARKDOWN_SIGNS);
        pr_buf_char(out, '\n');
    }
    pr_buf_done(&words);
}

void pr_compare_markdown(struct pr_buf *out, const struct pr_comparison *c)
{
    struct pr_compare_table t;
    pr_compare_columns(&t, c);
    put_list(out, c);
    pr_buf_char(out, '\n');
    put_line(out, c, &t, NULL);
    for (size_t k = 0; k < t.count; k++)
        pr_buf_str(out, is_figure(t.columns[k].kind) ? "|---:" : "|---");
    pr_buf_str(out, "|\n");
    for (size_t i = 0; i < c->rows.count; i++)
        put_line(out, c, &t, &c->rows.items[i]);
}
