/* SPDX-License-Identifier: Apache-2.0 */
#include "report/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MOST  1e18 /* nothing that is measured is more: a file may say anything */
#define GAP_FACTOR  2.5
#define GAP_LEAST   0.1 /* seconds more than usual: less is only late */
#define LATE_FACTOR 1.5
#define LATE_LEAST  0.05
#define MOMENT      1e-9 /* what a sample weighs that stands for no time at all */

void pr_curves_init(struct pr_curves *c, double interval)
{
    double pace = isfinite(interval) && interval > 1e-6 ? interval : 1;
    *c = (struct pr_curves){.interval = pace, .usual = pace};
}

void pr_curves_done(struct pr_curves *c)
{
    for (size_t i = 0; i < c->curves; i++)
        free(c->items[i].cell);
    free(c->items);
    c->items = NULL;
    c->curves = c->cap = 0;
}

int pr_curves_new(struct pr_curves *c)
{
    if (c->curves == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 16;
        struct pr_curve *more = reallocarray(c->items, cap, sizeof *more);
        c->failed |= !more;
        if (!more)
            return -1;
        c->items = more;
        c->cap = cap;
    }
    struct pr_curve_cell *cell = calloc(CURVE_BUCKETS, sizeof *cell);
    c->failed |= !cell;
    if (!cell)
        return -1;
    c->items[c->curves] =
        (struct pr_curve){.cell = cell, .last = -1, .least = NAN, .most = NAN, .most_at = NAN};
    return (int)c->curves++;
}

/* --- buckets ---------------------------------------------------------------------------------- */

static void fold(struct pr_curve_cell *to, const struct pr_curve_cell *from, double share)
{
    if (!(from->weight > 0))
        return;
    to->min = to->weight > 0 ? fmin(to->min, from->min) : from->min;
    to->max = to->weight > 0 ? fmax(to->max, from->max) : from->max;
    to->sum += from->sum * share;
    to->weight += from->weight * share;
}

/* The bucket of equal width that a moment is in: its end belongs to it. */
static size_t index_of(const struct pr_curves *c, double at)
{
    double i = ceil(at / c->width) - 1;
    return !(i > 0) ? 0 : i >= CURVE_BUCKETS ? CURVE_BUCKETS - 1 : (size_t)i;
}

static void bounds(const struct pr_curves *c, size_t i, double *ret_begin, double *ret_end)
{
    *ret_begin = c->width > 0 ? c->width * (double)i : c->begin[i];
    *ret_end = c->width > 0 ? c->width * (double)(i + 1) : c->end[i];
}

/* A part of the run, divided among the buckets that it lies in; the last has something of it. */
static void spread(const struct pr_curves *c, struct pr_curve_cell *cells,
                   const struct pr_curve_cell *what, double from, double to)
{
    size_t i = c->width > 0 ? index_of(c, to) : c->count - 1;
    for (bool last = true;; i--, last = false) {
        double begin, end;
        bounds(c, i, &begin, &end);
        double within = fmin(to, end) - fmax(from, begin);
        double share = to > from ? fmax(0, within) / (to - from) : last;
        if (share > 0 || last)
            fold(&cells[i], what, fmax(share, MOMENT));
        if (i == 0 || begin <= from)
            return;
    }
}

static void widen(struct pr_curves *c)
{
    for (size_t k = 0; k < c->curves; k++) {
        struct pr_curve_cell *cell = c->items[k].cell;
        for (size_t i = 0; i < CURVE_BUCKETS; i++) {
            struct pr_curve_cell one = cell[i];
            cell[i] = (struct pr_curve_cell){0};
            fold(&cell[i / 2], &one, 1);
        }
    }
    c->width *= 2;
    c->count = (c->count + 1) / 2;
}

/* From a bucket for each sample to buckets of equal width. */
static void level(struct pr_curves *c, size_t most)
{
    size_t count = c->count;
    struct pr_curve_cell *old = calloc(CURVE_BUCKETS, sizeof *old);
    c->failed |= !old;
    c->width = fmax(c->at, MOMENT) / (double)most;
    for (size_t k = 0; k < c->curves && old; k++) {
        struct pr_curve_cell *cell = c->items[k].cell;
        memcpy(old, cell, CURVE_BUCKETS * sizeof *old);
        memset(cell, 0, CURVE_BUCKETS * sizeof *old);
        for (size_t i = 0; i < count; i++)
            spread(c, cell, &old[i], c->begin[i], c->end[i]);
    }
    c->count = index_of(c, c->at) + 1;
    free(old);
}

