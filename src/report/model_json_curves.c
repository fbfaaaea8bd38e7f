/* SPDX-License-Identifier: Apache-2.0 */
/* Series, tiles and charts as doc/report-model.md has them. */
#include <math.h>
#include <string.h>

#include "report/model_json.h"

#define COUNT(list) (sizeof list / sizeof *list)
#define TILES_MOST  6

static const char *const families[] = {"cpu",     "memory", "gpu",  "disk",
                                       "network", "energy", "other"};
static const char *const stats[] = {"mean", "max", "min", "total"};

const char *pr_model_unit(enum pr_unit unit)
{
    return unit == UNIT_COUNT              ? "count"
           : unit == UNIT_BYTES_PER_SECOND ? "bytes/s"
                                           : pr_units_name(unit);
}

/* Five significant digits. */
static double five(double v)
{
    double scale = 1, size = fabs(v);
    if (!isfinite(v) || v == 0)
        return v;
    for (; size / scale >= 1e5; scale *= 10) {
    }
    if (scale > 1)
        return round(v / scale) * scale;
    for (; size * scale < 1e4 && scale < 1e12; scale *= 10) {
    }
    return round(v * scale) / scale;
}

void pr_put_text(struct pr_json *j, const char *key, const char *value)
{
    pr_json_key(j, key);
    pr_json_string(j, value);
}

void pr_put_number(struct pr_json *j, const char *key, double value)
{
    pr_json_key(j, key);
    pr_json_number(j, value);
}

void pr_put_figures(struct pr_json *j, const char *key, const struct pr_figures *f)
{
    pr_json_key(j, key);
    pr_json_open(j, '{');
    pr_put_number(j, "min", f->min);
    pr_put_number(j, "mean", f->mean);
    pr_put_number(j, "max", f->max);
    pr_put_number(j, "at", f->at);
    pr_put_number(j, "total", f->total);
    pr_json_close(j, '}');
}

static void bound(struct pr_json *j, const char *key, const struct pr_bound *b)
{
    pr_json_key(j, key);
    if (!b || !b->text) {
        pr_json_null(j);
        return;
    }
    pr_json_open(j, '{');
    pr_put_number(j, "value", b->value);
    pr_put_text(j, "text", b->text);
    pr_json_close(j, '}');
}

/* --- series ------------------------------------------------------------------------------------
 */

enum part { PART_MEAN, PART_MIN, PART_MAX };

static void curve(struct pr_json *j, const struct pr_model *m, int curve, enum part part)
{
    static const char *const names[] = {"mean", "min", "max"};
    const struct pr_curve_cell *cell = m->curves.items[curve].cell;
    pr_json_key(j, names[part]);
    pr_json_open(j, '[');
    for (size_t i = 0; i < m->curves.count; i++, cell++)
        pr_json_number(j, !(cell->weight > 0) ? NAN
                          : part == PART_MEAN ? five(pr_curve_mean(cell))
                          : part == PART_MIN  ? five(cell->min)
                                              : five(cell->max));
    pr_json_close(j, ']');
}

static void time_base(struct pr_json *j, const struct pr_model *m)
{
    const struct pr_curves *c = &m->curves;
    pr_json_key(j, "time");
    pr_json_open(j, '{');
    pr_json_key(j, "at");
    pr_json_open(j, '[');
    for (size_t i = 0; i < c->count; i++)
        pr_json_number(j, pr_curves_at(c, i));
    pr_json_close(j, ']');
    pr_json_key(j, "span");
    pr_json_open(j, '[');
    for (size_t i = 0; i < c->count; i++)
        pr_json_number(j, five(pr_curves_span(c, i)));
    pr_json_close(j, ']');
    pr_json_key(j, "samples");
    pr_json_int(j, (int64_t)c->samples);
    pr_json_close(j, '}');
    pr_json_key(j, "late");
    pr_json_open(j, '[');
    for (size_t i = 0; i < c->late_count; i++)
        pr_json_number(j, c->late[i]);
    pr_json_close(j, ']');
}

static void series(struct pr_json *j, const struct pr_model *m)
{
    pr_json_key(j, "series");
    pr_json_open(j, '{');
    for (size_t i = 0; i < m->series.count; i++) {
        const struct pr_model_series *s = &m->series.items[i];
        pr_json_key(j, s->key);
        pr_json_open(j, '{');
        pr_put_text(j, "label", s->label);
        pr_put_text(j, "unit", pr_model_unit(s->unit));
        pr_put_text(j, "family", families[s->family]);
        bound(j, "limit", &s->limit);
        bound(j, "host", &s->host);
        pr_put_text(j, "mark", s->mark);
        pr_put_text(j, "note", s->note);
        curve(j, m, s->curve, PART_MEAN);
        if (m->curves.width > 0) {
            curve(j, m, s->curve, PART_MIN);
            curve(j, m, s->curve, PART_MAX);
        }
        pr_put_figures(j, "stats", &s->stats);
        pr_json_close(j, '}');
    }
    pr_json_close(j, '}');
}

/* --- tiles and charts ---------------------------------------------------------------------------
 */

static void keys(struct pr_json *j, const struct pr_model *m, const char *key, enum pr_group group)
{
    pr_json_key(j, key);
    pr_json_open(j, '[');
    for (size_t i = 0; i < m->series.count; i++)
        if (m->series.items[i].group == group)
            pr_json_string(j, m->series.items[i].key);
    pr_json_close(j, ']');
}

