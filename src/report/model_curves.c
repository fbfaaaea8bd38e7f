/* SPDX-License-Identifier: Apache-2.0 */
/* The run once more: series, events and processes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/gpu.h"
#include "core/oom.h"
#include "report/nodes.h"
#include "report/summary.h"
#include "store/replay.h"
#include "util/clock.h"

#define COUNT(list)     (sizeof list / sizeof *list)
#define JOB_REACH       1.5 /* intervals */
#define RATE_REACH      2.5 /* over samples that came too soon for a rate */
#define MACHINE_REACH   2.5
#define MACHINE_SECONDS 3 /* the machine and GPUs are read less often than the job */
#define EVENTS_MOST     300
#define EVENTS_TROUBLE  50   /* more, which no number of marks can crowd out */
#define THROTTLED_LEAST 0.01 /* of the time between two readings */
#define THROTTLED_APART 2    /* seconds without it, between two times; or, of the run so far, */
#define THROTTLED_SHARE 0.02
#define IDLE_BELOW      0.01 /* of a GPU's time */

/* A series of the job, or of the machine where that is what was recorded. */
struct plan {
    enum pr_group group;
    enum pr_metric_id id;
    const char *key, *label, *counter; /* key: where it is made for the report */
    enum pr_family family;
    enum pr_unit unit; /* of what is made of a counter */
};
static const struct plan job_plans[] = {
    {GROUP_CPU, METRIC_CPU_USAGE, NULL, "job", "cpu.time", FAMILY_CPU, 0},
    {GROUP_CPU_MACHINE, METRIC_SYSTEM_CPU_USAGE, NULL, "machine", "system.cpu.time", FAMILY_CPU, 0},
    {GROUP_MEMORY, METRIC_MEM_PSS, NULL, "PSS", NULL, FAMILY_MEMORY, 0},
    {GROUP_RSS, METRIC_MEM_RSS, NULL, "RSS", NULL, FAMILY_MEMORY, 0},
    {GROUP_USS, METRIC_MEM_USS, NULL, "USS", NULL, FAMILY_MEMORY, 0},
    {GROUP_READ, METRIC_IO_READ_RATE, NULL, "read", "io.read", FAMILY_DISK, 0},
    {GROUP_WRITE, METRIC_IO_WRITE_RATE, NULL, "write", "io.write", FAMILY_DISK, 0},
    {GROUP_RECEIVE, METRIC_NET_RX, "net.rx.rate", "receive", "net.rx", FAMILY_NETWORK,
     UNIT_BYTES_PER_SECOND},
    {GROUP_SEND, METRIC_NET_TX, "net.tx.rate", "send", "net.tx", FAMILY_NETWORK,
     UNIT_BYTES_PER_SECOND},
    {GROUP_POWER, METRIC_ENERGY, "power", "CPU", "energy", FAMILY_ENERGY, UNIT_WATTS},
    {GROUP_PROCESSES, METRIC_PROCS, NULL, "processes", NULL, FAMILY_OTHER, 0},
};
static const struct plan machine_plans[] = {
    {GROUP_CPU, METRIC_SYSTEM_CPU_USAGE, NULL, "machine", "system.cpu.time", FAMILY_CPU, 0},
    {GROUP_MEMORY, METRIC_SYSTEM_MEM_USED, NULL, "used", NULL, FAMILY_MEMORY, 0},
    {GROUP_READ, METRIC_SYSTEM_DISK_READ_RATE, NULL, "read", "system.disk.read", FAMILY_DISK, 0},
    {GROUP_WRITE, METRIC_SYSTEM_DISK_WRITE_RATE, NULL, "write", "system.disk.write", FAMILY_DISK,
     0},
    {GROUP_RECEIVE, METRIC_SYSTEM_NET_RX_RATE, NULL, "receive", "system.net.rx", FAMILY_NETWORK, 0},
    {GROUP_SEND, METRIC_SYSTEM_NET_TX_RATE, NULL, "send", "system.net.tx", FAMILY_NETWORK, 0},
    {GROUP_PROCESSES, METRIC_SYSTEM_PROCS, NULL, "processes", NULL, FAMILY_OTHER, 0},
};
#define PLANS_MOST 11

struct line {
    int curve;
    double before, before_at; /* of a counter; NaN for unknown */
    bool estimated;           /* at its most */
};

enum { CARD_UTIL, CARD_IDLE, CARD_MEMORY, CARD_POWER, CARD_LINES };
struct card {
    char name[DEVICE_NAME];
    int curve[CARD_LINES];
    double capacity;
};

