/* SPDX-License-Identifier: Apache-2.0 */
/* What the summary has already: statistics, phases, names, devices. SQLite reads its JSON. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/nodes.h"

#define PHASES_MOST 1000
#define DEVICE_MOST 800 /* figures of devices in phases: more would make a page large */
#define ROUNDING    1e-6

static struct pr_query *ask(const struct pr_model *m, const struct pr_stored *r, const char *sql)
{
    struct pr_query *q = NULL;
    if (pr_query_new(&q, r->db, sql) < 0)
        return NULL;
    pr_query_text(q, 1, m->summary.data);
    return q;
}

static bool step(struct pr_query *q)
{
    return q && pr_query_step(q) == 1;
}

/* --- statistics ------------------------------------------------------------------------------- */

#define FIGURES                                                                                    \
    "json_extract(m.value, '$.min'), json_extract(m.value, '$.mean'),"                             \
    " json_extract(m.value, '$.peak'), json_extract(m.value, '$.at'),"                             \
    " json_extract(m.value, '$.total')"

/* A peak that the account has, and no sample, has no time. */
static void take_figures(struct pr_figures *f, struct pr_query *q, int column)
{
    enum { MIN, MEAN, PEAK, AT };
    double *const fields[] = {&f->min, &f->mean, &f->max, &f->at};
    bool peak = !isnan(pr_query_get_number(q, column + PEAK));
    for (int i = MIN; i <= AT; i++) {
        double v = pr_query_get_number(q, column + i);
        if (!isnan(v) || (i == AT && peak))
            *fields[i] = v;
    }
}

/* Of a metric, to every series that it says something of: its own, or the rate that is made of it.
 */
static void take_metric(const struct pr_model *m, struct pr_figures *all, size_t stride,
                        struct pr_query *q, int column, double seconds)
{
    const char *key = pr_query_get_text(q, column);
    for (size_t i = 0; key && i < m->series.count; i++) {
        const struct pr_model_series *s = &m->series.items[i];
        struct pr_figures *f = (struct pr_figures *)((char *)all + i * stride);
        double total = pr_query_get_number(q, column + 5);
        if (s->metric && strcmp(s->metric, key) == 0)
            take_figures(f, q, column + 1);
        if (!s->counter || strcmp(s->counter, key) != 0 || isnan(total))
            continue;
        f->total = total;
        if (seconds > 0 && (!s->metric || isnan(f->mean)))
            f->mean = total / seconds;
    }
}

static const struct pr_figures unknown = {NAN, NAN, NAN, NAN, NAN};

/* A mean by the account has in it what was used beside the samples that least and most are of. What
 * was never more than 0 was at no time the most. */
void pr_figures_agree(struct pr_figures *f)
{
    if (!(f->max > 0))
        f->at = NAN;
    if (f->min > f->mean * (1 + ROUNDING))
        f->min = NAN;
    if (f->max < f->mean * (1 - ROUNDING)) {
        f->max = f->mean;
        f->at = NAN;
    }
}

bool pr_series_has_total(const struct pr_model_series *s)
{
    return s->unit == UNIT_WATTS || s->unit == UNIT_BYTES_PER_SECOND || s->unit == UNIT_CORES;
}

void pr_model_stats(struct pr_model *m, const struct pr_stored *r)
{
    for (size_t i = 0; i < m->series.count; i++) {
        struct pr_model_series *s = &m->series.items[i];
        const struct pr_curve *c = &m->curves.items[s->curve];
        s->stats =
            (struct pr_figures){c->least, c->integral / c->seconds, c->most, c->most_at, NAN};
        if (pr_series_has_total(s))
            s->stats.total = c->integral;
    }
    double duration = pr_model_number(m, r, "$.run.duration");
    struct pr_query *q = ask(m, r, "SELECT m.key, " FIGURES " FROM json_each(?1, '$.metrics') m");
    while (m->series.count && step(q))
        take_metric(m, &m->series.items[0].stats, sizeof *m->series.items, q, 0, duration);
    pr_query_free(q);
    double mark = pr_model_mark(m, r);
    for (size_t i = 0; i < m->series.count; i++) {
        struct pr_model_series *s = &m->series.items[i];
        const struct pr_curve *c = &m->curves.items[s->curve];
        if (c->most > s->stats.max || isnan(s->stats.max)) { /* a file whose parts do not agree */
            s->stats.max = c->most;
            s->stats.at = c->most_at;
        }
        if (s->once) /* neither is of the run */
            s->stats.min = s->stats.mean = NAN;
        if (s->metric && strcmp(s->metric, "mem.rss") == 0 && !isnan(mark) &&
            !(s->stats.max >= mark)) {
            s->stats.max = mark;
            s->stats.at = NAN;
        }
        pr_figures_agree(&s->stats);
    }
}

