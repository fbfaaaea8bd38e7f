/* SPDX-License-Identifier: Apache-2.0 */
/* Lines over time, what limits them, and where they were highest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/model_parts.h"
#include "report/svg.h"

#define POINTS       400 /* of a line: more could not be told apart */
#define LIMIT_SHARE  0.6 /* of a limit: below that it would only flatten the lines */
#define CONTEXT_MOST 1.6 /* times the job: no more room than that for the machine */
#define FIGURE_ROOM  16  /* beyond the lines: for the figure at the peak */
#define NAME_GAP     12  /* between two names at the ends of lines */
#define NAME_LETTERS 16

struct point {
    double at, span;
    struct pr_curve_cell cell;
};
struct frame {
    const struct pr_plot *p;
    struct pr_box box;
    double end;      /* seconds at the right */
    double up, down; /* how far the axis reaches */
    struct point points[POINTS];
    size_t count;
    bool folded; /* a point is of several samples */
    bool flat;   /* nothing was ever above 0: the axis has no other figure */
};

static double x_of(const struct frame *f, double at)
{
    return f->box.x + f->box.w * fmin(1, fmax(0, at / f->end));
}

static double y_of(const struct frame *f, double v)
{
    double share = (f->up - v) / (f->up + f->down);
    return f->box.y + f->box.h * fmin(1, fmax(0, share));
}

/* --- points ------------------------------------------------------------------------------------
 */

static void fold_in(struct point *to, const struct pr_curve_cell *from)
{
    if (!(from->weight > 0))
        return;
    bool first = !(to->cell.weight > 0);
    to->cell.min = first ? from->min : fmin(to->cell.min, from->min);
    to->cell.max = first ? from->max : fmax(to->cell.max, from->max);
    to->cell.sum += from->sum;
    to->cell.weight += from->weight;
}

static void take_points(struct frame *f, const struct pr_curve *curve)
{
    const struct pr_curves *t = f->p->time;
    bool each = t->count <= POINTS;
    f->count = each ? t->count : POINTS;
    f->folded = !each || t->width > 0;
    for (size_t i = 0; i < f->count; i++) {
        double width = f->end / POINTS;
        f->points[i] = each ? (struct point){pr_curves_at(t, i), pr_curves_span(t, i), {0}}
                            : (struct point){width * ((double)i + 0.5), width, {0}};
    }
    for (size_t i = 0; i < t->count; i++) {
        double column = pr_curves_at(t, i) / f->end * POINTS;
        size_t to = each ? i : column >= POINTS ? POINTS - 1 : (size_t)fmax(0, column);
        fold_in(&f->points[to], &curve->cell[i]);
    }
}

static bool known(const struct frame *f, size_t i)
{
    return i < f->count && f->points[i].cell.weight > 0;
}

/* --- paths -------------------------------------------------------------------------------------
 */

enum which { WHICH_MEAN, WHICH_MIN, WHICH_MAX };

static double value_of(const struct point *p, enum which which)
{
    return which == WHICH_MEAN  ? pr_curve_mean(&p->cell)
           : which == WHICH_MIN ? p->cell.min
                                : p->cell.max;
}

/* The machine may go beyond the axis: it is cut there, not bent. */
static double y_of_line(const struct frame *f, const struct pr_plot_line *l, double v)
{
    return l->context ? f->box.y + f->box.h * (f->up - v) / (f->up + f->down) : y_of(f, v);
}

static void to(struct pr_buf *out, char how, double x, double y)
{
    pr_buf_char(out, how);
    pr_svg_number(out, x);
    pr_buf_char(out, ' ');
    pr_svg_number(out, y);
}

/* Where the time begins that a point stands for. */
static double begin_of(const struct frame *f, size_t i)
{
    const struct point *p = &f->points[i];
    return x_of(f, f->folded ? p->at - p->span / 2 : p->at - p->span);
}

