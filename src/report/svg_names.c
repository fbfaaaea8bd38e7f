/* SPDX-License-Identifier: Apache-2.0 */
/* What each name used: six pictures. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/by_name.h"
#include "report/model_parts.h"
#include "report/svg.h"

#define COUNT(list) (sizeof list / sizeof *list)
#define WIDTH       960
#define HEIGHT      330

const struct pr_name_plot pr_name_plots[NAME_PLOTS] = {
    {"aggregate_uss", "Memory of its own (USS) by name",
     "What processes of one name had together, without pages that they share with anybody."},
    {"rss_vs_uss", "RSS against USS by name",
     "Dashed RSS, which counts shared pages once for each process; solid USS."},
    {"total_footprint", "Total footprint",
     "USS of all of them, one on top of another, with its peak and the memory of the machine."},
    {"aggregate_cpu", "CPU by name", "Cores that processes of one name used together."},
    {"cpu_time", "CPU time by name, summed up",
     "What they used so far, that of processes that have ended included."},
    {"instance_count", "Processes by name", "How many were alive."},
};
enum { PLOT_USS, PLOT_RSS_USS, PLOT_TOTAL, PLOT_CPU, PLOT_CPU_TIME, PLOT_COUNT };

/* Which curves, and in which unit; the last of two is drawn on top. */
static const struct {
    enum pr_unit unit;
    enum pr_name_curve curves[2];
    int count;
} shapes[NAME_PLOTS] = {
    [PLOT_USS] = {UNIT_BYTES, {NAME_USS}, 1},
    [PLOT_RSS_USS] = {UNIT_BYTES, {NAME_RSS, NAME_USS}, 2},
    [PLOT_TOTAL] = {UNIT_BYTES, {NAME_USS}, 1},
    [PLOT_CPU] = {UNIT_CORES, {NAME_CPU}, 1},
    [PLOT_CPU_TIME] = {UNIT_SECONDS, {NAME_CPU_TIME}, 1},
    [PLOT_COUNT] = {UNIT_COUNT, {NAME_INSTANCES}, 1},
};

static const char *color_of(const struct pr_by_name *n, size_t i)
{
    static const char *const colors[] = {"#0072b2", "#8a5c00", "#00805d", "#a34c80",
                                         "#6a51a3", "#8b4a2b", "#4b6a00", "#3c4650"};
    bool other = n->count > 1 && i + 1 == n->count && strcmp(n->items[i].name, "other") == 0;
    return other ? "#6f7780" : colors[i % COUNT(colors)];
}

static bool is_known(const struct pr_by_name *n, enum pr_name_curve curve)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i].curve[curve] >= 0 && n->time.items[n->items[i].curve[curve]].known)
            return true;
    return false;
}

const char *pr_svg_name_absent(const struct pr_by_name *n, int plot)
{
    int last = shapes[plot].count - 1;
    if (!n->count)
        return "no process was sampled";
    if (plot == PLOT_TOTAL && isnan(n->peak))
        return n->absent;
    if (is_known(n, shapes[plot].curves[0]) || is_known(n, shapes[plot].curves[last]))
        return NULL;
    return shapes[plot].curves[0] == NAME_USS ? n->absent : "it was not measured";
}

static void add_line(struct pr_plot *p, const struct pr_by_name *n, size_t i, int plot,
                     enum pr_name_curve which)
{
    int curve = n->items[i].curve[which], uss = n->items[i].curve[NAME_USS];
    bool beside = plot == PLOT_RSS_USS && which == NAME_RSS; /* the name stands at the other line */
    if (curve < 0 || !n->time.items[curve].known || p->count == PLOT_LINES)
        return;
    bool named = !beside || uss < 0 || !n->time.items[uss].known;
    const struct pr_curve *c = &n->time.items[curve];
    p->lines[p->count++] = (struct pr_plot_line){.curve = c,
                                                 .label = named ? n->items[i].name : NULL,
                                                 .color = color_of(n, i),
                                                 .ink = color_of(n, i),
                                                 .dash = beside   ? "5 3"
                                                         : i >= 8 ? "2 2"
                                                                  : NULL,
                                                 .width = beside ? 1 : 1.75,
                                                 .factor = 1,
                                                 .peak = which == NAME_CPU_TIME ? NAN : c->most,
                                                 .at = c->most_at,
                                                 .band = plot == PLOT_USS || plot == PLOT_CPU,
                                                 .step = plot == PLOT_COUNT};
}

