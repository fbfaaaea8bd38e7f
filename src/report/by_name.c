/* SPDX-License-Identifier: Apache-2.0 */
#include "report/by_name.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/model_parts.h"
#include "store/replay.h"
#include "util/clock.h"
#include "util/map.h"

#define REACH       1.5  /* intervals */
#define ENOUGH      0.95 /* of the resident memory: a sum of fewer would be too small */
#define START_SLACK (NS_PER_S / 50)
#define OTHERS      "other"

/* CPU time is as last sampled of everybody, so that the order is that of the figures. */
#define RANKED(column)                                                                             \
    "SELECT e." column " FROM entities e LEFT JOIN (SELECT entity, max(cpu_time_seconds) AS used"  \
    " FROM process_samples GROUP BY entity) p ON p.entity = e.id"                                  \
    " WHERE e.kind = 'process' AND e.first IS NOT NULL AND e." column " IS NOT NULL"               \
    " GROUP BY 1 ORDER BY total(p.used) DESC, 1 LIMIT ?1"

/* A process that was in the sample before. */
struct seen {
    uint64_t key;
    double user, system, time;
    unsigned long sample; /* the last one that it was in */
};

/* Of all processes of a name in one sample. */
struct sums {
    double uss, rss, pss, cpu, resident[2]; /* resident: of those whose USS, PSS is known */
    unsigned long count, cpu_known;
};

struct gather {
    struct pr_by_name *n;
    int64_t started;
    struct sums now[BY_NAME_MOST], all;
    double uss_sum[BY_NAME_MOST], cpu_sum[BY_NAME_MOST];
    unsigned long uss_count[BY_NAME_MOST], cpu_count[BY_NAME_MOST];
    struct seen *seen;
    size_t seen_count, seen_cap;
    struct pr_map by_key; /* index in seen plus 1 */
    bool others, failed;
};

/* --- who ---------------------------------------------------------------------------------------
 */

static void add_name(struct pr_by_name *n, const char *name)
{
    struct pr_name_use *u = &n->items[n->count++];
    *u = (struct pr_name_use){.one_uss = NAN,
                              .one_cpu = NAN,
                              .uss = NAN,
                              .rss = NAN,
                              .pss = NAN,
                              .mean_uss = NAN,
                              .mean_cpu = NAN,
                              .first = NAN,
                              .last = NAN};
    snprintf(u->name, sizeof u->name, "%s", name);
    for (int i = 0; i < NAME_CURVES; i++)
        u->curve[i] = pr_curves_new(&n->time);
}

static void find_names(struct pr_by_name *n, const struct pr_stored *r, const char *sql, int most)
{
    struct pr_query *q = NULL;
    if (pr_query_new(&q, r->db, sql) == 0) { /* old files have no rules */
        pr_query_int(q, 1, most);
        while (n->count < BY_NAME_RULES && pr_query_step(q) == 1) {
            const char *name = pr_query_get_text(q, 0);
            if (name)
                add_name(n, name);
        }
    }
    pr_query_free(q);
}

/* The place of a process; -1 where it is none of those that count. */
static int name_of(struct gather *g, const struct pr_member *m)
{
    const char *name = g->n->rules ? m->match : m->comm;
    size_t named = g->n->count - g->others;
    for (size_t i = 0; name && i < named; i++)
        if (strcmp(g->n->items[i].name, name) == 0)
            return (int)i;
    if (!name)
        return -1;
    if (!g->others) {
        add_name(g->n, OTHERS);
        g->others = true;
    }
    return (int)named;
}

/* --- what they used ----------------------------------------------------------------------------
 */

static uint64_t key_of(const struct pr_member *m)
{
    uint64_t key = (uint64_t)m->pid * 0x9e3779b97f4a7c15U ^ (uint64_t)m->started;
    return key ? key : 1;
}

