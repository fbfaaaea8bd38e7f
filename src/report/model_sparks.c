/* SPDX-License-Identifier: Apache-2.0 */
/* A small curve for each process of the list: cores over the whole run. One walk over the samples
 * of all processes; where there are too many of them there are no curves. */
#include <math.h>
#include <stdlib.h>

#include "report/model_parts.h"
#include "util/clock.h"
#include "util/map.h"

#define SAMPLES_MOST 500000 /* six days at 1 Hz: beyond that it takes longer than it is worth */

struct sparks {
    struct pr_model *m;
    struct pr_map by_start, by_entity; /* index in the list plus 1 */
    double last[MODEL_PROCESSES];      /* CPU time in the row before */
    double width;                      /* seconds of a point */
};

/* Who it is: a pid comes again, but not at the same moment. */
static uint64_t key_of(int64_t pid, int64_t started)
{
    uint64_t key = (uint64_t)pid * 0x9e3779b97f4a7c15U ^ (uint64_t)started;
    return key ? key : 1;
}

static void prepare(struct sparks *s)
{
    struct pr_model *m = s->m;
    for (size_t i = 0; i < m->processes.count; i++) {
        struct pr_model_process *p = &m->processes.items[i];
        s->last[i] = 0;
        if (!(p->spark = calloc(MODEL_POINTS, sizeof *p->spark)) ||
            !pr_map_set(&s->by_start, key_of(p->pid, p->started), i + 1)) {
            m->failed = true;
            return;
        }
        for (int k = 0; k < MODEL_POINTS; k++) {
            bool alive = !(s->width * (k + 1) < p->begin) && !(s->width * k > p->end);
            p->spark[k] = alive ? 0 : NAN;
        }
    }
}

static void find_entities(struct sparks *s, const struct pr_stored *r)
{
    struct pr_query *q = NULL;
    uint64_t index;
    if (pr_query_new(&q, r->db, "SELECT id, pid, started FROM entities WHERE kind = 'process'") ==
        0)
        while (pr_query_step(q) == 1) {
            int64_t id = pr_query_get_int(q, 0);
            uint64_t key = key_of(pr_query_get_int(q, 1), pr_query_get_int(q, 2));
            if (id > 0 && pr_map_get(&s->by_start, key, &index))
                s->m->failed |= !pr_map_set(&s->by_entity, (uint64_t)id, index);
        }
    pr_query_free(q);
}

/* What was used between two moments, into the points that they lie in. */
static void add(const struct sparks *s, double *spark, double from, double to, double used)
{
    double span = fmax(to - from, 1e-9);
    for (int k = (int)fmax(0, from / s->width); k < MODEL_POINTS && s->width * k < to; k++) {
        double within = fmin(to, s->width * (k + 1)) - fmax(from, s->width * k);
        if (within > 0)
            spark[k] = pr_value_known(spark[k]) + used * within / span / s->width;
    }
}

/* There is a row only where something changed: what was used since the one before was used in the
 * last interval, or since the process began. */
static void walk(struct sparks *s, const struct pr_stored *r)
{
    struct pr_query *q = NULL;
    uint64_t index;
    if (pr_query_new(&q, r->db,
                     "SELECT p.entity, j.elapsed, j.interval, p.cpu_time_seconds"
                     " FROM process_samples p JOIN job_samples j ON j.sample = p.sample"
                     " ORDER BY p.sample") == 0)
        while (pr_query_step(q) == 1) {
            int64_t entity = pr_query_get_int(q, 0);
            double at = pr_seconds(pr_stored_time(q, 1)),
                   interval = pr_seconds(pr_stored_time(q, 2)), cpu = pr_query_get_number(q, 3);
            if (entity <= 0 || !isfinite(cpu) ||
                !pr_map_get(&s->by_entity, (uint64_t)entity, &index))
                continue;
            struct pr_model_process *p = &s->m->processes.items[index - 1];
            double used = cpu - s->last[index - 1];
            s->last[index - 1] = cpu;
            if (used > 0 && at > 0 && at <= s->width * MODEL_POINTS * 1.01)
                add(s, p->spark, fmin(at, fmax(p->begin, at - fmax(interval, 0))), at, used);
        }
    pr_query_free(q);
}

void pr_model_sparks(struct pr_model *m, const struct pr_stored *r)
{
    struct sparks s = {.m = m, .width = m->curves.at / MODEL_POINTS};
    if (m->curves.samples > SAMPLES_MOST || !(s.width > 0) || !isfinite(s.width))
        return;
    prepare(&s);
    if (!m->failed) {
        find_entities(&s, r);
        walk(&s, r);
    }
    pr_map_done(&s.by_start);
    pr_map_done(&s.by_entity);
}
