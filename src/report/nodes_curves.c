/* SPDX-License-Identifier: Apache-2.0 */
/* Curves of several nodes over one time base. A bucket of a node stands for its time; wherever one
 * begins or ends there is a new sum. So a peak is one of the sum, not a sum of peaks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/nodes.h"

#define COUNT(list) (sizeof list / sizeof *list)
#define ROUNDING    1e-6 /* seconds */
#define DIGITS      1e-6 /* of a figure in a summary, beside the same in a sample */

/* What is summed, and what each node has of it; GROUPS for nothing. */
static const struct {
    enum pr_group sum, node;
    const char *key; /* of GPUs: what a node's is called */
    const char *way; /* behind a node's name, where a chart has two lines of it */
} plans[] = {
    {GROUP_CPU, GROUP_NODE_CPU},
    {GROUP_MEMORY, GROUP_NODE_MEMORY},
    {GROUP_RSS, GROUPS},
    {GROUP_USS, GROUPS},
    {GROUP_READ, GROUP_NODE_READ, .way = " r"},
    {GROUP_WRITE, GROUP_NODE_WRITE, .way = " w"},
    {GROUP_RECEIVE, GROUP_NODE_RECEIVE, .way = " in"},
    {GROUP_SEND, GROUP_NODE_SEND, .way = " out"},
    {GROUP_POWER, GROUPS},
    {GROUP_PROCESSES, GROUPS},
    {GROUP_GPU_UTIL, GROUP_GPU_UTIL,
     "gpu.util"}, /* of GPUs there is no sum: a line for each node */
    {GROUP_GPU_IDLE, GROUP_GPU_IDLE, "gpu.idle"},
    {GROUP_GPU_MEMORY, GROUP_GPU_MEMORY, "gpu.mem.used"},
};

/* A node at one moment. */
struct part {
    const struct pr_model *m;
    double offset, begin, end; /* of its bucket, since the job began */
    size_t bucket;
    bool over;
    struct pr_curve_cell cell[GROUPS]; /* weight: how many series, sum: of their means */
};

struct merge {
    struct pr_model *job;
    struct part *parts;
    size_t count, shown;
    int sum[COUNT(plans)], *own; /* curves, -1 for none; own: COUNT(plans) for each node shown */
    int known;                   /* how many nodes */
    size_t of[COUNT(plans)];     /* how many nodes a sum was of at its peak */
};

static bool is_mean(enum pr_group group)
{
    return group == GROUP_GPU_UTIL || group == GROUP_GPU_IDLE;
}

static bool is_summed(size_t plan)
{
    return !plans[plan].key;
}

/* --- the walk ----------------------------------------------------------------------------------
 */

static void take(struct part *p)
{
    const struct pr_curves *c = &p->m->curves;
    memset(p->cell, 0, sizeof p->cell);
    p->over = p->bucket >= c->count;
    if (p->over)
        return;
    double before = p->end;
    pr_curves_bounds(c, p->bucket, &p->begin, &p->end);
    p->begin += p->offset;
    p->end += p->offset;
    if (fabs(p->begin - before) < ROUNDING) /* one begins where the one before it ends */
        p->begin = before;
    for (size_t i = 0; i < p->m->series.count; i++) {
        const struct pr_model_series *s = &p->m->series.items[i];
        const struct pr_curve_cell *from = &c->items[s->curve].cell[p->bucket];
        struct pr_curve_cell *to = &p->cell[s->group];
        if (!(from->weight > 0))
            continue;
        to->min += from->min;
        to->max += from->max;
        to->sum += pr_curve_mean(from);
        to->weight++;
    }
}

/* Where the next bucket begins or ends. */
static double edge_after(const struct merge *g, double now)
{
    double edge = INFINITY;
    for (size_t i = 0; i < g->count; i++) {
        const struct part *p = &g->parts[i];
        if (!p->over)
            edge = fmin(edge, now < p->begin ? p->begin : p->end);
    }
    return edge;
}

