/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mean.h"

#include <math.h>
#include <string.h>

void pr_mean_add(struct pr_mean *m, const double *value, int count)
{
    for (int id = 0; id < count; id++) {
        if (isnan(value[id]))
            continue;
        bool last = pr_metric_is_total((enum pr_metric_id)id);
        m[id].sum = last ? value[id] : m[id].sum + value[id];
        m[id].known = last ? 1 : m[id].known + 1;
    }
}

void pr_mean_take(struct pr_mean *m, double *value, int count)
{
    for (int id = 0; id < count; id++)
        value[id] = m[id].known ? m[id].sum / m[id].known : NAN;
    memset(m, 0, (size_t)count * sizeof *m);
}