/* Its entry, and whether it is new; NULL when memory is out. */
static struct seen *seen_of(struct gather *g, uint64_t key, bool *ret_new)
{
    uint64_t at;
    *ret_new = !pr_map_get(&g->by_key, key, &at);
    if (!*ret_new)
        return &g->seen[at - 1];
    if (g->seen_count == g->seen_cap) {
        size_t cap = g->seen_cap ? 2 * g->seen_cap : 64;
        struct seen *more = reallocarray(g->seen, cap, sizeof *more);
        g->failed |= !more;
        if (!more)
            return NULL;
        g->seen = more;
        g->seen_cap = cap;
    }
    if (!pr_map_set(&g->by_key, key, g->seen_count + 1)) {
        g->failed = true;
        return NULL;
    }
    g->seen[g->seen_count] = (struct seen){.key = key};
    return &g->seen[g->seen_count++];
}

/* What it used since the sample before; of one that was there before us, since we look. */
static double growth(double *before, double now, bool new, bool inside)
{
    if (!isfinite(now))
        return 0;
    double from = new && !inside ? now : *before;
    *before = fmax(*before, now);
    return fmax(0, now - from);
}

static void forget_others(struct gather *g, unsigned long sample)
{
    for (size_t i = 0; i < g->seen_count;) {
        if (g->seen[i].sample == sample) {
            i++;
            continue;
        }
        pr_map_remove(&g->by_key, g->seen[i].key);
        g->seen[i] = g->seen[--g->seen_count];
        if (i < g->seen_count)
            g->failed |= !pr_map_set(&g->by_key, g->seen[i].key, i + 1);
    }
}

static void add_sums(struct sums *s, const double *v)
{
    double rss = pr_value_known(v[METRIC_MEM_RSS]);
    bool uss = isfinite(v[METRIC_MEM_USS]), pss = isfinite(v[METRIC_MEM_PSS]);
    s->count++;
    s->rss += rss;
    s->uss += uss ? v[METRIC_MEM_USS] : 0;
    s->pss += pss ? v[METRIC_MEM_PSS] : 0;
    s->resident[0] += uss ? rss : 0;
    s->resident[1] += pss ? rss : 0;
    s->cpu += pr_value_known(v[METRIC_CPU_USAGE]);
    s->cpu_known += isfinite(v[METRIC_CPU_USAGE]);
}

static double most(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : fmax(a, b);
}

static void take_member(struct gather *g, const struct pr_member *m, unsigned long sample)
{
    int at = name_of(g, m);
    bool new;
    struct seen *seen = at < 0 ? NULL : seen_of(g, key_of(m), &new);
    if (!seen)
        return;
    struct pr_name_use *u = &g->n->items[at];
    bool inside = m->started + START_SLACK >= g->started;
    u->instances += new;
    u->samples++;
    u->user += growth(&seen->user, m->value[METRIC_CPU_USER], new, inside);
    u->system += growth(&seen->system, m->value[METRIC_CPU_SYSTEM], new, inside);
    u->time += growth(&seen->time, m->value[METRIC_CPU_TIME], new, inside);
    seen->sample = sample;
    u->one_uss = most(u->one_uss, m->value[METRIC_MEM_USS]);
    u->one_cpu = most(u->one_cpu, m->value[METRIC_CPU_USAGE]);
    if (isfinite(m->value[METRIC_MEM_USS])) {
        g->uss_sum[at] += m->value[METRIC_MEM_USS];
        g->uss_count[at]++;
    }
    if (isfinite(m->value[METRIC_CPU_USAGE])) {
        g->cpu_sum[at] += m->value[METRIC_CPU_USAGE];
        g->cpu_count[at]++;
    }
    add_sums(&g->now[at], m->value);
    add_sums(&g->all, m->value);
}

/* A sum over all of whom enough is known; NaN where that is not so. */
static double enough(const struct sums *s, double sum, double resident)
{
    return s->count && resident > 0 && resident >= ENOUGH * s->rss ? sum : NAN;
}

static void take_name(struct gather *g, size_t i)
{
    struct pr_curves *c = &g->n->time;
    struct pr_name_use *u = &g->n->items[i];
    const struct sums *s = &g->now[i];
    if (s->count) {
        u->first = isnan(u->first) ? c->at : u->first;
        u->last = c->at;
    }
    if (isnan(u->first))
        return;
    double uss = enough(s, s->uss, s->resident[0]);
    const double values[NAME_CURVES] = {
        [NAME_USS] = uss,
        [NAME_RSS] = s->rss > 0 ? s->rss : NAN,
        [NAME_CPU] = s->cpu_known ? s->cpu : NAN,
        [NAME_CPU_TIME] = u->time,
        [NAME_INSTANCES] = (double)s->count,
    };
    u->uss = most(u->uss, uss);
    u->rss = most(u->rss, values[NAME_RSS]);
    u->pss = most(u->pss, enough(s, s->pss, s->resident[1]));
    for (int k = 0; k < NAME_CURVES; k++)
        pr_curves_put(c, u->curve[k], values[k], REACH * c->usual);
}

