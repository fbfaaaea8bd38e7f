/* SPDX-License-Identifier: Apache-2.0 */
/* A run on one picture: verdict, findings, phases, and four charts over one time axis. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/document.h"
#include "report/model_parts.h"
#include "report/svg.h"
#include "util/text.h"

#define COUNT(list)     (sizeof list / sizeof *list)
#define WIDTH           960
#define LEFT            56
#define RIGHT           96
#define PLOT_HEIGHT     104
#define ABSENT_HEIGHT   20
#define PLOT_GAP        24
#define ROW             16 /* of the phases */
#define ROWS            2
#define LETTER          6.4 /* the width of one of 11 px, about */
#define FINDING_WIDTH   145
#define COMMAND_LETTERS 86 /* of 15 px, wide ones too */
#define BAND_LEAST      4  /* narrower ones would only flicker */

#define TROUBLE_LETTERS 48

static const struct {
    const char *line, *ink;
} colors[] = {
    [FAMILY_CPU] = {"#0072b2", "#0072b2"},     [FAMILY_MEMORY] = {"#b0578d", "#a34c80"},
    [FAMILY_GPU] = {"#00805d", "#007a59"},     [FAMILY_DISK] = {"#b87a00", "#8a5c00"},
    [FAMILY_NETWORK] = {"#6a51a3", "#6a51a3"}, [FAMILY_ENERGY] = {"#5b636b", "#5b636b"},
    [FAMILY_OTHER] = {"#5b636b", "#5b636b"},
};
static const char *const dashes[] = {NULL, "6 3", "2 2", "9 3 2 3"};

/* --- charts ------------------------------------------------------------------------------------
 */

struct picture {
    struct pr_plot plot;
    char mixed[PLOT_LINES][8];
};

/* Several of a family: paler and paler, and dashed in different ways. */
static const char *paler(const char *color, size_t nth, char text[8])
{
    unsigned rgb = (unsigned)strtoul(color + 1, NULL, 16), made = 0;
    double share = 0.15 * (double)(nth > 3 ? 3 : nth);
    for (int shift = 16; shift >= 0; shift -= 8) {
        double part = (double)(rgb >> shift & 0xff);
        made |= (unsigned)llround(part + (255 - part) * share) << shift;
    }
    snprintf(text, 8, "#%06x", made);
    return text;
}

static void add_bounds(struct pr_plot *p, const struct pr_model_series *s, bool share)
{
    const struct pr_bound *const bounds[] = {&s->limit, &s->host};
    for (int i = 0; i < 2; i++) {
        double value = share ? 1 : bounds[i]->value;
        bool there = !bounds[i]->text || p->bound_count == PLOT_BOUNDS;
        for (size_t k = 0; k < p->bound_count; k++)
            there |= p->bounds[k].value == value;
        if (!there)
            p->bounds[p->bound_count++] =
                (struct pr_plot_bound){value, bounds[i]->text, i == 0, false};
    }
}

static void add_line(struct picture *to, const struct pr_model *m, const struct pr_model_series *s,
                     const char *role)
{
    struct pr_plot *p = &to->plot;
    bool context = strcmp(role, "context") == 0, share = strcmp(role, "share") == 0,
         down = strcmp(role, "down") == 0;
    size_t nth = 0;
    if (p->count == PLOT_LINES || !m->curves.items[s->curve].known ||
        (share && !(s->limit.text && s->limit.value > 0)))
        return;
    for (size_t i = 0; i < p->count; i++)
        nth += p->lines[i].ink == colors[s->family].ink && !p->lines[i].context &&
               (p->lines[i].width < 1.5) == share && (p->lines[i].factor < 0) == down;
    p->lines[p->count] = (struct pr_plot_line){
        .curve = &m->curves.items[s->curve],
        .label = s->label,
        .color = context ? SVG_CONTEXT : paler(colors[s->family].line, nth, to->mixed[p->count]),
        .ink = context ? SVG_MUTED : colors[s->family].ink,
        .dash = context ? NULL : dashes[nth % COUNT(dashes)],
        .width = context || share ? 1 : 1.75,
        .factor = down    ? -1
                  : share ? 1 / s->limit.value
                          : 1,
        .peak = context || share ? NAN : s->stats.max,
        .at = s->stats.at,
        .band = !context && !share,
        .context = context};
    p->count++;
    if (!context && !down)
        add_bounds(p, s, share);
}