static bool is_there(const struct part *p, double now)
{
    return !p->over && p->begin <= now;
}

static void put_own(struct merge *g, size_t plan, double now)
{
    for (size_t i = 0; i < g->shown; i++) {
        const struct part *p = &g->parts[i];
        const struct pr_curve_cell *cell = &p->cell[plans[plan].sum];
        double by = is_mean(plans[plan].sum) ? cell->weight : 1;
        if (is_there(p, now) && cell->weight > 0)
            pr_curves_put_cell(&g->job->curves, g->own[i * COUNT(plans) + plan], cell->sum / by,
                               cell->min / by, cell->max / by);
    }
}

static void put_sum(struct merge *g, size_t plan, double now)
{
    struct pr_curve_cell sum = {0};
    for (size_t i = 0; i < g->count; i++) {
        const struct pr_curve_cell *cell = &g->parts[i].cell[plans[plan].sum];
        if (!is_there(&g->parts[i], now) || !(cell->weight > 0))
            continue;
        sum.min += cell->min;
        sum.max += cell->max;
        sum.sum += cell->sum;
        sum.weight++;
    }
    if (!(sum.weight > 0) || g->sum[plan] < 0)
        return;
    pr_curves_put_cell(&g->job->curves, g->sum[plan], sum.sum, sum.min, sum.max);
    if (g->job->curves.items[g->sum[plan]].most_at == g->job->curves.at)
        g->of[plan] = (size_t)sum.weight;
}

static void put_known(struct merge *g, double now)
{
    double known = 0;
    for (size_t i = 0; i < g->count; i++) {
        const struct part *p = &g->parts[i];
        known +=
            is_there(p, now) && (p->cell[GROUP_CPU].weight > 0 || p->cell[GROUP_MEMORY].weight > 0);
    }
    pr_curves_put_cell(&g->job->curves, g->known, known, known, known);
}

static void walk(struct merge *g)
{
    double now = 0, edge;
    while (isfinite(edge = edge_after(g, now))) {
        if (edge > now) {
            pr_curves_sample(&g->job->curves, edge, edge - now);
            for (size_t i = 0; i < COUNT(plans); i++) {
                put_own(g, i, now);
                put_sum(g, i, now);
            }
            put_known(g, now);
        }
        for (size_t i = 0; i < g->count; i++)
            for (struct part *p = &g->parts[i]; !p->over && p->end <= edge; p->bucket++, take(p)) {
            }
        now = edge;
    }
}

/* --- series ------------------------------------------------------------------------------------
 */

static struct pr_model_series *add(struct pr_model *job, const struct pr_model_series *like,
                                   int curve, enum pr_group group)
{
    struct pr_model_series *s = curve < 0 ? NULL : LIST_ADD(job, &job->series);
    if (!s)
        return NULL;
    *s = *like;
    s->curve = curve;
    s->group = group;
    s->device = s->mark = NULL;
    s->limit = s->host = (struct pr_bound){0};
    s->once = false;
    return s;
}

/* Over all that a node has in a group: GPUs together. */
static struct pr_figures figures_of(const struct pr_model *m, enum pr_group group)
{
    struct pr_figures f = {NAN, NAN, NAN, NAN, NAN};
    for (size_t i = 0; i < m->series.count; i++) {
        const struct pr_model_series *s = &m->series.items[i];
        if (s->group != group || isnan(s->stats.total))
            continue;
        f.total = pr_value_known(f.total) + s->stats.total;
    }
    const struct pr_model_series *first = pr_model_find(m, group);
    f.max = first ? first->stats.max : NAN;
    return f;
}