static void path(struct pr_buf *out, const struct frame *f, const struct pr_plot_line *l,
                 enum which which)
{
    for (size_t i = 0; i < f->count; i++) {
        if (!known(f, i))
            continue;
        double x = x_of(f, f->points[i].at),
               y = y_of_line(f, l, value_of(&f->points[i], which) * l->factor);
        bool first = i == 0 || !known(f, i - 1);
        if (l->step || (first && !known(f, i + 1))) /* alone between gaps, too */
            to(out, first ? 'M' : 'L', fmin(begin_of(f, i), x - first), y);
        to(out, first && !l->step && known(f, i + 1) ? 'M' : 'L', x, y);
    }
}

static void stroke(struct pr_buf *out, const struct frame *f, const struct pr_plot_line *l,
                   enum which which, double width, const char *more)
{
    size_t before = out->len;
    pr_buf_str(out, "<path d=\"");
    size_t begin = out->len;
    path(out, f, l, which);
    if (out->len == begin) {
        out->len = before;
        return;
    }
    pr_buf_printf(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"", l->color);
    pr_units_number(out, width);
    pr_buf_str(out, "\" stroke-linejoin=\"round\"");
    if (l->dash && which == WHICH_MEAN)
        pr_buf_printf(out, " stroke-dasharray=\"%s\"", l->dash);
    pr_buf_printf(out, "%s/>\n", more);
}

/* From least to most, for each stretch without a gap. */
static void band(struct pr_buf *out, const struct frame *f, const struct pr_plot_line *l)
{
    pr_buf_str(out, "<path d=\"");
    for (size_t i = 0, end; i < f->count; i = end + 1) {
        for (end = i; known(f, end); end++)
            to(out, end == i ? 'M' : 'L', x_of(f, f->points[end].at),
               y_of(f, f->points[end].cell.max * l->factor));
        for (size_t k = end; k > i; k--)
            to(out, 'L', x_of(f, f->points[k - 1].at),
               y_of(f, f->points[k - 1].cell.min * l->factor));
        if (end > i)
            pr_buf_char(out, 'Z');
    }
    pr_buf_printf(out, "\" fill=\"%s\" fill-opacity=\"0.22\"/>\n", l->color);
}

/* Is anything of it on the axis? */
static bool is_inside(const struct frame *f, const struct pr_plot_line *l)
{
    for (size_t i = 0; i < f->count; i++)
        if (known(f, i) && pr_curve_mean(&f->points[i].cell) * l->factor <= f->up)
            return true;
    return false;
}

static void draw_line(struct pr_buf *out, struct frame *f, const struct pr_plot_line *l)
{
    take_points(f, l->curve);
    if (l->context) {
        pr_svg_clip(out, &f->box);
        if (is_inside(f, l))
            stroke(out, f, l, WHICH_MEAN, l->width, "");
        pr_buf_str(out, "</svg>\n");
        return;
    }
    if (l->band && f->folded) {
        band(out, f, l);
        stroke(out, f, l, WHICH_MAX, 0.75, " stroke-opacity=\"0.55\"");
    }
    stroke(out, f, l, WHICH_MEAN, l->width, "");
}

/* --- one on top of another ---------------------------------------------------------------------
 */

struct base {
    double low[POINTS], weight[POINTS]; /* weight 0: the sum is not known there */
};

/* What a name adds to the mean of the sum: it need not have been there all the time. */
static void draw_layer(struct pr_buf *out, struct frame *f, const struct pr_plot_line *l,
                       struct base *b)
{
    take_points(f, l->curve);
    pr_buf_str(out, "<path d=\"");
    for (size_t i = 0, end; i < f->count; i = end + 1) {
        for (end = i; end < f->count && b->weight[end] > 0; end++)
            to(out, end == i ? 'M' : 'L', x_of(f, f->points[end].at), y_of(f, b->low[end]));
        for (size_t k = end; k > i; k--) {
            b->low[k - 1] += f->points[k - 1].cell.sum / b->weight[k - 1];
            to(out, 'L', x_of(f, f->points[k - 1].at), y_of(f, b->low[k - 1]));
        }
        if (end > i)
            pr_buf_char(out, 'Z');
    }
    pr_buf_printf(out, "\" fill=\"%s\" fill-opacity=\"0.75\"/>\n", l->color);
}

