/* SPDX-License-Identifier: Apache-2.0 */
/* All rows share one axis: a column of the terminal is the same time in each. A column shows the
 * most that was in it, so that a peak of one sample is seen. */
#include "report/picture.h"

#include <math.h>
#include <string.h>

#include "report/model_parts.h"
#include "util/text.h"

#define COUNT(list)   (sizeof list / sizeof *list)
#define COLUMNS_LEAST 16
#define COLUMNS_MOST  60
#define BAR           10
#define MARGIN        10 /* the label */
#define WORDS         38
#define DEVICES_SHOWN 4
#define LIMIT_MATTERS 0.6 /* of it: then the curve is drawn against it */
#define NEAR_LIMIT    0.9
#define SMALL_STEP    1.1 /* CPU times arrive in steps: so much above the limit is none */
#define CELL_BYTES    8   /* a character */
#define PAINT_TROUBLE "31"
#define PAINT_QUIET   "2"

/* What stands behind a curve. */
enum words { WORDS_CORES, WORDS_PEAK, WORDS_BUSY, WORDS_TOTAL };

struct row {
    enum pr_group group;
    const char *name; /* NULL: that of the series */
    const char *paint;
    enum words words;
};
static const struct row rows[] = {
    {GROUP_CPU, "CPU", "34", WORDS_CORES},         {GROUP_MEMORY, "memory", "35", WORDS_PEAK},
    {GROUP_READ, "read", "33", WORDS_TOTAL},       {GROUP_WRITE, "write", "33", WORDS_TOTAL},
    {GROUP_RECEIVE, "receive", "36", WORDS_TOTAL}, {GROUP_SEND, "send", "36", WORDS_TOTAL},
};
#define ROWS_BEFORE_DEVICES 2
static const struct row device_rows[] = {
    {GROUP_GPU_UTIL, NULL, "32", WORDS_BUSY},
    {GROUP_GPU_MEMORY, "  mem", "32", WORDS_PEAK},
};

struct picture {
    struct pr_page *p;
    const struct pr_model *m;
    size_t columns;
    double lasted;
};

static void pad(struct pr_buf *out, size_t n)
{
    while (n--)
        pr_buf_char(out, ' ');
}

/* --- curves and bars ---------------------------------------------------------------------------
 */

/* The most that was in a column; NaN where nothing is known. */
static double most_in(const struct picture *c, const struct pr_model_series *s, size_t column)
{
    const struct pr_curves *k = &c->m->curves;
    double from = c->lasted * (double)column / (double)c->columns,
           to = c->lasted * (double)(column + 1) / (double)c->columns, most = NAN;
    for (size_t i = 0; i < k->count; i++) {
        const struct pr_curve_cell *cell = &k->items[s->curve].cell[i];
        double span = pr_curves_span(k, i),
               end = pr_curves_at(k, i) + (k->width > 0 ? span / 2 : 0);
        if (cell->weight > 0 && end > from && end - span < to)
            most = fmax(most, cell->max);
    }
    return most;
}

/* The limit is the top where the curve comes near it; else it would be flat. A share is of 1. */
static double top_of(const struct pr_model_series *s)
{
    double limit = s->limit.value;
    if (s->unit == UNIT_RATIO)
        return 1;
    return limit > 0 && s->stats.max > LIMIT_MATTERS * limit ? fmax(limit, s->stats.max)
                                                             : s->stats.max;
}

static void curve(struct picture *c, const struct pr_model_series *s, const char *paint)
{
    double top = top_of(s);
    pr_page_paint(c->p, paint);
    for (size_t i = 0; i < c->columns; i++) {
        double v = most_in(c, s, i);
        pr_buf_str(c->p->out, isnan(v) ? " " : pr_page_level(c->p, top > 0 ? v / top : 0));
    }
    pr_page_paint(c->p, "0");
}

static void bar(struct picture *c, double share, const char *paint)
{
    static const char *const eighths[] = {"",       "\u258f", "\u258e", "\u258d",
                                          "\u258c", "\u258b", "\u258a", "\u2589"};
    bool fine = c->p->look.bars;
    int parts = (int)lround(fmin(1, fmax(0, share)) * BAR * 8), whole = parts / 8;
    int part = fine ? parts % 8 : 0;
    pr_page_paint(c->p, paint);
    for (int i = 0; i < whole; i++)
        pr_buf_str(c->p->out, fine ? "\u2588" : "#");
    pr_buf_str(c->p->out, eighths[part]);
    pr_page_paint(c->p, "0");
    pr_page_paint(c->p, PAINT_QUIET);
    for (int i = whole + (part > 0); i < BAR; i++)
        pr_buf_str(c->p->out, fine ? "\u2591" : ".");
    pr_page_paint(c->p, "0");
}

/* --- words -------------------------------------------------------------------------------------
 */

static void say(struct picture *c, const char *before, double v, enum pr_unit unit)
{
    pr_buf_str(c->p->out, before);
    pr_model_human(c->p->out, v, unit);
}