/* What stands behind the label of a figure; what fewer nodes had is for where there is room. */
static const char *said_of(const struct pr_model_series *s, enum pr_stat_kind stat)
{
    bool peak = stat == FIGURE_MAX;
    if (!s->mark || (!s->once && !peak))
        return NULL;
    if (s->once)
        return peak && isnan(s->stats.at) ? MODEL_UNSAMPLED : s->mark;
    return strcmp(s->mark, MODEL_ESTIMATED) == 0                        ? SAID_ESTIMATED
           : strncmp(s->mark, MODEL_BOUND, sizeof MODEL_BOUND - 1) == 0 ? "at most"
                                                                        : NULL;
}

void pr_put_value(struct pr_json *j, const struct pr_model *m, const struct pr_value_of *v)
{
    keys(j, m, "series", v->group);
    pr_put_text(j, "stat", stats[v->stat]);
    struct pr_buf label = {0};
    const struct pr_model_series *s = pr_model_find(m, v->group);
    pr_buf_str(&label, v->label);
    const char *mark = s && *v->label ? said_of(s, v->stat) : NULL;
    if (mark)
        pr_buf_printf(&label, " (%s)", mark);
    pr_put_text(j, "label", pr_buf_text(&label));
    pr_buf_done(&label);
    pr_put_text(j, "unit", pr_model_unit(v->unit));
}

static void values(struct pr_json *j, const struct pr_model *m, const char *key,
                   const struct pr_value_of *list, size_t most)
{
    pr_json_key(j, key);
    pr_json_open(j, '[');
    for (size_t i = 0; i < most && list[i].label; i++) {
        if (!pr_model_find(m, list[i].group))
            continue;
        pr_json_open(j, '{');
        pr_put_value(j, m, &list[i]);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
}

/* The group whose shape says more: read or written, whatever was more. */
static enum pr_group telling(const struct pr_model *m, const struct pr_tile *t)
{
    const struct pr_model_series *a = pr_model_find(m, t->values[0].group),
                                 *b = t->values[1].label ? pr_model_find(m, t->values[1].group)
                                                         : NULL;
    return a && b && b->stats.total > a->stats.total ? b->group : t->values[0].group;
}

static void tile(struct pr_json *j, const struct pr_model *m, const struct pr_tile *t)
{
    const struct pr_model_series *s = pr_model_find(m, t->values[0].group);
    pr_json_open(j, '{');
    pr_put_text(j, "id", t->id);
    pr_put_text(j, "title", t->title);
    pr_put_text(j, "family", families[t->family]);
    values(j, m, "values", t->values, COUNT(t->values));
    values(j, m, "also", t->also, COUNT(t->also));
    bound(j, "limit", t->limit && s ? &s->limit : NULL);
    keys(j, m, "spark", telling(m, t));
    pr_put_text(j, "absent", s ? NULL : t->absent ? t->absent : t->otherwise);
    pr_json_close(j, '}');
}

/* Those of which something is known, or that always matter; a job without a GPU is told so where
 * there is room. */
static void tiles(struct pr_json *j, const struct pr_model *m)
{
    size_t known = 0, shown = 0;
    for (size_t i = 0; i < pr_tile_count; i++)
        known += pr_tiles[i].absent || pr_model_find(m, pr_tiles[i].values[0].group);
    pr_json_key(j, "tiles");
    pr_json_open(j, '[');
    for (size_t i = 0; i < pr_tile_count && shown < TILES_MOST; i++) {
        const struct pr_tile *t = &pr_tiles[i];
        bool has = t->absent || pr_model_find(m, t->values[0].group);
        if (!has && (known >= TILES_MOST || !t->otherwise))
            continue;
        known += !has;
        tile(j, m, t);
        shown++;
    }
    pr_json_close(j, ']');
}

static void chart(struct pr_json *j, const struct pr_model *m, const struct pr_chart *c)
{
    struct pr_buf words = {0};
    pr_json_open(j, '{');
    pr_put_text(j, "id", c->id);
    pr_put_text(j, "title", c->title);
    pr_put_text(j, "unit", pr_model_unit(c->unit));
    pr_put_text(j, "place", c->place);
    pr_json_key(j, "lines");
    pr_json_open(j, '[');
    for (size_t i = 0; i < COUNT(c->lines) && c->lines[i].role; i++)
        for (size_t k = 0; k < m->series.count; k++) {
            const struct pr_model_series *s = &m->series.items[k];
            bool share = strcmp(c->lines[i].role, "share") == 0;
            if (s->group != c->lines[i].group || (share && !s->limit.text))
                continue;
            pr_json_open(j, '{');
            pr_put_text(j, "series", s->key);
            pr_put_text(j, "role", c->lines[i].role);
            pr_json_close(j, '}');
        }
    pr_json_close(j, ']');
    pr_put_text(j, "absent", pr_chart_absent(m, c));
    pr_chart_text(m, c, &words);
    pr_put_text(j, "text", pr_buf_text(&words));
    pr_put_text(j, "note", c->note);
    pr_json_close(j, '}');
    pr_buf_done(&words);
}

static void charts(struct pr_json *j, const struct pr_model *m)
{
    pr_json_key(j, "charts");
    pr_json_open(j, '[');
    for (size_t i = 0; i < pr_chart_count; i++) {
        const char *absent = pr_chart_absent(m, &pr_charts[i]);
        if (!absent || *absent)
            chart(j, m, &pr_charts[i]);
    }
    pr_json_close(j, ']');
}

void pr_put_curves(struct pr_json *j, const struct pr_model *m)
{
    time_base(j, m);
    series(j, m);
    tiles(j, m);
    charts(j, m);
}