static void draw_stack(struct pr_buf *out, struct frame *f)
{
    const struct pr_plot *p = f->p;
    const struct pr_plot_line top = {
        .curve = p->total, .color = SVG_INK, .factor = 1, .width = 1, .band = true};
    struct base *b = calloc(1, sizeof *b);
    out->failed |= !b;
    take_points(f, p->total);
    for (size_t i = 0; b && i < f->count; i++)
        b->weight[i] = f->points[i].cell.weight;
    for (size_t i = 0; b && i < p->count; i++)
        draw_layer(out, f, &p->lines[i], b);
    draw_line(out, f, &top);
    free(b);
}

/* --- axis --------------------------------------------------------------------------------------
 */

static double highest(const struct pr_plot_line *l)
{
    double most = isnan(l->peak) ? l->curve->most : fmax(l->peak, l->curve->most);
    return isfinite(most) ? fabs(most * l->factor) : 0;
}

static void extent(struct frame *f)
{
    const struct pr_plot *p = f->p;
    double context = 0;
    f->up = p->total && isfinite(p->total->most) ? p->total->most : 0;
    f->down = 0;
    for (size_t i = 0; i < p->count && !p->total; i++) {
        const struct pr_plot_line *l = &p->lines[i];
        double *side = l->context ? &context : l->factor < 0 ? &f->down : &f->up;
        *side = fmax(*side, highest(l));
    }
    double data = f->up;
    for (size_t i = 0; i < p->bound_count; i++)
        if (data > LIMIT_SHARE * p->bounds[i].value)
            f->up = fmax(f->up, p->bounds[i].value);
    if (context > f->up)
        f->up = f->up > 0 ? fmin(context, f->up * CONTEXT_MOST) : context;
    f->flat = !(f->up + f->down > 0);
    if (f->flat)
        f->up = 1;
    double room = f->down > 0 ? 2 * FIGURE_ROOM : FIGURE_ROOM,
           per_point = (f->up + f->down) / (f->box.h - room);
    f->down += f->down > 0 ? FIGURE_ROOM * per_point : 0;
    f->up += FIGURE_ROOM * per_point;
}

double pr_svg_step(double size, int most)
{
    double step = 1;
    if (!(size > 0) || !isfinite(size))
        return 1;
    while (size / step > most)
        step *= 10;
    while (size / (step / 10) <= most)
        step /= 10;
    return size / (step / 5) <= most ? step / 5 : size / (step / 2) <= most ? step / 2 : step;
}

static void axis(struct pr_buf *out, const struct frame *f)
{
    const struct pr_svg_pen pen = {SVG_MUTED, 10, ANCHOR_END, false, false};
    const char *name;
    struct pr_buf text = {0};
    double all = f->up + f->down, by = pr_units_scale(fmax(f->up, f->down), f->p->unit, &name);
    int room = (int)fmin(6, fmax(2, f->box.h / 24));
    double step = pr_svg_step(all / by, room) * by;
    if (f->p->unit == UNIT_COUNT)
        step = fmax(1, step);
    double lowest = -floor(f->down / step) * step, top = f->flat ? 0 : f->up * (1 + 1e-9);
    for (int i = 0; i <= 2 * room + 2 && !f->p->absent; i++) {
        double v = lowest + i * step;
        if (!(v <= top))
            break;
        pr_svg_line(out, f->box.x, y_of(f, v), f->box.x + f->box.w, y_of(f, v),
                    fabs(v) < step / 2 ? SVG_CONTEXT : SVG_GRID, 1, NULL);
        pr_buf_reset(&text);
        pr_units_number(&text, round(fabs(v) / by * 1e6) / 1e6);
        pr_svg_text(out, f->box.x - 6, y_of(f, v) + 3.5, &pen, pr_buf_text(&text), 0);
    }
    pr_buf_reset(&text);
    pr_buf_printf(&text, "%s%s%s", f->p->title, *name && !f->p->absent ? ", " : "",
                  f->p->absent ? "" : name);
    const struct pr_svg_pen head = {SVG_INK, 11, ANCHOR_START, true, true};
    pr_svg_text(out, f->box.x, f->box.y - 4, &head, pr_buf_text(&text), 0);
    pr_buf_done(&text);
}

/* --- marks -------------------------------------------------------------------------------------
 */

