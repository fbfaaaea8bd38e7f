/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of a report: those of rules.h, and those that need curves. The worst three are kept. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/nodes.h"
#include "report/trend.h"

#define COUNT(list)    (sizeof list / sizeof *list)
#define FINDINGS_MOST  3
#define GPU_IDLE_LEAST 0.3
#define FEED_LEAST     0.2  /* of the time: one core was busy, and no GPU */
#define FEED_IDLE      0.05 /* of a GPU's time */
#define FEED_CORE_FROM 0.75
#define FEED_CORE_TO   1.25
#define GROWTH_TIME    60  /* seconds */
#define GROWTH_FROM    0.1 /* of the run: before that a job starts */
#define GROWTH_SHARE   0.1 /* of what it has: less does not matter */
#define GROWTH_LEAST   (16 << 20)
#define GROWTH_SOON    10 /* times as long as it lasted: the limit is near */
#define LONG_ENOUGH    1  /* seconds: what is shorter says little of shares of time */

struct finder {
    struct pr_model *m;
    const struct pr_stored *r;
    struct pr_buf text;
    double duration;
};

static void found(struct finder *f, const char *id, enum pr_severity severity, double at,
                  const char *more)
{
    struct pr_model_finding *to = LIST_ADD(f->m, &f->m->findings);
    if (to)
        *to = (struct pr_model_finding){id, pr_model_keep(f->m, &f->text), more, severity, at};
}

static void put(struct finder *f, const char *before, double v, enum pr_unit unit)
{
    pr_buf_str(&f->text, before);
    pr_model_human(&f->text, v, unit);
}

static double summed(const struct finder *f, const char *path)
{
    return pr_model_number(f->m, f->r, path);
}

/* Of a metric in the summary. */
static double figure(const struct finder *f, const char *key, const char *which)
{
    char path[80];
    snprintf(path, sizeof path, "$.metrics.\"%s\".%s", key, which);
    return summed(f, path);
}

/* The memory of the run. What stands beside another one as RSS is judged by PSS, which is known of
 * it: RSS of those who share pages grows with their number. */
static struct pr_model_series memory_of(const struct finder *f)
{
    const struct pr_model_series *s = pr_model_find(f->m, GROUP_MEMORY);
    struct pr_model_series memory = {
        .limit.value = NAN, .stats = {NAN, NAN, NAN, NAN, NAN}, .curve = -1};
    if (s)
        memory = *s;
    if (s && f->m->rss) {
        memory.curve = f->m->pss;
        memory.stats.mean = figure(f, "mem.pss", "mean");
        memory.stats.max = figure(f, "mem.pss", "peak");
        memory.stats.at = figure(f, "mem.pss", "at");
    }
    return memory;
}

/* What the summary itself has found: kills, with their evidence. */
static void kills(struct finder *f)
{
    struct pr_query *q = NULL;
    double oom = summed(f, "$.metrics.\"oom.kills\".total");
    if (pr_query_new(&q, f->r->db, "SELECT value FROM json_each(?1, '$.findings')") == 0) {
        pr_query_text(q, 1, f->m->summary.data);
        while (pr_query_step(q) == 1) {
            const char *text = pr_query_get_text(q, 0);
            if (!text || !*text)
                continue;
            pr_buf_str(&f->text, text);
            if (f->text.data[0] >= 'a' && f->text.data[0] <= 'z')
                f->text.data[0] = (char)(f->text.data[0] - 'a' + 'A');
            pr_buf_char(&f->text, '.');
            found(f, oom > 0 ? "oom" : "killed", SEVERITY_BAD, f->m->duration, NULL);
        }
    }
    pr_query_free(q);
}

/* The recorder, not the job; and what can be done about it. */
static void died(struct finder *f)
{
    if (f->r->state != RUN_DIED && !f->r->recovered)
        return;
    pr_buf_str(&f->text, f->r->recovered
                             ? "The recorder had died: all figures are rebuilt from its samples."
                             : "The recorder could not write its end: what it had not yet stored "
                               "is missing.");
    found(f, "recorder-died", SEVERITY_WARN, f->m->duration,
          f->r->recovered
              ? NULL
              : pr_model_text(f->m, "`proctor recover %.300s` makes up for it.", f->r->path));
}

static void gpu_idle(struct finder *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->m->series.count; i++) {
        const struct pr_model_series *s = &f->m->series.items[i];
        if (s->group != GROUP_GPU_IDLE || f->duration < LONG_ENOUGH ||
            !(s->stats.mean >= GPU_IDLE_LEAST))
            continue;
        pr_buf_printf(&f->text, count ? ", %s " : "%s was idle ", s->label);
        pr_model_human(&f->text, s->stats.mean, UNIT_RATIO);
        pr_buf_str(&f->text, count++ ? "" : " of the time");
    }
    if (!count)
        return;
    pr_buf_char(&f->text, '.');
    bool used = summed(f, "$.metrics.\"gpu.count\".peak") != 0;
    found(f, "gpu-idle", used ? SEVERITY_WARN : SEVERITY_NOTE, NAN, NULL);
}