/* --- phases ----------------------------------------------------------------------------------- */

/* The phase around it: the last one before it that is one level up and not over yet. */
static int parent_of(const struct pr_model *m, double begin, int level)
{
    for (size_t i = m->phases.count; i-- > 0;) {
        const struct pr_model_phase *p = &m->phases.items[i];
        if (p->count == 1 && p->level == level - 1 && p->begin <= begin && begin <= p->end)
            return (int)i;
    }
    return -1;
}

static void add_phase(struct pr_model *m, struct pr_query *q)
{
    enum { KEY, NAME, START, SECONDS, DEPTH, INSTANCES, EXACT };
    const char *name = pr_query_get_text(q, NAME);
    double begin = pr_value_known(pr_query_get_number(q, START)),
           seconds = fmax(0, pr_value_known(pr_query_get_number(q, SECONDS)));
    int level = (int)pr_query_get_int(q, DEPTH);
    level = level < 0 ? 0 : level > 64 ? 64 : level;
    int parent = parent_of(m, begin, level);
    struct pr_model_phase *p = LIST_ADD(m, &m->phases);
    if (!p)
        return;
    *p = (struct pr_model_phase){.name = pr_model_text(m, "%s", name ? name : ""),
                                 .begin = begin,
                                 .end = begin + seconds,
                                 .level = level,
                                 .parent = parent,
                                 .count =
                                     (int)fmin(INT_MAX, fmax(1, pr_query_get_number(q, INSTANCES))),
                                 .exact = pr_query_get_int(q, EXACT) != 0,
                                 .stats = calloc(m->series.count + 1, sizeof *p->stats)};
    m->failed |= !p->stats;
    for (size_t i = 0; p->stats && i < m->series.count; i++)
        p->stats[i] = unknown;
}

static void phases(struct pr_model *m, const struct pr_stored *r)
{
    long place[PHASES_MOST + 1]; /* in the summary: where it is in the list */
    for (size_t i = 0; i <= PHASES_MOST; i++)
        place[i] = -1;
    struct pr_query *q =
        ask(m, r,
            "SELECT key, json_extract(value, '$.name'), json_extract(value, '$.start'),"
            " json_extract(value, '$.seconds'), json_extract(value, '$.depth'),"
            " json_extract(value, '$.instances'), json_extract(value, '$.exact')"
            " FROM json_each(?1, '$.phases') ORDER BY 3, 5");
    while (m->phases.count < PHASES_MOST && step(q)) {
        int64_t key = pr_query_get_int(q, 0);
        add_phase(m, q);
        if (key >= 0 && key < PHASES_MOST)
            place[key] = (long)m->phases.count - 1;
    }
    pr_query_free(q);
    q = ask(m, r,
            "SELECT p.key, m.key, " FIGURES " FROM json_each(?1, '$.phases') p,"
            " json_each(p.value, '$.metrics') m");
    while (m->phases.count && step(q)) {
        int64_t key = pr_query_get_int(q, 0);
        struct pr_model_phase *p =
            key >= 0 && key < PHASES_MOST && place[key] >= 0 ? &m->phases.items[place[key]] : NULL;
        if (p && p->stats)
            take_metric(m, p->stats, sizeof *p->stats, q, 1, p->end - p->begin);
    }
    pr_query_free(q);
}

