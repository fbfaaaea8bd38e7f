/* SPDX-License-Identifier: Apache-2.0 */
/* Findings: a table of rules, one function each, with the evidence in the sentence. The worst three
 * are kept. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/model_parts.h"

#define COUNT(list)     (sizeof list / sizeof *list)
#define FINDINGS_MOST   3
#define NEAR_LIMIT      0.9
#define THROTTLED_LEAST 0.01 /* of the time */
#define GPU_IDLE_LEAST  0.3
#define STALL_LEAST     0.1
#define WASTED_BELOW    0.5 /* of the cores, at the peak */
#define WASTED_CORES    4
#define LONG_ENOUGH     1 /* seconds: what is shorter says little of shares of time */

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

/* When and in which phase. */
static void put_when(struct finder *f, double at)
{
    if (isnan(at))
        return;
    put(f, ", at ", at, UNIT_SECONDS);
    pr_model_in_phase(f->m, at, &f->text);
}

static double summed(struct finder *f, const char *path)
{
    return pr_model_number(f->m, f->r, path);
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

static void near_limit(struct finder *f)
{
    const struct pr_model_series *s = pr_model_find(f->m, GROUP_MEMORY);
    if (!s || !(s->limit.value > 0) || !(s->stats.max >= NEAR_LIMIT * s->limit.value))
        return;
    double share = s->stats.max / s->limit.value;
    put(f, "Memory reached ", s->stats.max, UNIT_BYTES);
    put(f, ", ", share, UNIT_RATIO);
    pr_buf_printf(&f->text, " of the %s", s->limit.text);
    put_when(f, s->stats.at);
    pr_buf_char(&f->text, '.');
    struct pr_buf more = {0};
    pr_buf_str(&more, "Beyond the limit the kernel ends a process of the job. ");
    pr_model_human(&more, fmax(0, s->limit.value - s->stats.max), UNIT_BYTES);
    pr_buf_str(&more, " were left.");
    found(f, "memory-near-limit", share >= 0.95 ? SEVERITY_BAD : SEVERITY_WARN, s->stats.at,
          pr_model_keep(f->m, &more));
    pr_buf_done(&more);
}

static void throttled(struct finder *f)
{
    double seconds = summed(f, "$.metrics.\"cpu.throttled\".total");
    if (!(seconds > THROTTLED_LEAST * f->duration))
        return;
    put(f, "The CPU quota kept the job from running for ", seconds, UNIT_SECONDS);
    put(f, ", beside ", f->duration, UNIT_SECONDS);
    pr_buf_str(&f->text, " that it lasted.");
    found(f, "throttled", SEVERITY_WARN, NAN, "A higher quota, or fewer threads, would end that.");
}

static void swap(struct finder *f)
{
    double bytes = summed(f, "$.metrics.\"mem.swap\".peak"),
           at = summed(f, "$.metrics.\"mem.swap\".at");
    if (!(bytes >= 1 << 20))
        return;
    put(f, "Up to ", bytes, UNIT_BYTES);
    pr_buf_str(&f->text, " of the job were swapped out");
    put_when(f, at);
    pr_buf_char(&f->text, '.');
    found(f, "swap", SEVERITY_WARN, at, NULL);
}

static void gpu_idle(struct finder *f)
{
    for (size_t i = 0; i < f->m->series.count; i++) {
        const struct pr_model_series *s = &f->m->series.items[i];
        if (s->group != GROUP_GPU_IDLE || f->duration < LONG_ENOUGH ||
            !(s->stats.mean >= GPU_IDLE_LEAST))
            continue;
        pr_buf_printf(&f->text, "%s was idle ", s->label);
        pr_model_human(&f->text, s->stats.mean, UNIT_RATIO);
        pr_buf_str(&f->text, " of the time.");
        found(f, "gpu-idle", SEVERITY_WARN, NAN, NULL);
    }
}

static void io_stall(struct finder *f)
{
    double share = summed(f, "$.metrics.\"system.psi.io.full\".total") / f->duration;
    if (f->duration < LONG_ENOUGH || !(share >= STALL_LEAST))
        return;
    put(f, "For ", share, UNIT_RATIO);
    pr_buf_str(&f->text, " of the time everything on the machine that could have run waited for "
                         "storage.");
    found(f, "io-stall", SEVERITY_WARN, NAN, NULL);
}

static void wasted(struct finder *f)
{
    const struct pr_model_series *s = pr_model_find(f->m, GROUP_CPU);
    if (!s || f->m->machine || f->duration < LONG_ENOUGH || !(s->limit.value >= WASTED_CORES) ||
        strcmp(f->r->limits.source[LIMIT_CPU], "machine") == 0 ||
        !(s->stats.max < WASTED_BELOW * s->limit.value))
        return;
    put(f, "Never more than ", s->stats.max, UNIT_CORES);
    put(f, " were busy of ", s->limit.value, UNIT_CORES);
    put(f, " that the job may use; on average ", s->stats.mean, UNIT_CORES);
    pr_buf_char(&f->text, '.');
    found(f, "wasted", SEVERITY_NOTE, NAN, NULL);
}

static void unsampled(struct finder *f)
{
    double least = summed(f, "$.processes.never_sampled_least");
    if (!(least >= 10) || !(least > f->m->seen / 2))
        return;
    pr_buf_printf(&f->text,
                  "At least %.0f of %.0f processes lived between two samples: their memory is not "
                  "in the curves.",
                  least, fmax(f->m->seen, least));
    found(f, "never-sampled", SEVERITY_NOTE, NAN, "A shorter interval (-i) would show them.");
}

static int worse(const void *a, const void *b)
{
    const struct pr_model_finding *x = a, *y = b;
    return (int)y->severity - (int)x->severity;
}

void pr_model_rules(struct pr_model *m, const struct pr_stored *r)
{
    static void (*const rules[])(struct finder * f) = {kills,    near_limit, throttled, swap,
                                                       gpu_idle, io_stall,   wasted,    unsampled};
    struct finder f = {.m = m, .r = r, .duration = m->duration};
    for (size_t i = 0; i < COUNT(rules); i++)
        rules[i](&f);
    if (m->findings.count)
        qsort(m->findings.items, m->findings.count, sizeof *m->findings.items, worse);
    m->findings.count = m->findings.count > FINDINGS_MOST ? FINDINGS_MOST : m->findings.count;
    pr_buf_done(&f.text);
}
