/* SPDX-License-Identifier: Apache-2.0 */
/* stouputils' ProcessMetricsMonitor: what it logs to MLflow at each step. */
#include "sink/dialects/fields.h"

static double cpu_percentage(const struct pr_row *row)
{
    return row->sample->value[METRIC_CPU_PERCENT] / row->sample->limit[LIMIT_CPU];
}

static double memory_percentage(const struct pr_row *row)
{
    return 100 * (row->sample->value[METRIC_MEM_RSS] / MIB) /
           (row->sample->limit[LIMIT_MEMORY] / MIB);
}

#define FULL      .decimals = DECIMALS_ALL
#define MEGABYTES .per = MIB, FULL

static const struct pr_column columns[] = {
    {.name = "process/cpu_usage_percentage",
     .number = cpu_percentage,
     FULL,
     .ours = "`cpu.percent` by --cpu-total",
     .note = "theirs does not divide, though its document says so; a process counts from its "
             "start, not from its second sample"},
    {.name = "process/memory_rss_megabytes", .metric = METRIC_MEM_RSS, MEGABYTES},
    {.name = "process/memory_vms_megabytes", .metric = METRIC_MEM_VMS, MEGABYTES},
    {.name = "process/memory_uss_megabytes",
     .metric = METRIC_MEM_USS,
     MEGABYTES,
     .note = "theirs takes RSS where it cannot read it"},
    {.name = "process/memory_usage_percentage",
     .number = memory_percentage,
     FULL,
     .ours = "`mem.rss` by --memory-total",
     .note = "theirs is of the machine, whatever the limit of the cgroup"},
    {.name = "process/num_threads", .metric = METRIC_THREADS, FULL},
    {.name = "process/num_fds", .metric = METRIC_FDS, FULL},
    {.name = "process/io_read_megabytes",
     .metric = METRIC_IO_READ,
     MEGABYTES,
     .note = "theirs loses processes that nobody waits for"},
    {.name = "process/io_write_megabytes",
     .metric = METRIC_IO_WRITE,
     MEGABYTES,
     .note = "as io_read_megabytes"},
};

static const struct pr_table metrics = {
    .name = "metrics",
    .file = "process_metrics.jsonl",
    .each = EACH_SAMPLE,
    .layout = LAYOUT_OBJECT,
    .json = true,
    .absent = "null",
    COLUMNS(columns),
    .about = "one object for each sample, with the names as they are logged"};
static const struct pr_table metrics_csv = {.name = "metrics-csv",
                                            .file = "process_metrics.csv",
                                            .each = EACH_SAMPLE,
                                            .separator = ",",
                                            .newline = "\n",
                                            .header = true,
                                            COLUMNS(columns),
                                            .about =
                                                "the same as CSV; the tool itself writes no file"};

static const struct pr_table *const tables[] = {&metrics, &metrics_csv, NULL};
const struct pr_dialect pr_dialect_stouputils = {"stouputils, ProcessMetricsMonitor", tables};