/* Its unit stands behind the last of them. */
static void number(struct picture *c, const char *before, double v)
{
    pr_buf_str(c->p->out, before);
    if (isnan(v))
        pr_buf_str(c->p->out, "unknown");
    else
        pr_units_fixed(c->p->out, v, v < 9.995 ? 2 : v < 99.95 ? 1 : 0);
}

/* What the bar is of; NaN for no bar. */
static double share_of(const struct pr_model_series *s, enum words words)
{
    if (words == WORDS_BUSY)
        return s->stats.mean;
    return s->limit.value > 0 && words != WORDS_TOTAL ? s->stats.max / s->limit.value : NAN;
}

static void words(struct picture *c, const struct pr_model_series *s, enum words words)
{
    const struct pr_figures *f = &s->stats;
    double limit = s->limit.value,
           peak = limit > 0 && f->max < SMALL_STEP * limit ? fmin(f->max, limit) : f->max;
    switch (words) {
    case WORDS_CORES:
        number(c, "mean ", f->mean);
        number(c, ", peak ", peak);
        if (!(limit > 0))
            pr_buf_str(c->p->out, " cores");
        break;
    case WORDS_PEAK:
        say(c, "peak ", f->max, s->unit);
        break;
    case WORDS_BUSY:
        say(c, "mean ", f->mean, s->unit);
        say(c, ", peak ", f->max, s->unit);
        return;
    case WORDS_TOTAL:
        say(c, "", f->total, UNIT_BYTES);
        say(c, ", peak ", f->max, s->unit);
        return;
    }
    if (limit > 0)
        say(c, " of ", limit, s->unit);
}

static void row(struct picture *c, const struct pr_model_series *s, const struct row *how)
{
    double share = share_of(s, how->words);
    bool near = how->words == WORDS_PEAK && share >= NEAR_LIMIT; /* busy CPUs are no trouble */
    pr_page_label(c->p, how->name ? how->name : s->label);
    curve(c, s, how->paint);
    pad(c->p->out, 2);
    if (isnan(share))
        pad(c->p->out, BAR);
    else
        bar(c, share, near ? PAINT_TROUBLE : how->paint);
    pad(c->p->out, 2);
    words(c, s, how->words);
    pr_page_end(c->p);
}

/* Devices are in the order of series, each with its use first. */
static void devices(struct picture *c)
{
    size_t shown = 0;
    for (size_t i = 0; i < c->m->series.count; i++) {
        const struct pr_model_series *s = &c->m->series.items[i];
        shown += s->group == GROUP_GPU_UTIL;
        for (size_t k = 0; k < COUNT(device_rows) && shown <= DEVICES_SHOWN; k++)
            if (device_rows[k].group == s->group)
                row(c, s, &device_rows[k]);
    }
    if (shown <= DEVICES_SHOWN)
        return;
    pr_page_label(c->p, "");
    pr_buf_printf(c->p->out, "%zu more GPUs: see below", shown - DEVICES_SHOWN);
    pr_page_end(c->p);
}

static void curves(struct picture *c)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct pr_model_series *s = pr_model_find(c->m, rows[i].group);
        if (i == ROWS_BEFORE_DEVICES)
            devices(c);
        if (s && (rows[i].words != WORDS_TOTAL || s->stats.total > 0))
            row(c, s, &rows[i]);
    }
}

/* --- phases, events, time ----------------------------------------------------------------------
 */

static size_t column_of(const struct picture *c, double at)
{
    double column = at / c->lasted * (double)c->columns;
    return !(column > 0) ? 0 : column >= (double)c->columns ? c->columns - 1 : (size_t)column;
}

/* Characters of a strip, each with its colour. */
struct strip {
    char text[COLUMNS_MOST][CELL_BYTES];
    const char *paint[COLUMNS_MOST];
    bool any;
};

static void set(struct strip *s, size_t column, const char *text, size_t len, const char *paint)
{
    len = len < CELL_BYTES ? len : CELL_BYTES - 1;
    memcpy(s->text[column], text, len);
    s->text[column][len] = '\0';
    s->paint[column] = paint;
    s->any = true;
}

/* So many columns of it. */
static void put_strip(struct picture *c, const char *name, const struct strip *s, size_t columns)
{
    const char *paint = NULL;
    pr_page_label(c->p, name);
    for (size_t i = 0; i < columns; i++) {
        if (s->paint[i] != paint)
            pr_page_paint(c->p, s->paint[i] ? s->paint[i] : "0");
        paint = s->paint[i];
        pr_buf_str(c->p->out, s->text[i][0] ? s->text[i] : " ");
    }
    if (paint)
        pr_page_paint(c->p, "0");
}