static double mean_at(const struct finder *f, const struct pr_model_series *s, size_t i)
{
    return pr_curve_mean(&f->m->curves.items[s->curve].cell[i]);
}

/* The busiest GPU in a bucket; NaN where none is known. */
static double busiest_at(const struct finder *f, size_t i)
{
    double busiest = NAN;
    for (size_t k = 0; k < f->m->series.count; k++)
        if (f->m->series.items[k].group == GROUP_GPU_UTIL)
            busiest = fmax(busiest, mean_at(f, &f->m->series.items[k], i));
    return busiest;
}

/* One core prepares what no GPU can begin with yet. Where none was ever busy they are just idle. */
static void starved(struct finder *f)
{
    const struct pr_model_series *cpu = pr_model_find(f->m, GROUP_CPU);
    double known = 0, waits = 0, busiest = 0;
    for (size_t i = 0; cpu && i < f->m->curves.count; i++) {
        double cores = mean_at(f, cpu, i), gpu = busiest_at(f, i),
               span = pr_curves_span(&f->m->curves, i);
        if (isnan(cores) || isnan(gpu))
            continue;
        known += span;
        busiest = fmax(busiest, gpu);
        if (gpu < FEED_IDLE && cores >= FEED_CORE_FROM && cores <= FEED_CORE_TO)
            waits += span;
    }
    if (f->m->machine || known < LONG_ENOUGH || busiest < FEED_IDLE || waits < FEED_LEAST * known)
        return;
    put(f, "For ", waits / known, UNIT_RATIO);
    put(f, " of the time (", waits, UNIT_SECONDS);
    pr_buf_str(&f->text, ") one core was busy while no GPU was.");
    found(
        f, "gpu-starved", SEVERITY_WARN, NAN,
        "Loading or preparing data in more processes, or ahead of time, would keep the GPU busy.");
}

/* Means of equal parts of the run since `from`, where something is known. */
static size_t thin(const struct finder *f, const struct pr_model_series *s, double from, double *x,
                   double *y)
{
    const struct pr_curves *c = &f->m->curves;
    double sum[TREND_MOST] = {0}, weight[TREND_MOST] = {0};
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct pr_curve_cell *cell = &c->items[s->curve].cell[i];
        double part = (pr_curves_at(c, i) - from) / (c->at - from) * TREND_MOST;
        size_t k = part >= TREND_MOST ? TREND_MOST - 1 : (size_t)fmax(0, part);
        if (!(part >= 0) || !(cell->weight > 0))
            continue;
        sum[k] += cell->sum;
        weight[k] += cell->weight;
    }
    for (size_t k = 0; k < TREND_MOST; k++)
        if (weight[k] > 0) {
            x[count] = from + ((double)k + 0.5) / TREND_MOST * (c->at - from);
            y[count++] = sum[k] / weight[k];
        }
    return count;
}

/* All the time and in its second half, too: what is loaded at the start does not grow. */
static bool is_growing(const struct finder *f, const struct pr_model_series *s,
                       struct pr_trend *ret)
{
    double x[TREND_MOST], y[TREND_MOST], end = f->m->curves.at, begin = GROWTH_FROM * end;
    struct pr_trend late;
    if (!pr_trend_fit(x, y, thin(f, s, (begin + end) / 2, x, y), &late) || !(late.low > 0) ||
        !pr_trend_fit(x, y, thin(f, s, begin, x, y), ret) || !(ret->low > 0))
        return false;
    return ret->low * (end - begin) >= fmax(GROWTH_LEAST, GROWTH_SHARE * s->stats.mean);
}

static void put_hourly(struct finder *f, const char *before, double slope, const char *behind)
{
    put(f, before, slope * 3600, UNIT_BYTES);
    pr_buf_str(&f->text, behind);
}

static void grows(struct finder *f)
{
    const struct pr_model_series s = memory_of(f);
    struct pr_trend t;
    if (s.curve < 0 || f->m->curves.at < GROWTH_TIME || !is_growing(f, &s, &t))
        return;
    double left = s.limit.text ? (s.limit.value - s.stats.max) / t.slope : NAN;
    bool soon = left <= GROWTH_SOON * f->m->curves.at;
    put_hourly(f, "Memory grows all the time, by ", t.slope, "/h (95 % sure: ");
    put_hourly(f, "", t.low, "/h to ");
    put_hourly(f, "", t.high, "/h)");
    if (soon) {
        pr_buf_printf(&f->text, "; it meets the %s", s.limit.text);
        put(f, " in ", fmax(0, left), UNIT_SECONDS);
    }
    pr_buf_char(&f->text, '.');
    found(f, "memory-grows", soon ? SEVERITY_WARN : SEVERITY_NOTE, NAN,
          "The slope is the median over all pairs of moments.");
}