/* The highest of those that are drawn on one side; NULL for none. */
static const struct pr_plot_line *peak_of(const struct pr_plot *p, bool down)
{
    const struct pr_plot_line *best = NULL;
    for (size_t i = 0; i < p->count; i++) {
        const struct pr_plot_line *l = &p->lines[i];
        if (!isnan(l->peak) && l->peak > 0 && (l->factor < 0) == down &&
            (!best || highest(l) > highest(best)))
            best = l;
    }
    return best;
}

static void draw_bounds(struct pr_buf *out, const struct frame *f)
{
    const struct pr_plot_line *peak = peak_of(f->p, false);
    /* Not where the peak's figure stands. */
    bool right = peak && (isnan(peak->at) || peak->at < f->end / 2);
    const struct pr_svg_pen above = {SVG_MUTED, 10, ANCHOR_END, false, false};
    for (size_t i = 0; i < f->p->bound_count; i++) {
        const struct pr_plot_bound *b = &f->p->bounds[i];
        const struct pr_svg_pen pen = {b->limit ? SVG_BADTEXT : SVG_MUTED, 10,
                                       right ? ANCHOR_END : ANCHOR_START, false, true};
        double y = y_of(f, b->value);
        if (b->value > f->up && b->always)
            pr_svg_text(out, f->box.x + f->box.w, f->box.y - 4, &above, b->text, 60);
        if (b->value > f->up)
            continue;
        pr_svg_line(out, f->box.x, y, f->box.x + f->box.w, y, b->limit ? SVG_BAD : SVG_CONTEXT, 1.5,
                    b->limit ? "6 4" : "1 3");
        pr_svg_text(out, right ? f->box.x + f->box.w - 6 : f->box.x + 6, y - 4, &pen, b->text, 40);
    }
}

/* No curve has it: in words, at the edge that it is nearest to. */
static void draw_unsampled(struct pr_buf *out, const struct frame *f, const struct pr_plot_line *l)
{
    const struct pr_svg_pen pen = {l->ink, 10, ANCHOR_START, true, true};
    struct pr_buf text = {0};
    pr_buf_str(&text, "peak ");
    pr_model_human(&text, l->peak, f->p->unit);
    pr_buf_str(&text, ", " MODEL_UNSAMPLED);
    pr_svg_text(out, f->box.x + 6, l->factor < 0 ? f->box.y + f->box.h - 4 : f->box.y + 10, &pen,
                pr_buf_text(&text), 0);
    pr_buf_done(&text);
}

static void draw_peaks(struct pr_buf *out, const struct frame *f)
{
    struct pr_buf text = {0};
    for (int down = 0; down < 2; down++) {
        const struct pr_plot_line *l = peak_of(f->p, down);
        if (l && isnan(l->at))
            draw_unsampled(out, f, l);
        if (!l || isnan(l->at))
            continue;
        double x = x_of(f, l->at), way = down ? 1 : -1, y = y_of(f, l->peak * l->factor) + way * 2;
        bool left = x > f->box.x + f->box.w - 70;
        const struct pr_svg_pen pen = {l->ink, 10, left ? ANCHOR_END : ANCHOR_START, true, true};
        pr_buf_str(out, "<path d=\"");
        to(out, 'M', x, y);
        to(out, 'L', x - 4, y + way * 6);
        to(out, 'L', x + 4, y + way * 6);
        pr_buf_printf(out, "Z\" fill=\"%s\"/>\n", l->ink);
        pr_buf_reset(&text);
        pr_model_human(&text, l->peak, f->p->unit);
        pr_svg_text(out, x + (left ? -7 : 7), y + way * 5 + 3.5, &pen, pr_buf_text(&text), 0);
    }
    pr_buf_done(&text);
}

struct name {
    const struct pr_plot_line *line;
    double y;
};

static int higher_first(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    return (x->y > y->y) - (x->y < y->y);
}

/* Where a line ends; false where nothing is known of it. */
static bool end_of(struct frame *f, const struct pr_plot_line *l, double *ret_y)
{
    take_points(f, l->curve);
    size_t i = f->count;
    while (i > 0 && !known(f, i - 1))
        i--;
    if (l->context && !is_inside(f, l))
        return false;
    if (i > 0)
        *ret_y = y_of(f, pr_curve_mean(&f->points[i - 1].cell) * l->factor);
    return i > 0;
}

