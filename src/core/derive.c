/* SPDX-License-Identifier: Apache-2.0 */
#include "core/derive.h"

#include <math.h>

/* PSS is read in turn: so much of the job's resident memory must have been reached. */
#define COVER_LEAST 0.95

/* What the members make of one metric. */
struct sum {
    enum pr_metric_id id;
    double value, covered, all; /* resident memory of those known, and of all */
    bool missing, aged;
};

static size_t begin(struct sum *sums)
{
    size_t n = 0;
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metrics[id].fold != FOLD_NONE && pr_metrics[id].kind != KIND_COUNTER)
            sums[n++] = (struct sum){.id = (enum pr_metric_id)id, .value = NAN};
    return n;
}

/* Is what is said of this member not of now? */
static bool is_aged(const struct pr_entity *e, const struct pr_metric *m)
{
    if (m->needs == READ_SMAPS)
        return e->value[METRIC_MEM_PSS_AGE] > 0;
    return pr_entity_is_aged(e, (enum pr_metric_id)(m - pr_metrics));
}

static void add(struct sum *s, const struct pr_entity *e, double rss)
{
    const struct pr_metric *m = &pr_metrics[s->id];
    double v = e->value[s->id];
    s->all += rss;
    if (isnan(v)) {
        s->missing = true;
        return;
    }
    s->covered += rss;
    s->aged |= is_aged(e, m);
    if (isnan(s->value))
        s->value = v;
    else
        s->value = m->fold == FOLD_MAX ? fmax(s->value, v) : s->value + v;
}

static void add_member(struct sum *sums, size_t n, const struct pr_entity *e)
{
    const unsigned memory = READ_STATM | READ_SMAPS | READ_STATUS;
    bool without = e->no_mm || e->kernel_thread;
    double rss = fmax(0, e->value[METRIC_MEM_RSS]);
    for (size_t i = 0; i < n; i++)
        if (!(without && (pr_metrics[sums[i].id].needs & memory)))
            add(&sums[i], e, rss);
}

/* Of the largest of all only its age is said: one whose reading is old may be the largest by now.
 */
static enum pr_mark mark_of(const struct sum *s, bool crowd)
{
    const struct pr_metric *m = &pr_metrics[s->id];
    bool sum = m->fold == FOLD_SUM;
    if (sum && s->missing)
        return MARK_LOWER_BOUND;
    if (!s->aged || !(sum || pr_metric_ages(s->id)))
        return MARK_NONE;
    if (m->needs == READ_SMAPS)
        return MARK_ESTIMATED;
    return crowd ? MARK_AGED_CROWD : MARK_AGED;
}

static void end(const struct sum *s, bool crowd, double *job, unsigned char *marks)
{
    /* A sum from which much is missing is not a smaller sum, it is none. */
    bool hollow = pr_metrics[s->id].needs == READ_SMAPS && s->covered < COVER_LEAST * s->all;
    job[s->id] = hollow ? NAN : s->value;
    if (!isnan(job[s->id]))
        marks[s->id] = (unsigned char)mark_of(s, crowd);
}

/* In one pass: there may be thousands of members. */
static void fold(const struct pr_entities *set, int match, double *job, unsigned char *marks)
{
    struct sum sums[PROC_METRICS];
    size_t n = begin(sums);
    for (size_t k = 0; k < set->count; k++) {
        const struct pr_entity *e = set->items[k];
        if (pr_entity_is_here(e) && (match < 0 || e->match == match))
            add_member(sums, n, e);
    }
    for (size_t i = 0; i < n; i++)
        end(&sums[i], set->crowd, job, marks);
}

void pr_fold(const struct pr_entities *set, double *job, unsigned char *marks)
{
    fold(set, -1, job, marks);
}

void pr_fold_match(const struct pr_entities *set, int match, double *value, unsigned char *marks)
{
    fold(set, match, value, marks);
}

/* It is known as well as what it is of, and marked as that is. */
static double ratio_of(enum pr_metric_id id, const double *value, const struct pr_basis *basis,
                       unsigned char *marks)
{
    const struct pr_metric *m = &pr_metrics[id];
    bool other =
        isnan(value[m->of]) && m->otherwise && basis->otherwise && !isnan(value[m->otherwise]);
    if (marks && marks[id] == MARK_NONE)
        marks[id] = other ? MARK_FROM_RSS : marks[m->of];
    return value[other ? m->otherwise : m->of] / basis->limits->total[m->per];
}

/* A counter of I/O, or its rate. */
static bool is_io(int id)
{
    const struct pr_metric *m = &pr_metrics[id];
    return (m->kind == KIND_RATE ? pr_metrics[m->of].needs : m->needs) & READ_IO;
}

static double rate_of(enum pr_metric_id id, const double *value, const double *previous,
                      const struct pr_basis *basis)
{
    const struct pr_metric *m = &pr_metrics[id];
    bool io = is_io(id);
    double growth = value[m->of] - previous[m->of], dt = io ? basis->io_dt : basis->dt;
    if (io && dt <= 0)
        return isnan(basis->dt) ? NAN : previous[id];
    return dt > 0 && !isnan(growth) ? fmax(0, growth) / dt * m->scale : NAN;
}

static void derive(double *value, const double *previous, const struct pr_basis *basis,
                   unsigned char *marks, int from, int to)
{
    for (int id = from; id < to; id++) {
        const struct pr_metric *m = &pr_metrics[id];
        if (m->kind == KIND_RATE) {
            value[id] = rate_of((enum pr_metric_id)id, value, previous, basis);
        } else if (m->kind == KIND_RATIO) {
            value[id] = ratio_of((enum pr_metric_id)id, value, basis, marks);
        } else if (m->kind == KIND_HIGH_WATER) {
            value[id] = fmax(value[id], value[m->of]); /* fmax leaves NaN aside */
        }
    }
}

void pr_derive(double *value, const double *previous, const struct pr_basis *basis,
               unsigned char *marks)
{
    derive(value, previous, basis, marks, 0, PROC_METRICS);
}

void pr_derive_machine(double *value, const double *previous, double dt)
{
    struct pr_basis basis = {.dt = dt};
    derive(value, previous, &basis, NULL, PROC_METRICS, METRIC_COUNT);
}

void pr_derive_next(double *previous, const double *value, double io_dt)
{
    bool stands = io_dt <= 0;
    for (int id = 0; id < PROC_METRICS; id++)
        if (!(stands && is_io(id)))
            previous[id] = value[id];
}

struct pr_basis pr_basis_of_member(const struct pr_basis *basis)
{
    struct pr_basis own = *basis;
    if (own.io_dt <= 0 || own.io_dt > own.dt)
        own.io_dt = NAN;
    return own;
}
