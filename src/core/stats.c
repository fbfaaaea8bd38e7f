/* SPDX-License-Identifier: Apache-2.0 */
#include "core/stats.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "util/clock.h"

/* What is asked of each value, near together. */
static bool of_machine[METRIC_COUNT];
static short row_of[METRIC_COUNT + 1]; /* rows of all metrics before it */
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (int id = 0; id < METRIC_COUNT; id++) {
        unsigned needs = pr_metrics[id].needs;
        of_machine[id] =
            id < JOB_METRICS ? needs & (READ_CGROUP | READ_CGROUP_REST) : !(needs & READ_GPU);
        of_machine[id] &= pr_metrics[id].kind != KIND_HIGH_WATER; /* known in between, too */
        row_of[id + 1] = (short)(row_of[id] + pr_metric_has_quantiles((enum pr_metric_id)id));
    }
}

void pr_stats_init(struct pr_stats *s)
{
    pthread_once(&filled, fill);
    *s = (struct pr_stats){.cpu.per_point = 1, .memory.per_point = 1, .rss.per_point = 1};
    for (int id = 0; id < METRIC_COUNT; id++)
        s->metric[id] = STAT_NONE;
}

/* --- quantiles -------------------------------------------------------------------------------- */

bool pr_metric_has_quantiles(enum pr_metric_id id)
{
    return !pr_metric_is_total(id);
}

int pr_quantile_rows(int count)
{
    pthread_once(&filled, fill);
    return row_of[count];
}

void pr_stats_want_quantiles(struct pr_stats *s, int count)
{
    s->sketches = pr_sketches_new(pr_quantile_rows(count));
}

void pr_stats_done(struct pr_stats *s)
{
    pr_sketches_free(s->sketches);
    s->sketches = NULL;
}

/* As the mean: what has not lasted is known by its last value alone. */
void pr_stat_quantiles(const struct pr_stat *v, const struct pr_sketches *sketches, int series,
                       double ret[QUANTILES])
{
    pr_sketch_quantiles(sketches, series, ret);
    for (int q = 0; q < QUANTILES; q++)
        ret[q] = isnan(ret[q]) ? v->last : fmax(v->min, fmin(v->max, ret[q]));
}

bool pr_stats_quantiles(const struct pr_stats *s, enum pr_metric_id id, double ret[QUANTILES])
{
    bool known = pr_metric_has_quantiles(id) && (s->sketches || s->quantiles);
    int row = pr_quantile_rows((int)id);
    if (known && s->sketches)
        pr_stat_quantiles(&s->metric[id], s->sketches, row, ret);
    else if (known)
        memcpy(ret, &s->quantiles[row * QUANTILES], QUANTILES * sizeof *ret);
    return known;
}

/* --- adding ----------------------------------------------------------------------------------- */

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

/* Of marks that stay once one value had them, the graver the higher; 0 is none of these. */
static int rank_of(unsigned char mark)
{
    static const unsigned char kinds[] = {MARK_NONE, MARK_AGED, MARK_AGED_CROWD, MARK_ESTIMATED,
                                          MARK_FROM_RSS};
    int rank = (int)(sizeof kinds) - 1;
    while (rank > 0 && kinds[rank] != mark)
        rank--;
    return rank;
}

void pr_said_add(struct pr_said *s, int id, unsigned char mark)
{
    bool total = pr_metric_is_total((enum pr_metric_id)id);
    s->mark = mark;
    if (mark && !total && rank_of(mark) > rank_of(s->old))
        s->old = mark;
}

enum pr_mark pr_said_mark(const struct pr_said *s)
{
    bool other = s->mark && !(s->old && rank_of(s->mark));
    return (enum pr_mark)(other ? s->mark : s->old);
}

void pr_said_merge(struct pr_said *to, const struct pr_said *from)
{
    to->mark = from->mark;
    if (rank_of(from->old) > rank_of(to->old))
        to->old = from->old;
}

bool pr_said_is(const char *said, enum pr_mark mark)
{
    return said && strcmp(said, pr_mark_name(mark)) == 0;
}

void pr_stats_add_values(struct pr_stats *s, const double *value, const unsigned char *mark,
                         int count, struct pr_span span)
{
    s->seconds = span.at;
    for (int id = 0; id < count; id++) {
        if (isnan(value[id]))
            continue;
        struct pr_stat *m = &s->metric[id];
        pr_said_add(&m->said, id, mark[id]);
        if (!(m->max >= value[id]))
            m->said.peak = mark[id];
        double dt = of_machine[id] ? span.machine_dt : span.dt;
        pr_stat_add(m, value[id], span.at, dt);
        if (s->sketches && row_of[id] != row_of[id + 1])
            pr_sketch_add(s->sketches, row_of[id], value[id], dt);
    }
}

void pr_stats_add(struct pr_stats *s, const struct proctor_snapshot *snapshot)
{
    const double *v = snapshot->value;
    pr_stats_add_values(s, v, snapshot->mark, METRIC_COUNT,
                        (struct pr_span){pr_seconds(snapshot->elapsed),
                                         pr_seconds(snapshot->interval),
                                         pr_seconds(snapshot->machine_interval)});
    spark_add(&s->cpu, v[s->machine ? METRIC_SYSTEM_CPU_USAGE : METRIC_CPU_USAGE]);
    spark_add(&s->memory, v[s->machine ? METRIC_SYSTEM_MEM_USED : METRIC_MEM_PSS]);
    spark_add(&s->rss, v[METRIC_MEM_RSS]);
    trail_add(&s->rss_trail, pr_seconds(snapshot->elapsed), v[METRIC_MEM_RSS]);
}

/* --- results ---------------------------------------------------------------------------------- */

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

double pr_stat_mean(const struct pr_stat *m)
{
    return m->weight > 0 ? m->integral / m->weight : m->last;
}

double pr_stats_mean(const struct pr_stats *s, enum pr_metric_id id)
{
    const struct pr_metric *m = &pr_metrics[id];
    if (is_rate(id) && m->kind == KIND_RATIO)
        return s->limits ? pr_stats_mean(s, m->of) / s->limits->total[m->per] : NAN;
    if (is_rate(id) && s->seconds > 0)
        return s->metric[m->of].last / s->seconds * m->scale;
    return pr_stat_mean(&s->metric[id]);
}

double pr_stats_peak(const struct pr_stats *s, enum pr_metric_id id)
{
    /* A run shorter than its interval has no sampled rate, but it has a mean. */
    return is_rate(id) ? fmax(s->metric[id].max, pr_stats_mean(s, id)) : s->metric[id].max;
}