static void on_sample(void *of, const struct proctor_snapshot *s)
{
    struct gather *g = of;
    struct pr_curves *c = &g->n->time;
    unsigned long before = c->samples;
    pr_curves_sample(c, pr_seconds(s->elapsed), pr_seconds(s->interval));
    if (c->samples == before)
        return;
    memset(g->now, 0, sizeof g->now);
    g->all = (struct sums){0};
    for (size_t i = 0; i < s->member_count; i++)
        take_member(g, &s->members[i], c->samples);
    forget_others(g, c->samples);
    for (size_t i = 0; i < g->n->count; i++)
        take_name(g, i);
    double total = enough(&g->all, g->all.uss, g->all.resident[0]);
    pr_curves_put(c, g->n->total, total, REACH * c->usual);
}

/* --- all of it ---------------------------------------------------------------------------------
 */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct pr_name_use *)a)->name, ((const struct pr_name_use *)b)->name);
}

static void finish(struct gather *g, struct pr_model *m, const struct pr_stored *r)
{
    struct pr_by_name *n = g->n;
    const struct pr_curve *total = n->total < 0 ? NULL : &n->time.items[n->total];
    struct pr_query *q = NULL;
    for (size_t i = 0; i < n->count; i++) {
        n->items[i].mean_uss = g->uss_count[i] ? g->uss_sum[i] / (double)g->uss_count[i] : NAN;
        n->items[i].mean_cpu = g->cpu_count[i] ? g->cpu_sum[i] / (double)g->cpu_count[i] : NAN;
    }
    qsort(n->items, n->count - g->others, sizeof *n->items, by_name);
    n->peak = total && total->known ? total->most : NAN;
    n->at = total && total->known ? total->most_at : NAN;
    n->memory = pr_model_number(m, r, "$.metrics.\"system.mem.total\".peak");
    n->duration = m->duration;
    n->absent = pr_selected(&r->select, METRIC_MEM_USS)
                    ? "it was not read"
                    : "USS was not asked for (--no-pss, --select)";
    if (pr_query_new(&q, r->db,
                     "SELECT json_extract(value, '$.reason') FROM json_each(?1, '$.absent')"
                     " WHERE json_extract(value, '$.metric') = 'mem.uss'") == 0) {
        pr_query_text(q, 1, m->summary.data);
        const char *why = pr_query_step(q) == 1 ? pr_query_get_text(q, 0) : NULL;
        n->absent = why ? pr_model_text(m, "%s", why) : n->absent;
    }
    pr_query_free(q);
}

int pr_by_name_read(struct pr_by_name *n, const struct pr_stored *r, struct pr_model *m,
                    struct proctor_error *err)
{
    static const struct pr_replay_to to = {.members = true, .sample = on_sample};
    struct gather *g = calloc(1, sizeof *g);
    *n = (struct pr_by_name){.peak = NAN, .at = NAN, .memory = NAN, .absent = ""};
    pr_curves_init(&n->time, r->interval);
    n->total = pr_curves_new(&n->time);
    if (!g)
        return pr_error(err, ENOMEM, "out of memory");
    g->n = n;
    g->started = r->started;
    find_names(n, r, RANKED("match"), BY_NAME_RULES);
    n->rules = n->count > 0;
    if (!n->rules)
        find_names(n, r, RANKED("name"), BY_NAME_COMMANDS);
    int code = pr_replay(r, &to, g, err);
    finish(g, m, r);
    bool failed = g->failed || n->time.failed || m->failed;
    pr_map_done(&g->by_key);
    free(g->seen);
    free(g);
    return code < 0 ? code : failed ? pr_error(err, ENOMEM, "out of memory") : 0;
}

void pr_by_name_done(struct pr_by_name *n)
{
    pr_curves_done(&n->time);
}