struct pr_figures pr_model_between(const struct pr_model *m, const struct pr_model_series *s,
                                   double begin, double end)
{
    struct pr_figures f = unknown;
    double sum = 0, weight = 0;
    for (size_t i = 0; i < m->curves.count; i++) {
        const struct pr_curve_cell *cell = &m->curves.items[s->curve].cell[i];
        double at = pr_curves_at(&m->curves, i);
        if (!(cell->weight > 0) || !(at > begin || begin <= 0) || !(at <= end))
            continue;
        f.at = cell->max <= f.max ? f.at : at;
        f.max = fmax(f.max, cell->max);
        f.min = fmin(f.min, cell->min);
        sum += cell->sum;
        weight += cell->weight;
    }
    f.mean = weight > 0 ? sum / weight : NAN;
    f.total = pr_series_has_total(s) && weight > 0 ? sum : NAN;
    return f;
}

/* The sample that a phase begins or ends with is taken a moment after it was asked for. */
static double sample_of(const struct pr_model *m, double t)
{
    for (size_t i = 0; !(m->curves.width > 0) && i < m->curves.count; i++) {
        double at = pr_curves_at(&m->curves, i);
        if (at >= t)
            return at - t < m->curves.usual / 2 ? at : t;
    }
    return t;
}

/* The summary has phases of the job, and devices of the run. */
static void devices_in_phases(struct pr_model *m)
{
    size_t series = 0;
    for (size_t i = 0; i < m->series.count; i++)
        series += m->series.items[i].device != NULL;
    for (size_t k = 0; k < m->phases.count && series * m->phases.count <= DEVICE_MOST; k++) {
        struct pr_model_phase *p = &m->phases.items[k];
        for (size_t i = 0; i < m->series.count && p->stats && p->count == 1; i++)
            if (m->series.items[i].device)
                p->stats[i] = pr_model_between(m, &m->series.items[i], sample_of(m, p->begin),
                                               sample_of(m, p->end));
    }
}

/* --- names and devices -------------------------------------------------------------------------
 */

static void row(struct pr_model *m, struct pr_query *q, struct pr_model_row *to, int texts,
                int values)
{
    *to = (struct pr_model_row){0};
    for (int i = 0; i < texts; i++) {
        const char *text = pr_query_get_text(q, i);
        to->text[i] = pr_model_text(m, "%s", text ? text : "");
    }
    for (int i = 0; i < values; i++)
        to->value[i] = pr_query_get_number(q, texts + i);
}

/* What a device has used by its own counter goes before the integral of its power. */
static void take_energy(struct pr_model *m, const struct pr_model_row *device)
{
    enum { ENERGY = 3 };
    for (size_t i = 0; i < m->series.count && !isnan(device->value[ENERGY]); i++) {
        struct pr_model_series *s = &m->series.items[i];
        if (s->device && s->unit == UNIT_WATTS && strcmp(s->device, device->text[0]) == 0)
            s->stats.total = device->value[ENERGY];
    }
}

void pr_model_tables(struct pr_model *m, const struct pr_stored *r)
{
    phases(m, r);
    devices_in_phases(m);
    struct pr_query *q =
        ask(m, r,
            "SELECT json_extract(value, '$.name'), json_extract(value, '$.instances'),"
            " json_extract(value, '$.metrics.\"cpu.time\".total'),"
            " json_extract(value, '$.metrics.\"mem.rss\".peak'),"
            " json_extract(value, '$.metrics.\"mem.pss\".peak'),"
            " json_extract(value, '$.metrics.\"mem.uss\".peak') FROM json_each(?1, '$.matches')");
    for (struct pr_model_row *to; step(q) && (to = LIST_ADD(m, &m->matches));)
        row(m, q, to, 1, 5);
    pr_query_free(q);
    q = ask(m, r,
            "SELECT json_extract(value, '$.name'), json_extract(value, '$.model'),"
            " json_extract(value, '$.metrics.\"gpu.util\".mean'),"
            " json_extract(value, '$.metrics.\"gpu.mem.used\".peak'),"
            " json_extract(value, '$.metrics.\"gpu.power\".mean'),"
            " json_extract(value, '$.metrics.\"gpu.energy\".total'),"
            " json_extract(value, '$.metrics.\"gpu.temp\".peak') FROM json_each(?1, '$.devices')");
    for (struct pr_model_row *to; step(q) && (to = LIST_ADD(m, &m->devices));)
        row(m, q, to, 2, 5);
    pr_query_free(q);
    for (size_t i = 0; i < m->devices.count; i++)
        take_energy(m, &m->devices.items[i]);
}