/* Those of one severity stay in the order of the rules. */
void pr_model_sort_findings(struct pr_model *m)
{
    struct pr_model_finding *all = m->findings.items;
    for (size_t i = 1; i < m->findings.count; i++)
        for (size_t k = i; k > 0 && all[k].severity > all[k - 1].severity; k--) {
            struct pr_model_finding one = all[k];
            all[k] = all[k - 1];
            all[k - 1] = one;
        }
    m->findings.count = m->findings.count > FINDINGS_MOST ? FINDINGS_MOST : m->findings.count;
}

/* --- those that need no curves ------------------------------------------------------------------
 */

static void in_phase(const void *of, double at, struct pr_buf *out)
{
    const struct finder *f = of;
    pr_model_in_phase(f->m, at, out);
}

static bool nearest(const void *of, struct pr_buf *out)
{
    const struct finder *f = of;
    struct pr_query *q = NULL;
    bool there = pr_query_new(&q, f->r->db,
                              "SELECT e.pid, e.name, p.fds, p.fds_ratio FROM process_samples p"
                              " JOIN entities e ON e.id = p.entity WHERE p.fds_ratio > 0"
                              " AND p.fds > 0"
                              " ORDER BY p.fds_ratio DESC LIMIT 1") == 0 &&
                 pr_query_step(q) == 1;
    if (there) {
        double count = pr_query_get_number(q, 2), limit = count / pr_query_get_number(q, 3);
        const char *name = pr_query_get_text(q, 1);
        pr_buf_printf(out, "Process %d (%.15s) had %.0f of the %.0f", (int)pr_query_get_int(q, 0),
                      name ? name : "", count, limit);
    }
    pr_query_free(q);
    return there;
}

/* Of one process: what is above every sum that was sampled; else it may be such a sum. Then it is
 * the largest of all who have ended, and of what the summary has, which also knows those who were
 * there when a record broke off. */
static double largest_mark(const struct finder *f)
{
    struct pr_query *q = NULL;
    double mark = figure(f, "mem.rss.peak", "peak"), one = NAN;
    if (mark > figure(f, "mem.rss", "peak"))
        return mark;
    if (pr_query_new(&q, f->r->db,
                     "SELECT max(peak) FROM (SELECT mem_rss_peak_bytes AS peak FROM entities"
                     " WHERE kind = 'process' UNION ALL"
                     " SELECT json_extract(value, '$.\"mem.rss.peak\"')"
                     " FROM json_each(?1, '$.processes.commands'))") == 0) {
        pr_query_text(q, 1, f->m->summary.data);
        one = pr_query_step(q) == 1 ? pr_query_get_number(q, 0) : NAN;
    }
    pr_query_free(q);
    return one;
}

static struct pr_evidence evidence(const struct finder *f)
{
    static const struct pr_figures unknown = {NAN, NAN, NAN, NAN, NAN};
    const struct pr_model_series memory = memory_of(f), *cpu = pr_model_find(f->m, GROUP_CPU);
    const struct pr_figures *c = cpu ? &cpu->stats : &unknown;
    const struct pr_limits *limits = &f->r->limits;
    bool whole = f->m->machine || strcmp(limits->source[LIMIT_CPU], "machine") == 0;
    struct pr_evidence e = {
        .duration = f->duration,
        .memory_limit = memory.limit.value,
        .memory_of_machine = strcmp(limits->source[LIMIT_MEMORY], "machine") == 0,
        .cores = c->max,
        .cores_mean = c->mean,
        .cores_limit = whole || !cpu ? NAN : cpu->limit.value,
        .cpu_time = figure(f, "cpu.time", "total"),
        .throttled = figure(f, "cpu.throttled", "total"),
        .delay = figure(f, "sched.delay", "total"),
        .swap = figure(f, "mem.swap", "peak"),
        .swap_at = figure(f, "mem.swap", "at"),
        .files = figure(f, "fds.ratio", "peak"),
        .files_at = figure(f, "fds.ratio", "at"),
        .io_full = figure(f, "system.psi.io.full", "total"),
        .unsampled = summed(f, "$.processes.never_sampled_least"),
        .seen = f->m->seen,
        .in_phase = in_phase,
        .nearest = nearest,
        .of = f,
    };
    pr_evidence_memory(&e, memory.stats.max, memory.stats.at, largest_mark(f));
    return e;
}

void pr_model_rules(struct pr_model *m, const struct pr_stored *r)
{
    static void (*const rules[])(struct finder * f) = {died, starved, gpu_idle, grows};
    struct finder f = {.m = m, .r = r, .duration = m->duration};
    struct pr_evidence e = evidence(&f);
    kills(&f);
    for (size_t i = 0; i < pr_rule_count; i++) {
        struct pr_finding one;
        if (pr_rules[i](&e, &one, &f.text))
            found(&f, one.id, one.severity, one.at, one.more);
    }
    for (size_t i = 0; i < COUNT(rules); i++)
        rules[i](&f);
    pr_model_sort_findings(m);
    pr_buf_done(&f.text);
}
