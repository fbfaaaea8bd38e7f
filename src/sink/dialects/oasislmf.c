/* SPDX-License-Identifier: Apache-2.0 */
/* OasisLMF's resource monitor: a row for each process in each sample. */
#include "sink/dialects/fields.h"

static bool tool(const struct pr_row *row, struct pr_buf *out)
{
    pr_buf_str(out, row->member->match ? row->member->match : row->member->comm);
    return true;
}

#define KB .per = KIB, .shape = SHAPE_WHOLE

static const struct pr_column columns[] = {
    {.name = "timestamp",
     .number = pr_field_time,
     .decimals = DECIMALS_ALL,
     .ours = "wall time of the sample, Unix seconds"},
    {.name = "tool",
     .text = tool,
     .shape = SHAPE_TEXT,
     .ours = "the name of the --match that it belongs to, else its command",
     .note = "theirs takes any process of the machine that mentions a tool's name"},
    {.name = "pid", .number = pr_field_pid, .shape = SHAPE_WHOLE, .ours = "pid of the process"},
    {.name = "cpu_pct",
     .metric = METRIC_CPU_PERCENT,
     .decimals = 1,
     .note = "theirs is 0 in the first row of a process"},
    {.name = "cpu_user_s", .metric = METRIC_CPU_USER, .decimals = 3},
    {.name = "cpu_sys_s", .metric = METRIC_CPU_SYSTEM, .decimals = 3},
    {.name = "rss_kb", .metric = METRIC_MEM_RSS, KB},
    {.name = "uss_kb", .metric = METRIC_MEM_USS, KB},
    {.name = "pss_kb", .metric = METRIC_MEM_PSS, KB},
};

static const struct pr_table processes = {
    .name = "processes",
    .file = "resource_monitor.csv",
    .each = EACH_PROCESS,
    .separator = ",",
    .newline = "\r\n",
    .quoting = QUOTE_WHERE_NEEDED,
    .header = true,
    COLUMNS(columns),
    .about = "a process whose memory could not be read has a row all the same; their own reader "
             "passes over it"};

static const struct pr_table *const tables[] = {&processes, NULL};
const struct pr_dialect pr_dialect_oasislmf = {"OasisLMF 2.5, resource monitor", tables};