/* A time in which a quota kept the job from running, again and again. */
struct throttling {
    double seen, seen_at;       /* the counter, when it was last known */
    double begin, end, seconds; /* seconds: 0 for none */
};

struct gather {
    struct pr_model *m;
    const struct pr_stored *r;
    const struct plan *plans;
    size_t plan_count;
    struct line lines[PLANS_MOST];
    struct card cards[GPU_DEVICES];
    size_t card_count;
    struct throttling throttling;
    struct pr_roll roll;
    struct pr_query *words; /* of a mark's data */
};

/* --- samples ---------------------------------------------------------------------------------- */

/* Growth of a counter since it was last known, per second. */
static double rate_of(struct line *l, double v, double at)
{
    double rate = (v - l->before) / (at - l->before_at);
    if (isnan(v))
        return NAN;
    l->before = v;
    l->before_at = at;
    return isfinite(rate) && rate >= 0 ? rate : NAN;
}

static struct card *card_of(struct gather *g, const struct pr_device *d)
{
    for (size_t i = 0; i < g->card_count; i++)
        if (strcmp(g->cards[i].name, d->name) == 0)
            return &g->cards[i];
    if (g->card_count == GPU_DEVICES)
        return NULL;
    struct card *c = &g->cards[g->card_count++];
    snprintf(c->name, sizeof c->name, "%s", d->name);
    c->capacity = NAN;
    for (int i = 0; i < CARD_LINES; i++)
        c->curve[i] = pr_curves_new(&g->m->curves);
    return c;
}

static double slot(const struct pr_device *d, enum pr_metric_id id)
{
    int at = pr_device_slot(DEVICE_GPU, id);
    return at < 0 ? NAN : d->value[at];
}

static void add_card(struct gather *g, const struct pr_device *d, double reach)
{
    struct card *c = card_of(g, d);
    if (!c)
        return;
    double util = slot(d, METRIC_GPU_UTIL), capacity = slot(d, METRIC_GPU_MEM_TOTAL);
    const double values[CARD_LINES] = {util, isnan(util) ? NAN : util < IDLE_BELOW,
                                       slot(d, METRIC_GPU_MEM_USED), slot(d, METRIC_GPU_POWER)};
    for (int i = 0; i < CARD_LINES; i++)
        pr_curves_put(&g->m->curves, c->curve[i], values[i], reach);
    c->capacity = isnan(capacity) ? c->capacity : capacity;
}

/* --- what happened ---------------------------------------------------------------------------- */

static bool has_room(const struct pr_model *m, enum pr_severity severity)
{
    return m->events.count < EVENTS_MOST + (severity > SEVERITY_NOTE ? EVENTS_TROUBLE : 0);
}

void pr_model_add_event(struct pr_model *m, double at, const char *kind, enum pr_severity severity,
                        const char *text)
{
    m->happened++;
    if (!has_room(m, severity) || !LIST_ADD(m, &m->events))
        return;
    size_t i = m->events.count - 1;
    for (; i > 0 && m->events.items[i - 1].at > at; i--)
        m->events.items[i] = m->events.items[i - 1];
    m->events.items[i] = (struct pr_model_event){at, kind, text, severity};
}

/* One event for the whole of it. */
static void end_throttling(struct gather *g)
{
    struct throttling *t = &g->throttling;
    struct pr_buf text = {0};
    if (t->seconds > 0) {
        pr_buf_str(&text, "the CPU quota kept the job from running for ");
        pr_model_human(&text, t->seconds, UNIT_SECONDS);
        pr_buf_str(&text, ", until ");
        pr_model_human(&text, t->end, UNIT_SECONDS);
        pr_model_add_event(g->m, t->begin, "throttled", SEVERITY_WARN, pr_model_keep(g->m, &text));
    }
    t->seconds = 0;
    pr_buf_done(&text);
}

static void follow_quota(struct gather *g, double throttled)
{
    struct throttling *t = &g->throttling;
    double at = g->m->curves.at, growth = throttled - t->seen;
    if (isnan(throttled))
        return;
    if (growth > THROTTLED_LEAST * (at - t->seen_at)) {
        if (t->seen_at - t->end > fmax(THROTTLED_APART, THROTTLED_SHARE * at))
            end_throttling(g);
        if (!(t->seconds > 0))
            t->begin = t->seen_at;
        t->seconds += growth;
        t->end = at;
    }
    t->seen = throttled;
    t->seen_at = at;
}

