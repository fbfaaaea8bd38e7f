/* SPDX-License-Identifier: Apache-2.0 */
#include "core/stats_json.h"

static void number(struct pr_json *j, const char *key, double v)
{
    pr_json_key(j, key);
    pr_json_number(j, v);
}

static void text(struct pr_json *j, const char *key, const char *words)
{
    pr_json_key(j, key);
    pr_json_string(j, words);
}

void pr_quantiles_put(struct pr_json *j, const double *quantile)
{
    for (int q = 0; q < QUANTILES; q++)
        number(j, pr_quantile_name[q], quantile[q]);
}

void pr_stats_put(struct pr_json *j, const struct pr_stats *s, enum pr_metric_id id,
                  const struct pr_stat *each)
{
    const struct pr_stat *v = &s->metric[id];
    double quantile[QUANTILES];
    pr_json_key(j, pr_metrics[id].key);
    pr_json_open(j, '{');
    if (pr_metrics[id].kind == KIND_COUNTER) {
        number(j, "total", pr_stats_total(s, id));
    } else {
        number(j, "peak", pr_stats_peak(s, id));
        number(j, "mean", pr_stats_mean(s, id));
        number(j, "min", v->min);
        number(j, "last", v->last);
        number(j, "at", v->at);
        if (pr_metrics[id].kind == KIND_GAUGE)
            number(j, "integral", v->integral);
        if (pr_stats_quantiles(s, id, quantile))
            pr_quantiles_put(j, quantile);
        if (each && each->known) {
            number(j, "largest", each->max);
            number(j, "mean_each", pr_stat_mean(each));
        }
    }
    /* PSS is read within a budget: a peak of a few samples is not that of the run. */
    bool few = pr_metrics[id].needs == READ_SMAPS && v->known * 2 < s->metric[METRIC_MEM_RSS].known;
    enum pr_mark mark = few ? MARK_FEW_SAMPLES : pr_said_mark(&v->said);
    const char *said = pr_mark_name(mark), *peak = pr_mark_name((enum pr_mark)v->said.peak);
    if (said)
        text(j, "mark", said);
    if (peak && pr_metrics[id].kind != KIND_COUNTER)
        text(j, "peak_mark", peak);
    pr_json_close(j, '}');
}