/* What the curve has, and the totals of the accounts, which are exact. */
static void figure(const struct merge *g, struct pr_model_series *s, enum pr_group group)
{
    const struct pr_curve *c = &g->job->curves.items[s->curve];
    double total = NAN;
    size_t known = 0;
    /* The least is of moments at which not all nodes are known. */
    s->stats = (struct pr_figures){NAN, c->integral / c->seconds, c->most, c->most_at, NAN};
    for (size_t i = 0; i < g->count; i++) {
        struct pr_figures one = figures_of(g->parts[i].m, group);
        if (!isnan(one.total)) {
            total = pr_value_known(total) + one.total;
            known++;
        }
        bool more = !isnan(one.max) && !(one.max <= s->stats.max * (1 + DIGITS));
        if (more && group != GROUP_POWER) {
            s->stats.max = one.max; /* a mark of the kernel that no sample has reached */
            s->stats.at = NAN;
        }
    }
    if (pr_series_has_total(s) && !isnan(total)) {
        s->stats.total = total;
        s->stats.mean = g->job->duration > 0 ? total / g->job->duration : s->stats.mean;
    }
    pr_figures_agree(&s->stats);
    if (known && known < g->count)
        s->mark = pr_model_text(g->job, "total of %zu of %zu nodes", known, g->count);
}

/* Limits together, where all nodes have one; what a machine has counts once for each machine. */
static void sum_limits(const struct merge *g, struct pr_model_series *s, enum pr_group group)
{
    struct pr_buf text = {0};
    double sum = 0;
    for (size_t i = 0; i < g->count; i++) {
        const struct pr_model_series *one = pr_model_find(g->parts[i].m, group);
        if (!one || !one->limit.text)
            return;
        bool machine = strncmp(one->limit.text, "machine", 7) == 0, again = false;
        for (size_t k = 0; k < i && machine; k++)
            again |= strcmp(g->parts[k].m->host, g->parts[i].m->host) == 0;
        sum += again ? 0 : one->limit.value;
    }
    pr_buf_str(&text, "all nodes ");
    pr_model_human(&text, sum, s->unit);
    s->limit = (struct pr_bound){sum, pr_model_keep(g->job, &text)};
    pr_buf_done(&text);
}

/* Of how many nodes the peak is, and whether it is one: of parts of the run it is a bound. */
static const char *mark_of(const struct merge *g, size_t plan)
{
    bool bound = false;
    for (size_t i = 0; i < g->count; i++)
        bound |= g->parts[i].m->curves.width > 0;
    if (g->of[plan] == g->count || !g->of[plan])
        return bound ? MODEL_BOUND : NULL;
    return pr_model_text(g->job, "%s of %zu of %zu nodes", bound ? MODEL_BOUND "," : "peak",
                         g->of[plan], g->count);
}

static void name_sum(struct merge *g, size_t plan)
{
    const struct pr_model_series *like = NULL;
    bool mixed = false;
    for (size_t i = 0; i < g->count; i++) {
        const struct pr_model_series *s = pr_model_find(g->parts[i].m, plans[plan].sum);
        mixed |= like && s && strcmp(like->key, s->key) != 0;
        like = like ? like : s;
    }
    struct pr_model_series *s = like ? add(g->job, like, g->sum[plan], plans[plan].sum) : NULL;
    if (!s)
        return;
    if (plans[plan].sum == GROUP_POWER) {
        s->key = "power";
        s->label = "all";
    } else if (mixed) {
        s->key = "mem";
        s->label = "PSS or RSS";
    }
    figure(g, s, plans[plan].sum);
    if (!s->mark && s->stats.max > 0)
        s->mark = mark_of(g, plan);
    if (s->group == GROUP_CPU || s->group == GROUP_MEMORY)
        sum_limits(g, s, s->group);
}

/* Of all devices of a node; none where one has none. */
static struct pr_bound capacity_of(struct pr_model *job, const struct pr_model *m,
                                   enum pr_group group)
{
    struct pr_bound b = {0};
    struct pr_buf text = {0};
    for (size_t i = 0; i < m->series.count; i++) {
        const struct pr_model_series *s = &m->series.items[i];
        if (s->group != group)
            continue;
        if (!s->limit.text)
            return (struct pr_bound){0};
        b.value += s->limit.value;
    }
    pr_buf_str(&text, "capacity ");
    pr_model_human(&text, b.value, UNIT_BYTES);
    b.text = pr_model_keep(job, &text);
    pr_buf_done(&text);
    return b;
}