static void take_chart(struct picture *to, const struct pr_model *m, const struct pr_chart *c)
{
    struct pr_plot *p = &to->plot;
    *p = (struct pr_plot){
        .title = c->title, .unit = c->unit, .time = &m->curves, .duration = m->duration};
    for (size_t i = 0; i < COUNT(c->lines) && c->lines[i].role; i++)
        for (size_t k = 0; k < m->series.count; k++)
            if (m->series.items[k].group == c->lines[i].group)
                add_line(to, m, &m->series.items[k], c->lines[i].role);
    p->absent = pr_chart_absent(m, c);
}

/* --- what happened -----------------------------------------------------------------------------
 */

static double end_of(const struct pr_model *m)
{
    return fmax(fmax(isnan(m->duration) ? 0 : m->duration, m->curves.at), 1e-6);
}

static double x_of(const struct pr_model *m, double at)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * fmin(1, fmax(0, at / end_of(m)));
}

static bool is_drawn(const struct pr_model_phase *p)
{
    return p->count == 1 && p->level < ROWS;
}

/* Rows of the strip: none where there is nothing in it. */
static int rows_of(const struct pr_model *m)
{
    int rows = m->events.count ? 1 : 0;
    for (size_t i = 0; i < m->phases.count; i++)
        if (is_drawn(&m->phases.items[i]) && m->phases.items[i].level >= rows)
            rows = m->phases.items[i].level + 1;
    return rows;
}

static void draw_phase(struct pr_buf *out, const struct pr_model *m, const struct pr_model_phase *p,
                       double y, bool dark)
{
    const struct pr_svg_pen pen = {SVG_INK, 11, ANCHOR_START, false, false};
    double x = x_of(m, p->begin), w = fmax(1, x_of(m, p->end) - x);
    const struct pr_box box = {x, y, w, ROW - 2};
    size_t letters = (size_t)fmax(0, (w - 6) / LETTER);
    pr_buf_str(out, "<g><title>");
    pr_svg_escape(out, p->name, 200);
    pr_buf_str(out, "</title>\n");
    pr_svg_rect(out, &box, dark ? "#d5dade" : "#e6e9ec");
    if (letters >= 2 && (letters > 3 || pr_text_length(p->name) <= letters))
        pr_svg_text(out, x + 3, y + 11, &pen, p->name, letters - 1);
    pr_buf_str(out, "</g>\n");
}

static void draw_strip(struct pr_buf *out, const struct pr_model *m, double y, int rows)
{
    size_t nth[ROWS] = {0};
    for (size_t i = 0; i < m->phases.count; i++) {
        const struct pr_model_phase *p = &m->phases.items[i];
        if (is_drawn(p))
            draw_phase(out, m, p, y + ROW * p->level, nth[p->level]++ % 2 == 0);
    }
    for (size_t i = 0; i < m->events.count; i++) {
        const struct pr_model_event *e = &m->events.items[i];
        bool bad = e->severity == SEVERITY_BAD;
        double x = x_of(m, e->at);
        pr_buf_str(out, "<g><title>");
        pr_svg_escape(out, e->text, 200);
        pr_buf_str(out, "</title>\n");
        pr_svg_line(out, x, y - 4, x, y + ROW * rows - 2, bad ? SVG_BAD : SVG_INK, bad ? 2 : 1,
                    NULL);
        pr_buf_str(out, "</g>\n");
    }
}