static void push(struct pr_curves *c, double begin, double end)
{
    c->begin[c->count] = begin;
    c->end[c->count++] = end;
}

/* --- samples ---------------------------------------------------------------------------------- */

/* Also notes who was late. */
static bool is_gap(struct pr_curves *c, double interval)
{
    double most = fmax(GAP_FACTOR * c->usual, c->usual + GAP_LEAST);
    bool gap = interval > most;
    if (gap && c->gap_before > 0 && interval < LATE_FACTOR * c->gap_before) {
        c->usual = interval; /* samples come at this pace now */
        c->gap_before = 0;
        return false;
    }
    if (interval > fmax(LATE_FACTOR * c->usual, c->usual + LATE_LEAST) &&
        c->late_count < CURVE_LATE)
        c->late[c->late_count++] = c->at + interval;
    c->gap_before = gap ? interval : 0;
    if (!gap)
        c->usual = fmax(c->interval, interval);
    return gap;
}

void pr_curves_sample(struct pr_curves *c, double at, double interval)
{
    interval = c->samples ? at - c->at : fmax(0, fmin(interval, at));
    if (!isfinite(at) || at < 0 || (c->samples && !(interval > 0))) /* a file that says anything */
        return;
    double usual = c->usual;
    bool gap = c->samples && is_gap(c, interval);
    if (c->width == 0 && c->count + 2 > CURVE_BUCKETS)
        level(c, CURVE_BUCKETS / 2);
    c->from = gap ? at - usual : at - interval;
    if (c->width == 0) {
        if (gap)
            push(c, at - interval, c->from);
        push(c, c->from, at);
    }
    if (gap)
        c->gap_end = c->from;
    c->at = at;
    c->samples++;
    if (c->width == 0)
        return;
    while (at > c->width * CURVE_BUCKETS)
        widen(c);
    c->count = index_of(c, at) + 1;
}

double pr_curves_since(const struct pr_curves *c, int curve)
{
    return curve < 0 || c->items[curve].last < 0 ? NAN : c->at - c->items[curve].last;
}

static void put_since(struct pr_curves *c, int curve, double from, double mean, double least,
                      double most)
{
    struct pr_curve *k = &c->items[curve];
    from = fmin(c->at, fmax(from, c->gap_end));
    double seconds = fmax(c->at - from, MOMENT);
    struct pr_curve_cell what = {least, most, mean * seconds, seconds};
    spread(c, k->cell, &what, from, c->at);
    k->last = c->at;
    k->least = k->known ? fmin(k->least, least) : least;
    if (!k->known || most > k->most) {
        k->most = most;
        k->most_at = c->at;
    }
    k->integral += what.sum;
    k->seconds += seconds;
    k->known++;
}

void pr_curves_put(struct pr_curves *c, int curve, double v, double reach)
{
    if (curve < 0 || !(fabs(v) <= VALUE_MOST) || !c->samples)
        return;
    double from = pr_curves_since(c, curve) <= reach ? c->items[curve].last : c->from;
    put_since(c, curve, from, v, v, v);
}

void pr_curves_put_cell(struct pr_curves *c, int curve, double mean, double least, double most)
{
    if (curve >= 0 && fabs(mean) <= VALUE_MOST && c->samples)
        put_since(c, curve, c->from, mean, least, most);
}

void pr_curves_shrink(struct pr_curves *c, size_t most)
{
    if (c->count <= most)
        return;
    if (c->width == 0)
        level(c, most);
    while (c->count > most)
        widen(c);
}

void pr_curves_bounds(const struct pr_curves *c, size_t i, double *ret_begin, double *ret_end)
{
    bounds(c, i, ret_begin, ret_end);
    *ret_end = fmin(*ret_end, c->at);
}

double pr_curves_span(const struct pr_curves *c, size_t i)
{
    double begin, end;
    bounds(c, i, &begin, &end);
    return fmax(0, fmin(end, c->at) - begin);
}

double pr_curves_at(const struct pr_curves *c, size_t i)
{
    return c->width > 0 ? c->width * (double)i + pr_curves_span(c, i) / 2 : c->end[i];
}

double pr_curve_mean(const struct pr_curve_cell *cell)
{
    return cell->weight > 0 ? cell->sum / cell->weight : NAN;
}
