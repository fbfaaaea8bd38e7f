/* SPDX-License-Identifier: Apache-2.0 */
#include "core/metric.h"

#include <math.h>
#include <string.h>

#include "util/scan.h"

const struct pr_metric pr_metrics[METRIC_COUNT] = {
#define METRIC(id, ...) [METRIC_##id] = {__VA_ARGS__},
#define METRICS_END(name)
#include "core/metrics.def"
#undef METRIC
#undef METRICS_END
};

_Static_assert(METRIC_COUNT <= SCAN_METRICS, "pr_scan_keyed could not tell them apart");

void pr_values_none(double *value, int count)
{
    for (int i = 0; i < count; i++)
        value[i] = NAN;
}

double pr_value_known(double v)
{
    return isnan(v) ? 0 : v;
}

enum pr_metric_id pr_metric_find(const char *key)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strcmp(pr_metrics[i].key, key) == 0)
            return (enum pr_metric_id)i;
    return METRIC_NONE;
}

void pr_metric_column(struct pr_buf *out, const struct pr_metric *m)
{
    const char *suffix = pr_units_suffix(m->unit);
    size_t key = strlen(m->key), unit = strlen(suffix);
    for (const char *p = m->key; *p; p++)
        pr_buf_char(out, *p == '.' ? '_' : *p);
    /* cpu.ratio is not cpu_ratio_ratio. */
    if (unit && !(key >= unit && strcmp(m->key + key - (unit - 1), suffix + 1) == 0))
        pr_buf_str(out, suffix);
}

bool pr_metric_in_ledger(enum pr_metric_id id)
{
    const struct pr_metric *m = &pr_metrics[id];
    return (m->scope & SCOPE_PROC) && m->kind == KIND_COUNTER &&
           (m->fold == FOLD_SUM || m->fold == FOLD_OWN);
}

bool pr_metric_is_total(enum pr_metric_id id)
{
    return pr_metrics[id].kind == KIND_COUNTER || pr_metrics[id].kind == KIND_HIGH_WATER;
}

bool pr_metric_ages(enum pr_metric_id id)
{
    const struct pr_metric *m = &pr_metrics[id];
    return m->kind != KIND_HIGH_WATER && (m->needs & (READ_STATUS | READ_FD | READ_SCHED));
}

bool pr_metric_is_derived(enum pr_metric_id id)
{
    enum pr_kind kind = pr_metrics[id].kind;
    return kind == KIND_RATE || kind == KIND_RATIO;
}

bool pr_metric_is_single(enum pr_metric_id id)
{
    return pr_metrics[id].scope & (SCOPE_JOB | SCOPE_SYSTEM);
}

const char *pr_metric_kind_name(enum pr_kind kind)
{
    static const char *const names[] = {[KIND_GAUGE] = "gauge",
                                        [KIND_COUNTER] = "counter",
                                        [KIND_RATE] = "rate",
                                        [KIND_RATIO] = "ratio",
                                        [KIND_HIGH_WATER] = "peak"};
    return names[kind];
}

const char *pr_metric_scope_name(unsigned scope)
{
    static const struct {
        unsigned scope;
        const char *name;
    } names[] = {
        {SCOPE_PROC | SCOPE_JOB, "process, job"},
        {SCOPE_JOB, "job"},
        {SCOPE_SYSTEM, "system"},
        {SCOPE_SYSTEM | SCOPE_CORE, "system, core"},
        {SCOPE_SYSTEM | SCOPE_DISK, "system, disk"},
        {SCOPE_SYSTEM | SCOPE_FILESYSTEM, "system, filesystem"},
        {SCOPE_SYSTEM | SCOPE_INTERFACE, "system, interface"},
        {SCOPE_GPU, "gpu"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].scope == scope)
            return names[i].name;
    return "process";
}

const char *pr_mark_name(enum pr_mark mark)
{
    static const char *const names[] = {[MARK_NONE] = NULL,
                                        [MARK_LOWER_BOUND] = "lower bound",
                                        [MARK_FROM_RSS] = "from RSS",
                                        [MARK_CPU_SHARE] = "by share of CPU time",
                                        [MARK_WITH_REAPED] = "with children it has waited for",
                                        [MARK_FEW_SAMPLES] = "known in few samples",
                                        [MARK_AGED] = "up to 20 s old",
                                        [MARK_AGED_CROWD] = "up to 40 s old",
                                        [MARK_ESTIMATED] = "last reading and change of RSS",
                                        [MARK_WHOLE_DEVICE] = "of whole devices that the job uses",
                                        [MARK_FROM_POWER] = "power over time"};
    return names[mark];
}