/* Behind the charts. */
static void draw_bands(struct pr_buf *out, const struct pr_model *m, double top, double bottom)
{
    size_t nth = 0;
    for (size_t i = 0; i < m->phases.count; i++) {
        const struct pr_model_phase *p = &m->phases.items[i];
        double x = x_of(m, p->begin);
        const struct pr_box box = {x, top, x_of(m, p->end) - x, bottom - top};
        if (p->count == 1 && p->level == 0 && nth++ % 2 == 0 && box.w >= BAND_LEAST)
            pr_svg_rect(out, &box, SVG_BAND);
    }
}

/* What went wrong: a line through all charts, and in words as far as there is room. */
static void draw_trouble(struct pr_buf *out, const struct pr_model *m, double top, double bottom)
{
    double free = 0; /* where no words are yet */
    for (size_t i = 0; i < m->events.count; i++) {
        const struct pr_model_event *e = &m->events.items[i];
        double x = x_of(m, e->at), wide = LETTER * (TROUBLE_LETTERS + 1);
        bool left = x + wide > WIDTH - RIGHT;
        const struct pr_svg_pen pen = {SVG_BADTEXT, 10, left ? ANCHOR_END : ANCHOR_START, false,
                                       true};
        if (e->severity != SEVERITY_BAD)
            continue;
        pr_svg_line(out, x, top, x, bottom, SVG_BAD, 1, NULL);
        if ((left ? x - wide : x) < free)
            continue;
        pr_svg_text(out, left ? x - 4 : x + 4, top + 9, &pen, e->text, TROUBLE_LETTERS);
        free = left ? x : x + wide;
    }
}

/* --- words -------------------------------------------------------------------------------------
 */

static const char *severity_ink(enum pr_severity severity)
{
    return severity == SEVERITY_BAD    ? SVG_BADTEXT
           : severity == SEVERITY_WARN ? "#8a5c00"
           : severity == SEVERITY_GOOD ? "#007a59"
                                       : SVG_INK;
}

/* A sentence over as many lines as it takes, broken at blanks; where the next line goes. */
static double draw_sentence(struct pr_buf *out, double y, const struct pr_svg_pen *pen,
                            const char *text, size_t width)
{
    struct pr_buf line = {0}, all = {0};
    pr_text_line(&all, text, 600);
    for (const char *p = pr_buf_text(&all); *p;) {
        size_t n = strlen(p), length = pr_text_length(p);
        if (length > width) {
            size_t cut = 0;
            for (size_t i = 0, letters = 0; i < n && letters <= width; i++) {
                letters += ((unsigned char)p[i] & 0xc0) != 0x80;
                cut = p[i] == ' ' || (!cut && letters == width) ? i : cut;
            }
            while (cut && ((unsigned char)p[cut] & 0xc0) == 0x80)
                cut--;
            n = cut ? cut : n;
        }
        pr_buf_reset(&line);
        pr_buf_add(&line, p, n);
        pr_svg_text(out, 12, y, pen, pr_buf_text(&line), 0);
        p += n;
        p += strspn(p, " ");
        y += 17;
    }
    pr_buf_done(&line);
    pr_buf_done(&all);
    return y;
}

/* Where what follows begins. */
static double draw_head(struct pr_buf *out, const struct pr_model *m, double y)
{
    const struct pr_svg_pen command = {SVG_INK, 15, ANCHOR_START, true, false},
                            verdict = {severity_ink(m->severity), 13, ANCHOR_START, true, false},
                            plain = {SVG_MUTED, 12, ANCHOR_END, false, false};
    struct pr_buf text = {0};
    pr_svg_text(out, 12, y + 22, &command, m->command, COMMAND_LETTERS);
    pr_svg_text(out, 12, y + 42, &verdict, m->verdict, 60);
    pr_document_where(m, &text);
    pr_svg_text(out, WIDTH - 12, y + 42, &plain, pr_buf_text(&text), 100);
    pr_buf_done(&text);
    y += 62;
    for (size_t i = 0; i < m->findings.count; i++) {
        const struct pr_model_finding *f = &m->findings.items[i];
        const struct pr_svg_pen pen = {severity_ink(f->severity), 12, ANCHOR_START, false, false};
        y = draw_sentence(out, y, &pen, f->text, FINDING_WIDTH);
    }
    return y - 8;
}