static void on_event(void *of, const struct pr_event *e)
{
    struct gather *g = of;
    bool oom = e->type == EVENT_OOM && !strstr(e->text, OOM_ELSEWHERE),
         slow = e->type == EVENT_GPU && strstr(e->text, GPU_HELD_DOWN) != NULL;
    enum pr_severity severity = oom                                ? SEVERITY_BAD
                                : e->type == EVENT_PROBLEM || slow ? SEVERITY_WARN
                                                                   : SEVERITY_NOTE;
    pr_model_add_event(g->m, e->at,
                       oom    ? "oom"
                       : slow ? "throttled"
                              : "note",
                       severity, pr_model_text(g->m, "%s", e->text));
}

static void on_mark(void *of, int64_t elapsed, const char *name, const char *data)
{
    struct gather *g = of;
    const char *words = NULL;
    if (!has_room(g->m, SEVERITY_NOTE)) { /* texts are kept: none for what is not */
        g->m->happened++;
        return;
    }
    if (data && g->words) {
        pr_query_reset(g->words);
        pr_query_text(g->words, 1, data);
        words = pr_query_step(g->words) == 1 ? pr_query_get_text(g->words, 0) : NULL;
    }
    pr_model_add_event(g->m, pr_seconds(elapsed), "mark", SEVERITY_NOTE,
                       pr_model_text(g->m, "%s%s%s", name, words ? " " : "", words ? words : ""));
}

static void on_entry(void *of, const struct pr_roll_entry *e)
{
    struct gather *g = of;
    pr_roll_add(&g->roll, e);
}

/* --- a sample -------------------------------------------------------------------------------- */

static void on_sample(void *of, const struct proctor_snapshot *s)
{
    struct gather *g = of;
    struct pr_curves *c = &g->m->curves;
    unsigned long before = c->samples;
    pr_curves_sample(c, pr_seconds(s->elapsed), pr_seconds(s->interval));
    if (c->samples == before)
        return;
    double machine = fmax(MACHINE_REACH * c->usual, MACHINE_SECONDS);
    for (size_t i = 0; i < g->plan_count; i++) {
        const struct plan *p = &g->plans[i];
        bool slow = (pr_metrics[p->id].scope & SCOPE_SYSTEM) || p->key;
        double v = s->value[p->id];
        if (p->key)
            v = rate_of(&g->lines[i], v, c->at);
        double job = (pr_metrics[p->id].kind == KIND_RATE ? RATE_REACH : JOB_REACH) * c->usual;
        pr_curves_put(c, g->lines[i].curve, v, slow ? machine : job);
        if (g->lines[i].curve >= 0 && c->items[g->lines[i].curve].most_at == c->at)
            g->lines[i].estimated = s->mark[p->id] == MARK_ESTIMATED;
    }
    follow_quota(g, s->value[METRIC_CPU_THROTTLED]);
    for (size_t i = 0; i < s->device_count; i++)
        if (s->devices[i].kind == DEVICE_GPU)
            add_card(g, &s->devices[i], machine);
}

/* --- series ----------------------------------------------------------------------------------- */

/* Whether the account has it: also of a run too short for a curve. */
static bool in_account(const struct gather *g, const struct plan *p)
{
    char path[64];
    if (p->id == METRIC_MEM_RSS)
        return !isnan(pr_model_mark(g->m, g->r));
    snprintf(path, sizeof path, "$.metrics.\"%s\".total", p->counter ? p->counter : "");
    return p->counter && !isnan(pr_model_number(g->m, g->r, path));
}

static struct pr_model_series *add_series(struct pr_model *m, int curve, bool anyway)
{
    if (curve < 0 || (!m->curves.items[curve].known && !anyway))
        return NULL;
    struct pr_model_series *s = LIST_ADD(m, &m->series);
    if (s)
        *s = (struct pr_model_series){.curve = curve};
    return s;
}

/* PSS, in which shared pages count once, unless it was hardly ever read, or not at the peak: of
 * that the kernel has a mark, in RSS. */
static bool pss_is_known(const struct gather *g)
{
    static const struct pr_curve none;
    const struct pr_curve *pss = &none, *rss = &none;
    for (size_t i = 0; i < g->plan_count; i++) {
        const struct pr_curve *c =
            g->lines[i].curve < 0 ? &none : &g->m->curves.items[g->lines[i].curve];
        pss = g->plans[i].id == METRIC_MEM_PSS ? c : pss;
        rss = g->plans[i].id == METRIC_MEM_RSS ? c : rss;
    }
    return pss->known > 0 && 2 * pss->known >= rss->known &&
           !(pr_model_mark(g->m, g->r) > PEAK_MISSED * rss->most);
}

