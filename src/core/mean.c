/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mean.h"

#include <math.h>

static bool is_last(int id)
{
    return pr_metrics[id].kind == KIND_COUNTER || pr_metrics[id].kind == KIND_HIGH_WATER;
}

void pr_mean_add(struct pr_mean *m, const double *value)
{
    for (int id = 0; id < METRIC_COUNT; id++) {
        if (is_last(id) || isnan(value[id]))
            continue;
        m->sum[id] += value[id];
        m->known[id]++;
    }
}

void pr_mean_take(struct pr_mean *m, double *value)
{
    for (int id = 0; id < METRIC_COUNT; id++)
        if (!is_last(id))
            value[id] = m->known[id] ? m->sum[id] / m->known[id] : NAN;
    *m = (struct pr_mean){0};
}
