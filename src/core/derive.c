/* SPDX-License-Identifier: Apache-2.0 */
#include "core/derive.h"

#include <math.h>

/* PSS is read in turn: so much of the job's resident memory must have been reached. */
#define COVER_LEAST 0.95

/* Does this member have a part in the job's value? */
static bool takes_part(const struct pr_entity *e, int id)
{
    return pr_entity_is_here(e) &&
           !((e->no_mm || e->kernel_thread) &&
             (pr_metrics[id].needs & (READ_STATM | READ_SMAPS | READ_STATUS)));
}

static void fold_one(const struct pr_entities *set, int match, int id, double *job,
                     unsigned char *marks)
{
    bool missing = false;
    double result = NAN, covered = 0, all = 0; /* resident memory of those known, and of all */
    for (size_t k = 0; k < set->count; k++) {
        const struct pr_entity *e = set->items[k];
        double v = e->value[id];
        if (!takes_part(e, id) || (match >= 0 && e->match != match))
            continue;
        all += fmax(0, e->value[METRIC_MEM_RSS]);
        if (isnan(v)) {
            missing = true;
            continue;
        }
        covered += fmax(0, e->value[METRIC_MEM_RSS]);
        if (isnan(result))
            result = v;
        else
            result = pr_metrics[id].fold == FOLD_MAX ? fmax(result, v) : result + v;
    }
    /* A sum from which much is missing is not a smaller sum, it is none. */
    bool hollow = pr_metrics[id].needs == READ_SMAPS && covered < COVER_LEAST * all;
    job[id] = hollow ? NAN : result;
    if (missing && !isnan(job[id]) && pr_metrics[id].fold == FOLD_SUM)
        marks[id] = MARK_LOWER_BOUND;
}

static void fold(const struct pr_entities *set, int match, double *job, unsigned char *marks)
{
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metrics[id].fold != FOLD_NONE && pr_metrics[id].kind != KIND_COUNTER)
            fold_one(set, match, id, job, marks);
}

void pr_fold(const struct pr_entities *set, double *job, unsigned char *marks)
{
    fold(set, -1, job, marks);
}

void pr_fold_match(const struct pr_entities *set, int match, double *value, unsigned char *marks)
{
    fold(set, match, value, marks);
}

static double ratio_of(const struct pr_metric *m, const double *value, const struct pr_basis *basis,
                       unsigned char *mark)
{
    double v = value[m->of];
    if (isnan(v) && m->otherwise && basis->otherwise && !isnan(value[m->otherwise])) {
        v = value[m->otherwise];
        if (mark)
            *mark = MARK_FROM_RSS;
    }
    return v / basis->limits->total[m->per];
}

static void derive(double *value, const double *previous, const struct pr_basis *basis,
                   unsigned char *marks, int from, int to)
{
    for (int id = from; id < to; id++) {
        const struct pr_metric *m = &pr_metrics[id];
        if (m->kind == KIND_RATE) {
            double growth = value[m->of] - previous[m->of];
            bool sound = basis->dt > 0 && !isnan(growth);
            value[id] = sound ? fmax(0, growth) / basis->dt * m->scale : NAN;
        } else if (m->kind == KIND_RATIO) {
            value[id] = ratio_of(m, value, basis, marks ? &marks[id] : NULL);
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