/* At the ends of lines, none on another. */
static void draw_names(struct pr_buf *out, struct frame *f)
{
    struct name names[PLOT_LINES];
    size_t count = 0, room = (size_t)(f->box.h / NAME_GAP);
    for (size_t i = 0; i < f->p->count && count < room; i++) {
        const struct pr_plot_line *l = &f->p->lines[i];
        if (l->label && end_of(f, l, &names[count].y))
            names[count++].line = l;
    }
    if (f->p->total) /* in the order in which they lie on one another */
        for (size_t i = 0; i < count; i++)
            names[i].y = f->box.y + f->box.h - (double)i * NAME_GAP;
    qsort(names, count, sizeof *names, higher_first);
    double least = f->box.y + 4, most = f->box.y + f->box.h;
    for (size_t i = 0; i < count; i++, least = names[i - 1].y + NAME_GAP)
        names[i].y = fmax(names[i].y, least);
    for (size_t i = count; i > 0; i--, most = names[i].y - NAME_GAP)
        names[i - 1].y = fmin(names[i - 1].y, most);
    for (size_t i = 0; i < count; i++) {
        const struct pr_svg_pen pen = {names[i].line->ink, 10, ANCHOR_START, false, false};
        pr_svg_text(out, f->box.x + f->box.w + 6, names[i].y + 3.5, &pen, names[i].line->label,
                    NAME_LETTERS);
    }
}

/* A late sample is a tick. */
static void draw_late(struct pr_buf *out, const struct frame *f)
{
    const struct pr_curves *t = f->p->time;
    double bottom = f->box.y + f->box.h;
    for (size_t i = 0; i < t->late_count; i++)
        pr_svg_line(out, x_of(f, t->late[i]), bottom - 5, x_of(f, t->late[i]), bottom, SVG_MUTED, 1,
                    NULL);
}

void pr_svg_plot(struct pr_buf *out, const struct pr_plot *p, const struct pr_box *box)
{
    struct frame *f = calloc(1, sizeof *f);
    out->failed |= !f;
    if (!f)
        return;
    f->p = p;
    f->box = *box;
    f->end = fmax(fmax(isnan(p->duration) ? 0 : p->duration, p->time->at), 1e-6);
    extent(f);
    axis(out, f);
    if (p->absent) {
        const struct pr_svg_pen pen = {SVG_MUTED, 11, ANCHOR_MIDDLE, false, false};
        pr_svg_text(out, box->x + box->w / 2, box->y + box->h / 2 + 4, &pen, p->absent, 160);
    } else {
        draw_late(out, f);
        if (p->total)
            draw_stack(out, f);
        for (size_t i = p->total ? p->count : 0; i < p->count; i++)
            draw_line(out, f, &p->lines[i]);
        draw_bounds(out, f);
        if (!p->total)
            draw_peaks(out, f);
        draw_names(out, f);
    }
    free(f);
}

void pr_svg_time(struct pr_buf *out, double duration, const struct pr_box *box, double top)
{
    static const double steps[] = {
        1e-4, 2e-4, 5e-4,  1e-3,  2e-3,  5e-3,  0.01,   0.02,   0.05,   0.1,     0.2,    0.5,
        1,    2,    5,     10,    15,    30,    60,     120,    300,    600,     900,    1800,
        3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 1728000, 4320000};
    const struct pr_svg_pen pen = {SVG_MUTED, 10, ANCHOR_MIDDLE, false, false};
    struct pr_buf text = {0};
    double most = box->w / 90, step = steps[sizeof steps / sizeof *steps - 1];
    for (size_t i = sizeof steps / sizeof *steps; i > 0 && duration / steps[i - 1] <= most; i--)
        step = steps[i - 1];
    while (duration / step > most)
        step *= 2;
    for (double t = 0; t <= duration; t += step) {
        double x = box->x + box->w * t / duration;
        pr_svg_line(out, x, top, x, box->y + box->h, SVG_GRID, 1, NULL);
        pr_buf_reset(&text);
        pr_units_tick(&text, t, step);
        pr_svg_text(out, x, box->y + box->h + 14, &pen, pr_buf_text(&text), 0);
    }
    pr_buf_done(&text);
}