static void name_lines(struct gather *g)
{
    bool pss = !g->m->rss && pss_is_known(g);
    for (size_t i = 0; i < g->plan_count; i++) {
        const struct plan *p = &g->plans[i];
        const struct pr_metric *metric = &pr_metrics[p->id];
        if (p->id == METRIC_MEM_PSS && !pss) {
            g->m->pss = g->m->rss ? g->lines[i].curve : -1;
            continue;
        }
        struct pr_model_series *s = add_series(g->m, g->lines[i].curve, in_account(g, p));
        if (!s)
            continue;
        s->key = p->key ? p->key : metric->key;
        s->metric = p->key ? NULL : metric->key;
        s->counter = p->counter;
        s->label = p->label;
        s->group = p->id == METRIC_MEM_RSS && !pss ? GROUP_MEMORY : p->group;
        s->unit = p->key ? p->unit : metric->unit;
        s->family = p->family;
        s->note = metric->help;
        s->once = metric->kind == KIND_GAUGE && g->m->curves.items[s->curve].known == 1;
        s->mark = s->once ? "1 sample" : g->lines[i].estimated ? MODEL_ESTIMATED : NULL;
    }
}

static void name_cards(struct gather *g)
{
    static const struct {
        const char *key, *label, *metric;
        enum pr_group group;
        enum pr_unit unit;
        enum pr_family family;
    } parts[CARD_LINES] = {
        {"gpu.%s.util", "GPU %s", "gpu.util", GROUP_GPU_UTIL, UNIT_RATIO, FAMILY_GPU},
        {"gpu.%s.idle", "GPU %s", NULL, GROUP_GPU_IDLE, UNIT_RATIO, FAMILY_GPU},
        {"gpu.%s.mem.used", "GPU %s mem", "gpu.mem.used", GROUP_GPU_MEMORY, UNIT_BYTES, FAMILY_GPU},
        {"gpu.%s.power", "GPU %s", "gpu.power", GROUP_POWER, UNIT_WATTS, FAMILY_ENERGY},
    };
    struct pr_model *m = g->m;
    struct pr_buf text = {0};
    for (size_t i = 0; i < g->card_count; i++) {
        const struct card *c = &g->cards[i];
        const char *name = strncmp(c->name, "gpu", 3) == 0 ? c->name + 3 : c->name;
        for (int k = 0; k < CARD_LINES; k++) {
            struct pr_model_series *s = add_series(m, c->curve[k], false);
            if (!s)
                continue;
            s->key = pr_model_text(m, parts[k].key, name);
            s->label = pr_model_text(m, parts[k].label, name);
            s->device = pr_model_text(m, "%s", c->name);
            s->group = parts[k].group;
            s->unit = parts[k].unit;
            s->family = parts[k].family;
            if (k != CARD_MEMORY || !(c->capacity > 0))
                continue;
            pr_buf_str(&text, "capacity ");
            pr_model_human(&text, c->capacity, UNIT_BYTES);
            s->limit = (struct pr_bound){c->capacity, pr_model_keep(m, &text)};
        }
    }
    pr_buf_done(&text);
}

/* --- all of it ---------------------------------------------------------------------------------
 */

void pr_model_curves(struct pr_model *m, const struct pr_stored *r, struct proctor_error *err,
                     int *ret_code)
{
    static const struct pr_replay_to to = {.devices = true,
                                           .sample = on_sample,
                                           .event = on_event,
                                           .mark = on_mark,
                                           .entry = on_entry};
    struct gather *g = calloc(1, sizeof *g);
    struct pr_buf way = {0};
    if (!g) {
        m->failed = true;
        return;
    }
    m->machine = pr_stored_text(r, r->about, "$.way", &way) &&
                 (strcmp(pr_buf_text(&way), pr_way_name(WAY_SYSTEM)) == 0 ||
                  strcmp(pr_buf_text(&way), pr_way_name(WAY_EVERYBODY)) == 0);
    *g = (struct gather){.m = m,
                         .r = r,
                         .plans = m->machine ? machine_plans : job_plans,
                         .plan_count = m->machine ? COUNT(machine_plans) : COUNT(job_plans)};
    for (size_t i = 0; i < g->plan_count; i++)
        g->lines[i] = (struct line){pr_curves_new(&m->curves), NAN, NAN, false};
    if (pr_query_new(&g->words, r->db,
                     "SELECT group_concat(key || '=' || CASE WHEN type IN ('true', 'false', 'null')"
                     " THEN type ELSE value END, ' ') FROM json_each(?1)") < 0)
        g->words = NULL;
    *ret_code = m->curves.failed ? 0 : pr_replay(r, &to, g, err);
    end_throttling(g);
    name_lines(g);
    name_cards(g);
    pr_model_processes(m, r, &g->roll);
    pr_roll_done(&g->roll);
    pr_query_free(g->words);
    pr_buf_done(&way);
    free(g);
}
