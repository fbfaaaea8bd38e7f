/* SPDX-License-Identifier: Apache-2.0 */
/* The public API over the table of metrics. */
#include "core/metric.h"
#include "proctor/proctor.h"

size_t proctor_metrics(void)
{
    return METRIC_COUNT;
}

static const struct pr_metric *metric(size_t i)
{
    return i < METRIC_COUNT ? &pr_metrics[i] : NULL;
}

const char *proctor_metric_key(size_t i)
{
    return metric(i) ? metric(i)->key : NULL;
}

const char *proctor_metric_unit(size_t i)
{
    return metric(i) ? pr_units_name(metric(i)->unit) : NULL;
}

const char *proctor_metric_kind(size_t i)
{
    return metric(i) ? pr_metric_kind_name(metric(i)->kind) : NULL;
}

const char *proctor_metric_scope(size_t i)
{
    return metric(i) ? pr_metric_scope_name(metric(i)->scope) : NULL;
}

const char *proctor_metric_help(size_t i)
{
    return metric(i) ? metric(i)->help : NULL;
}
