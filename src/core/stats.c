/* SPDX-License-Identifier: Apache-2.0 */
#include "core/stats.h"

#include <math.h>

#include "util/clock.h"

void pr_stats_init(struct pr_stats *s)
{
    *s = (struct pr_stats){.cpu.per_point = 1, .memory.per_point = 1, .rss.per_point = 1};
    for (int id = 0; id < METRIC_COUNT; id++)
        s->metric[id] = (struct pr_stat){.min = NAN, .max = NAN, .last = NAN, .at = NAN};
}

static void spark_add(struct pr_spark *k, double v)
{
    if (isnan(v))
        return;
    if (k->pending == k->per_point || k->used == 0) {
        if (k->used == SPARK_WIDTH) {
            for (unsigned i = 0; i < SPARK_WIDTH / 2; i++)
                k->point[i] = fmax(k->point[2 * i], k->point[2 * i + 1]);
            k->used = SPARK_WIDTH / 2;
            k->per_point *= 2;
        }
        k->point[k->used++] = v;
        k->pending = 1;
        return;
    }
    k->point[k->used - 1] = fmax(k->point[k->used - 1], v);
    k->pending++;
}

static void trail_add(struct pr_trail *t, double at, double v)
{
    if (isnan(v))
        return;
    t->last_at = at;
    t->last = v;
    unsigned newest = (t->count - 1) % TRAIL_POINTS;
    if (t->count && at - t->at[newest] < TRAIL_STEP)
        return;
    t->at[t->count % TRAIL_POINTS] = at;
    t->value[t->count++ % TRAIL_POINTS] = v;
}

double pr_stats_growth(const struct pr_stats *s, double *ret_seconds)
{
    const struct pr_trail *t = &s->rss_trail;
    unsigned oldest = t->count > TRAIL_POINTS ? t->count % TRAIL_POINTS : 0;
    *ret_seconds = t->last_at - t->at[oldest];
    return t->count ? t->last - t->value[oldest] : NAN;
}

void pr_stat_add(struct pr_stat *m, double v, double at, double dt)
{
    m->known++;
    m->last = v;
    m->min = fmin(m->min, v);
    if (!(m->max >= v)) {
        m->max = v;
        m->at = at;
    }
    m->integral += v * dt;
    m->weight += dt;
}

void pr_stats_add_values(struct pr_stats *s, const double *value, const unsigned char *mark,
                         int count, double at, double dt)
{
    s->seconds = at;
    for (int id = 0; id < count; id++) {
        if (isnan(value[id]))
            continue;
        s->metric[id].mark = mark[id];
        pr_stat_add(&s->metric[id], value[id], at, dt);
    }
}

void pr_stats_add(struct pr_stats *s, const struct proctor_snapshot *snapshot)
{
    const double *v = snapshot->value;
    pr_stats_add_values(s, v, snapshot->mark, METRIC_COUNT, pr_seconds(snapshot->elapsed),
                        pr_seconds(snapshot->interval));
    spark_add(&s->cpu, v[s->machine ? METRIC_SYSTEM_CPU_USAGE : METRIC_CPU_USAGE]);
    spark_add(&s->memory, v[s->machine ? METRIC_SYSTEM_MEM_USED : METRIC_MEM_PSS]);
    spark_add(&s->rss, v[METRIC_MEM_RSS]);
    trail_add(&s->rss_trail, pr_seconds(snapshot->elapsed), v[METRIC_MEM_RSS]);
}

double pr_stats_total(const struct pr_stats *s, enum pr_metric_id id)
{
    return s->metric[id].last;
}

/* A rate, or the share that a rate has of a limit. */
static bool is_rate(enum pr_metric_id id)
{
    const struct pr_metric *m = &pr_metrics[id];
    return m->kind == KIND_RATE || (m->kind == KIND_RATIO && pr_metrics[m->of].kind == KIND_RATE);
}

double pr_stats_mean(const struct pr_stats *s, enum pr_metric_id id)
{
    const struct pr_metric *m = &pr_metrics[id];
    if (is_rate(id) && m->kind == KIND_RATIO)
        return s->limits ? pr_stats_mean(s, m->of) / s->limits->total[m->per] : NAN;
    if (is_rate(id) && s->seconds > 0)
        return s->metric[m->of].last / s->seconds * m->scale;
    const struct pr_stat *v = &s->metric[id];
    return v->weight > 0 ? v->integral / v->weight : v->known ? v->last : NAN;
}

double pr_stats_peak(const struct pr_stats *s, enum pr_metric_id id)
{
    /* A run shorter than its interval has no sampled rate, but it has a mean. */
    return is_rate(id) ? fmax(s->metric[id].max, pr_stats_mean(s, id)) : s->metric[id].max;
}