/* --- the picture -------------------------------------------------------------------------------
 */

static size_t first_charts(const struct pr_chart **list, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < pr_chart_count && count < most; i++)
        if (strcmp(pr_charts[i].place, "first") == 0)
            list[count++] = &pr_charts[i];
    return count;
}

/* One that has nothing to draw takes no more room than the words that say so. */
static double height_of(const struct pr_model *m, const struct pr_chart *c)
{
    return pr_chart_absent(m, c) ? ABSENT_HEIGHT : PLOT_HEIGHT;
}

static void draw_chart(struct pr_buf *out, const struct pr_model *m, const struct pr_chart *c,
                       const struct pr_box *box)
{
    struct pr_buf words = {0};
    struct picture *picture = calloc(1, sizeof *picture);
    out->failed |= !picture;
    if (!picture)
        return;
    take_chart(picture, m, c);
    pr_chart_text(m, c, &words);
    pr_buf_str(out, "<g><title>");
    pr_svg_escape(out, c->title, 0);
    pr_buf_str(out, ". ");
    pr_svg_escape(out, pr_buf_text(&words), 0);
    pr_buf_str(out, "</title>\n");
    pr_svg_plot(out, &picture->plot, box);
    pr_buf_str(out, "</g>\n");
    pr_buf_done(&words);
    free(picture);
}

/* One run from there on; where the next one begins. */
static double draw_run(struct pr_buf *out, const struct pr_model *m, double y)
{
    const struct pr_chart *charts[4];
    size_t count = first_charts(charts, COUNT(charts));
    int rows = rows_of(m);
    y = draw_head(out, m, y);
    double strip = y + 4, top = strip + ROW * rows + 4, bottom = top + PLOT_GAP - 6;
    struct pr_box box = {LEFT, bottom, WIDTH - LEFT - RIGHT, 0};
    for (size_t i = 0; i < count; i++)
        bottom += height_of(m, charts[i]) + (i ? PLOT_GAP : 0);
    draw_bands(out, m, top, bottom);
    const struct pr_box last = {LEFT, top, box.w, bottom - top};
    pr_svg_time(out, end_of(m), &last, top);
    if (rows)
        draw_strip(out, m, strip, rows);
    for (size_t i = 0; i < count; i++, box.y += box.h + PLOT_GAP) {
        box.h = height_of(m, charts[i]);
        draw_chart(out, m, charts[i], &box);
    }
    draw_trouble(out, m, top, bottom);
    return bottom + 28;
}

/* What a reader who sees nothing has to know. */
static void describe(struct pr_buf *out, const struct pr_model *m)
{
    const struct pr_chart *charts[4];
    size_t count = first_charts(charts, COUNT(charts));
    pr_buf_printf(out, "%s%s: %s.", out->len ? " " : "", m->command, m->verdict);
    for (size_t i = 0; i < m->findings.count; i++)
        pr_buf_printf(out, " %s", m->findings.items[i].text);
    for (size_t i = 0; i < count; i++) {
        struct pr_buf words = {0};
        pr_chart_text(m, charts[i], &words);
        pr_buf_printf(out, " %s. %s", charts[i]->title, pr_buf_text(&words));
        pr_buf_done(&words);
    }
}

int pr_svg_report(struct pr_picture *out, const struct pr_model *const *runs, size_t count,
                  struct proctor_error *err)
{
    struct pr_buf parts = {0}, words = {0};
    double y = 0;
    for (size_t i = 0; i < count; i++) {
        y = draw_run(&parts, runs[i], y);
        describe(&words, runs[i]);
    }
    out->width = WIDTH;
    out->height = ceil(y);
    pr_svg_document(&out->svg, &parts, out->width, out->height,
                    count == 1 || runs[0]->nodes.count ? runs[0]->name : "proctor: several runs",
                    pr_buf_text(&words));
    bool failed = out->svg.failed || words.failed;
    pr_buf_done(&parts);
    pr_buf_done(&words);
    return failed ? pr_error(err, ENOMEM, "out of memory") : 0;
}