static void add_lines(struct pr_plot *p, const struct pr_by_name *n, int plot)
{
    for (size_t i = 0; i < n->count; i++)
        for (int k = 0; k < shapes[plot].count; k++)
            add_line(p, n, i, plot, shapes[plot].curves[k]);
}

static void say_total(const struct pr_by_name *n, struct pr_buf *peak, struct pr_buf *memory)
{
    pr_buf_str(peak, "peak ");
    pr_model_human(peak, n->peak, UNIT_BYTES);
    pr_buf_str(peak, " at ");
    pr_model_human(peak, n->at, UNIT_SECONDS);
    pr_buf_str(memory, "system memory ");
    pr_model_human(memory, n->memory, UNIT_BYTES);
}

static void describe(struct pr_buf *out, const struct pr_by_name *n, int plot, struct pr_buf *peak)
{
    pr_buf_str(out, pr_name_plots[plot].note);
    if (plot == PLOT_TOTAL)
        pr_buf_printf(out, " Together: %s.", pr_buf_text(peak));
    for (size_t i = 0; i < n->count; i++)
        for (int k = 0; k < shapes[plot].count; k++) {
            int curve = n->items[i].curve[shapes[plot].curves[k]];
            if (curve < 0 || !n->time.items[curve].known)
                continue;
            pr_buf_printf(out, " %s%s: most ", n->items[i].name,
                          shapes[plot].count == 2 ? (k ? " USS" : " RSS") : "");
            pr_model_human(out, n->time.items[curve].most, shapes[plot].unit);
            pr_buf_char(out, '.');
        }
}

int pr_svg_name_plot(struct pr_picture *out, const struct pr_by_name *n, int plot,
                     struct proctor_error *err)
{
    struct pr_plot *p = calloc(1, sizeof *p);
    struct pr_buf parts = {0}, words = {0}, peak = {0}, memory = {0};
    const struct pr_box box = {56, 34, WIDTH - 56 - 120, HEIGHT - 34 - 30};
    if (!p)
        return pr_error(err, ENOMEM, "out of memory");
    *p = (struct pr_plot){.title = pr_name_plots[plot].title,
                          .unit = shapes[plot].unit,
                          .time = &n->time,
                          .duration = n->duration,
                          .total = plot == PLOT_TOTAL ? &n->time.items[n->total] : NULL};
    add_lines(p, n, plot);
    if (p->total) {
        say_total(n, &peak, &memory);
        p->bounds[p->bound_count++] =
            (struct pr_plot_bound){n->peak, pr_buf_text(&peak), true, true};
        if (n->memory > 0)
            p->bounds[p->bound_count++] =
                (struct pr_plot_bound){n->memory, pr_buf_text(&memory), false, true};
    }
    double end = fmax(fmax(isnan(n->duration) ? 0 : n->duration, n->time.at), 1e-6);
    pr_svg_time(&parts, end, &box, box.y);
    pr_svg_plot(&parts, p, &box);
    describe(&words, n, plot, &peak);
    out->width = WIDTH;
    out->height = HEIGHT;
    pr_svg_document(&out->svg, &parts, WIDTH, HEIGHT, p->title, pr_buf_text(&words));
    bool failed = out->svg.failed || words.failed;
    struct pr_buf *const done[] = {&parts, &words, &peak, &memory};
    for (size_t i = 0; i < COUNT(done); i++)
        pr_buf_done(done[i]);
    free(p);
    return failed ? pr_error(err, ENOMEM, "out of memory") : 0;
}
