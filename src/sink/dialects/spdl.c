/* SPDX-License-Identifier: Apache-2.0 */
/* SPDL's ProcessGroupResourceUsage: one object for each snapshot. */
#include <math.h>

#include "sink/dialects/fields.h"

static double monitor_pid(const struct pr_row *row)
{
    return row->job->recorder > 0 ? row->job->recorder : NAN;
}

static double group(const struct pr_row *row)
{
    return row->job->group > 0 ? row->job->group : NAN;
}

#define BYTES .shape = SHAPE_WHOLE
#define NET   .take = TAKE_DELTA, .shape = SHAPE_WHOLE, .from_second = true

static const struct pr_column columns[] = {
    {.name = "pid", .number = monitor_pid, .shape = SHAPE_WHOLE, .ours = "pid of the recorder"},
    {.name = "pgid",
     .number = group,
     .shape = SHAPE_WHOLE,
     .ours = "process group of the job, or the one that is watched"},
    {.name = "cpu_percent",
     .metric = METRIC_CPU_PERCENT,
     .decimals = DECIMALS_ALL,
     .note = "theirs falls below 0 when a process ends"},
    {.name = "rss_bytes",
     .metric = METRIC_MEM_RSS,
     BYTES,
     .note = "theirs counts its own monitor, which shares all pages with who started it"},
    {.name = "pss_bytes",
     .metric = METRIC_MEM_PSS,
     BYTES,
     .note = "theirs is too small where some of it cannot be read"},
    {.name = "private_bytes", .metric = METRIC_MEM_USS, BYTES, .note = "with huge pages"},
    {.name = "disk_read_bytes",
     .metric = METRIC_IO_READ,
     BYTES,
     .note = "theirs loses what processes have read that have ended"},
    {.name = "disk_write_bytes", .metric = METRIC_IO_WRITE, BYTES, .note = "as disk_read_bytes"},
    {.name = "num_procs",
     .metric = METRIC_PROCS,
     .shape = SHAPE_WHOLE,
     .note = "theirs counts its own monitor and zombies"},
    {.name = "net_rx_bytes", .metric = METRIC_SYSTEM_NET_RX, NET},
    {.name = "net_tx_bytes", .metric = METRIC_SYSTEM_NET_TX, NET},
};

static const struct pr_table usage = {.name = "usage",
                                      .file = "process_group_usage.jsonl",
                                      .each = EACH_SAMPLE,
                                      .layout = LAYOUT_OBJECT,
                                      .json = true,
                                      .absent = "null",
                                      COLUMNS(columns),
                                      .about = "the fields of the dataclass; null is its None"};

static const struct pr_table *const tables[] = {&usage, NULL};
const struct pr_dialect pr_dialect_spdl = {"SPDL 0.6, ProcessGroupStatsMonitor", tables};