static void phase(struct picture *c, struct strip *s, const struct pr_model_phase *p)
{
    struct pr_buf name = {0};
    bool fine = c->p->look.bars;
    size_t from = column_of(c, p->begin), to = column_of(c, p->end);
    pr_text_safe(&name, p->name);
    const char *text = pr_buf_text(&name), *end = text + strlen(text);
    const char *edge = fine ? "\u2502" : "|", *line = fine ? "\u2500" : "-";
    set(s, from, edge, strlen(edge), PAINT_QUIET);
    for (size_t i = from + 1; i <= to; i++) {
        size_t n = text < end ? pr_text_utf8(text, end) : 0;
        if (n)
            set(s, i, text, n, NULL);
        else
            set(s, i, line, strlen(line), PAINT_QUIET);
        text += n;
    }
    pr_buf_done(&name);
}

static void phases(struct picture *c)
{
    for (int level = 0; level < 2; level++) {
        struct strip s = {0};
        for (size_t i = 0; i < c->m->phases.count; i++)
            if (c->m->phases.items[i].level == level && c->m->phases.items[i].count == 1)
                phase(c, &s, &c->m->phases.items[i]);
        if (!s.any)
            return;
        size_t used = c->columns;
        while (used && !s.text[used - 1][0])
            used--;
        put_strip(c, level ? "" : "phases", &s, used);
        pr_page_end(c->p);
    }
}

static const char *paint_of(enum pr_severity severity)
{
    return severity == SEVERITY_BAD ? PAINT_TROUBLE : severity == SEVERITY_WARN ? "33" : NULL;
}

static void events(struct picture *c)
{
    static const struct {
        const char *kind, *sign, *plain;
    } kinds[] = {{"mark", "\u25be", "v"},   {"oom", "\u2715", "x"},  {"throttled", "!", "!"},
                 {"signal", "\u2715", "x"}, {"exit", "\u2715", "x"}, {"note", "\u00b7", "."}};
    struct strip s = {0};
    size_t counts[COUNT(kinds)] = {0}, said = 0;
    for (int severity = SEVERITY_GOOD; severity <= SEVERITY_BAD; severity++)
        for (size_t i = 0; i < c->m->events.count; i++) {
            const struct pr_model_event *e = &c->m->events.items[i];
            for (size_t k = 0; k < COUNT(kinds) && (int)e->severity == severity; k++) {
                const char *sign = c->p->look.bars ? kinds[k].sign : kinds[k].plain;
                if (strcmp(kinds[k].kind, e->kind) != 0)
                    continue;
                counts[k]++;
                set(&s, column_of(c, e->at), sign, strlen(sign), paint_of(e->severity));
            }
        }
    if (!s.any)
        return;
    put_strip(c, "events", &s, c->columns);
    pad(c->p->out, 2);
    for (size_t k = 0; k < COUNT(kinds); k++)
        if (counts[k])
            pr_buf_printf(c->p->out, "%s%zu %s", said++ ? ", " : "", counts[k], kinds[k].kind);
    pr_page_end(c->p);
}

static void axis(struct picture *c)
{
    struct pr_buf end = {0};
    pr_model_human(&end, c->lasted, UNIT_SECONDS);
    size_t wide = strlen(pr_buf_text(&end));
    pr_page_label(c->p, "");
    pr_page_paint(c->p, PAINT_QUIET);
    pr_buf_char(c->p->out, '0');
    pad(c->p->out, c->columns > wide + 1 ? c->columns - wide - 1 : 1);
    pr_buf_str(c->p->out, pr_buf_text(&end));
    pr_page_paint(c->p, "0");
    pr_page_end(c->p);
    pr_buf_done(&end);
}

void pr_picture(struct pr_page *page, const struct pr_model *m)
{
    const size_t others = MARGIN + 2 + BAR + 2 + WORDS;
    struct picture c = {.p = page, .m = m, .lasted = m->curves.at};
    size_t room = page->look.width > others ? page->look.width - others : 0;
    c.columns = room < COLUMNS_MOST ? room : COLUMNS_MOST;
    if (c.columns < COLUMNS_LEAST || !m->series.count || !(c.lasted > 0))
        return;
    pr_buf_char(page->out, '\n');
    curves(&c);
    phases(&c);
    events(&c);
    axis(&c);
}

/* Quotation marks of the words, where they cannot be shown. */
static void say_plain(struct pr_page *page, const char *text)
{
    const size_t n = strlen("\u201c");
    while (*text) {
        bool mark = strncmp(text, "\u201c", n) == 0 || strncmp(text, "\u201d", n) == 0;
        pr_buf_char(page->out, mark ? '"' : *text);
        text += mark ? n : 1;
    }
}

void pr_picture_findings(struct pr_page *page, const struct pr_model *m)
{
    for (size_t i = 0; i < m->findings.count; i++) {
        pr_page_label(page, i ? "" : "finding");
        const char *paint = paint_of(m->findings.items[i].severity);
        if (paint)
            pr_page_paint(page, paint);
        struct pr_buf text = {0};
        pr_text_safe(&text, m->findings.items[i].text);
        if (page->look.bars)
            pr_buf_str(page->out, pr_buf_text(&text));
        else
            say_plain(page, pr_buf_text(&text));
        pr_buf_done(&text);
        if (paint)
            pr_page_paint(page, "0");
        pr_page_end(page);
    }
}
