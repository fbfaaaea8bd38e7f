/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/dialects/fields.h"

#include <math.h>

#include "util/clock.h"

double pr_field_time(const struct pr_row *row)
{
    int64_t ns = row->sample->time; /* at once they would be more digits than a double has */
    return (double)(ns / NS_PER_S) + pr_seconds(ns % NS_PER_S);
}

double pr_field_elapsed(const struct pr_row *row)
{
    return pr_seconds(row->sample->elapsed);
}

double pr_field_pid(const struct pr_row *row)
{
    return row->member ? row->member->pid : NAN;
}

double pr_field_root_pid(const struct pr_row *row)
{
    return row->job->pid > 0 ? row->job->pid : NAN;
}

double pr_field_children(const struct pr_row *row)
{
    double processes = row->sample->value[METRIC_PROCS];
    return processes >= 1 ? processes - 1 : NAN;
}

double pr_field_load(const struct pr_row *row)
{
    double seconds = pr_field_elapsed(row);
    return seconds > 0 ? pr_stats_total(row->stats, METRIC_CPU_TIME) / seconds * 100 : NAN;
}
