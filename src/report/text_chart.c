/* SPDX-License-Identifier: Apache-2.0 */
/* Curves drawn with letters, for where there can be no pictures. */
#include "report/text_chart.h"

#include <math.h>
#include <string.h>

#include "report/model_parts.h"
#include "util/text.h"

#define COLUMNS 80
#define ROWS    4
#define LABEL   11

/* The most of each column's time; NaN where nothing is known. */
static void take(double *column, const struct pr_curves *t, const struct pr_curve *c, double end)
{
    for (int i = 0; i < COLUMNS; i++)
        column[i] = NAN;
    for (size_t i = 0; i < t->count; i++) {
        if (!(c->cell[i].weight > 0))
            continue;
        double at = pr_curves_at(t, i), span = pr_curves_span(t, i),
               from = t->width > 0 ? at - span / 2 : at - span,
               to = t->width > 0 ? at + span / 2 : at;
        int first = (int)fmax(0, from / end * COLUMNS), last = (int)ceil(to / end * COLUMNS) - 1;
        for (int k = first; k < COLUMNS && (k <= last || k == first); k++)
            column[k] = isnan(column[k]) ? c->cell[i].max : fmax(column[k], c->cell[i].max);
    }
}

static void put_row(struct pr_buf *out, const double *column, double top, int row)
{
    static const char *const blocks[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    size_t end = out->len; /* blanks at the end are left out */
    for (int i = 0; i < COLUMNS; i++) {
        double height = top > 0 ? column[i] / top * ROWS * 8 - row * 8 : 0;
        if (isnan(column[i]))
            pr_buf_str(out, row ? " " : "\u00b7");
        else
            pr_buf_str(out, blocks[height >= 8                ? 8
                                   : height > (row ? 0.5 : 1) ? (int)lround(height)
                                                              : !row]);
        if (out->len && out->data[out->len - 1] != ' ')
            end = out->len;
    }
    out->len = end;
}

static void label(struct pr_buf *out, const char *text)
{
    size_t wide = pr_text_length(text);
    pr_buf_printf(out, "%*s%s |", wide < LABEL ? (int)(LABEL - wide) : 0, "", text);
}

static void put_series(struct pr_buf *out, const struct pr_model *m, const struct pr_chart *chart,
                       const struct pr_model_series *s, double end)
{
    const struct pr_curve *c = &m->curves.items[s->curve];
    double column[COLUMNS];
    struct pr_buf text = {0};
    take(column, &m->curves, c, end);
    pr_buf_printf(out, "%s: ", chart->title);
    pr_text_line(out, s->label, 40);
    pr_buf_printf(out, "%s%s\n", s->limit.text ? ", " : "", s->limit.text ? s->limit.text : "");
    for (int row = ROWS - 1; row >= 0; row--) {
        pr_buf_reset(&text);
        if (row == ROWS - 1)
            pr_model_human(&text, c->most, s->unit);
        label(out, row ? pr_buf_text(&text) : "0");
        put_row(out, column, c->most, row);
        pr_buf_char(out, '\n');
    }
    pr_buf_reset(&text);
    pr_model_human(&text, end, UNIT_SECONDS);
    pr_buf_printf(out, "%*s 0%*s\n", LABEL + 1, "", COLUMNS - 1, pr_buf_text(&text));
    pr_buf_done(&text);
}

void pr_text_charts(struct pr_buf *out, const struct pr_model *m)
{
    double end = fmax(fmax(isnan(m->duration) ? 0 : m->duration, m->curves.at), 1e-6);
    bool any = false;
    for (size_t i = 0; i < pr_chart_count; i++) {
        const struct pr_chart *c = &pr_charts[i];
        for (size_t k = 0; k < 4 && c->lines[k].role && strcmp(c->place, "first") == 0; k++)
            for (size_t n = 0; n < m->series.count; n++) {
                const struct pr_model_series *s = &m->series.items[n];
                const char *role = c->lines[k].role;
                if (s->group != c->lines[k].group || !(m->curves.items[s->curve].most > 0) ||
                    strcmp(role, "context") == 0 || strcmp(role, "share") == 0)
                    continue;
                pr_buf_str(out, any ? "\n" : "");
                any = true;
                put_series(out, m, c, s, end);
            }
    }
}