static void name_own(struct merge *g, size_t plan, size_t node, const char *label)
{
    const struct pr_model *m = g->parts[node].m;
    const struct pr_model_series *like = pr_model_find(m, plans[plan].sum);
    int curve = g->own[node * COUNT(plans) + plan];
    struct pr_model_series *s = like && m->curves.items[like->curve].known
                                    ? add(g->job, like, curve, plans[plan].node)
                                    : NULL;
    if (!s)
        return;
    const struct pr_curve *c = &g->job->curves.items[curve];
    s->key = pr_model_text(g->job, "%s.%s", label, plans[plan].key ? plans[plan].key : like->key);
    s->label = plans[plan].way ? pr_model_text(g->job, "%s%s", label, plans[plan].way) : label;
    if (is_summed(plan)) {
        s->family = node % FAMILY_ENERGY; /* colours tell nodes apart: those before are no greys */
        s->stats = like->stats;
        s->stats.at += g->parts[node].offset;
        s->mark = like->mark;
        return;
    }
    s->stats = (struct pr_figures){c->least, c->integral / c->seconds, c->most, c->most_at, NAN};
    s->limit = capacity_of(g->job, m, plans[plan].sum);
}

static void name_all(struct merge *g, const char *const *labels)
{
    for (size_t i = 0; i < COUNT(plans); i++)
        if (is_summed(i))
            name_sum(g, i);
    static const struct pr_model_series nodes = {
        .key = "nodes", .label = "nodes", .unit = UNIT_COUNT, .family = FAMILY_OTHER};
    struct pr_model_series *s = add(g->job, &nodes, g->known, GROUP_NODES);
    const struct pr_curve *c = s ? &g->job->curves.items[s->curve] : NULL;
    if (c && c->known)
        s->stats =
            (struct pr_figures){c->least, c->integral / c->seconds, c->most, c->most_at, NAN};
    for (size_t i = 0; i < COUNT(plans); i++)
        for (size_t k = 0; k < g->shown && plans[i].node != GROUPS; k++)
            name_own(g, i, k, labels[k]);
}

/* A curve for each sum, and for each node that has something of it. */
static void make_curves(struct merge *g)
{
    struct pr_curves *c = &g->job->curves;
    for (size_t i = 0; i < COUNT(plans); i++) {
        g->sum[i] = is_summed(i) ? pr_curves_new(c) : -1;
        for (size_t k = 0; k < g->shown; k++) {
            bool has = plans[i].node != GROUPS && pr_model_find(g->parts[k].m, plans[i].sum);
            g->own[k * COUNT(plans) + i] = has ? pr_curves_new(c) : -1;
        }
    }
    g->known = pr_curves_new(c);
}

void pr_nodes_curves(const struct pr_nodes *n)
{
    struct merge g = {.job = n->job, .parts = calloc(n->count, sizeof *g.parts), .count = n->count};
    double pace = 0;
    g.shown = n->count < NODES_SHOWN ? n->count : NODES_SHOWN;
    g.own = calloc(g.shown * COUNT(plans), sizeof *g.own);
    n->job->failed |= !g.parts || !g.own;
    for (size_t i = 0; i < n->count; i++)
        pace = fmax(pace, fmax(n->items[i]->curves.interval, n->items[i]->curves.width));
    pr_curves_init(&n->job->curves, pace);
    for (size_t i = 0; i < n->count && !n->job->failed; i++) {
        g.parts[i] = (struct part){.m = n->items[i], .offset = n->items[i]->began - n->job->began};
        take(&g.parts[i]);
    }
    if (!n->job->failed)
        make_curves(&g);
    if (!n->job->failed && !n->job->curves.failed) {
        walk(&g);
        name_all(&g, n->labels);
    }
    free(g.parts);
    free(g.own);
}
