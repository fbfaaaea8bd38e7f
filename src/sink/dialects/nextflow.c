/* SPDX-License-Identifier: Apache-2.0 */
/* Nextflow's .command.trace, version 2: one line for each value, at the end of a task. */
#include <math.h>

#include "sink/dialects/fields.h"

static double unknown(const struct pr_row *row)
{
    (void)row;
    return NAN;
}

static double memory_share(const struct pr_row *row)
{
    const struct pr_stat *total = &row->stats->metric[METRIC_SYSTEM_MEM_TOTAL];
    return total->known ? pr_stats_peak(row->stats, METRIC_MEM_RSS) / total->last : NAN;
}

#define NEAREST .shape = SHAPE_FIXED
#define TOTAL   .take = TAKE_TOTAL, .shape = SHAPE_WHOLE
#define PEAK    .take = TAKE_PEAK, .per = KIB, .shape = SHAPE_WHOLE

static const struct pr_column columns[] = {
    {.name = "realtime",
     .number = pr_field_elapsed,
     .times = 1000,
     .shape = SHAPE_WHOLE,
     .ours = "milliseconds since the start"},
    {.name = "%cpu",
     .number = pr_field_load,
     .times = 10,
     NEAREST,
     .ours = "`cpu.time` by the duration, tenths of a percent of one core"},
    {.name = "rchar", .metric = METRIC_IO_RCHAR, TOTAL},
    {.name = "wchar", .metric = METRIC_IO_WCHAR, TOTAL},
    {.name = "syscr",
     .number = unknown,
     .shape = SHAPE_WHOLE,
     .ours = "not measured: nothing stands there"},
    {.name = "syscw",
     .number = unknown,
     .shape = SHAPE_WHOLE,
     .ours = "not measured: nothing stands there"},
    {.name = "read_bytes", .metric = METRIC_IO_READ, TOTAL},
    {.name = "write_bytes", .metric = METRIC_IO_WRITE, TOTAL},
    {.name = "%mem",
     .number = memory_share,
     .times = 1000,
     NEAREST,
     .ours = "peak of `mem.rss` by the machine's memory, tenths of a percent"},
    {.name = "vmem", .metric = METRIC_MEM_VMS, PEAK},
    {.name = "rss", .metric = METRIC_MEM_RSS, PEAK},
    {.name = "peak_vmem",
     .metric = METRIC_MEM_VMS,
     PEAK,
     .note = "theirs adds the highest of each process, whenever that was"},
    {.name = "peak_rss",
     .metric = METRIC_MEM_RSS_PEAK,
     PEAK,
     .note = "theirs adds the highest of each process, whenever that was"},
    {.name = "vol_ctxt", .metric = METRIC_CTX_VOLUNTARY, TOTAL},
    {.name = "inv_ctxt", .metric = METRIC_CTX_INVOLUNTARY, TOTAL},
};

static const struct pr_table trace = {.name = "trace",
                                      .file = ".command.trace",
                                      .each = EACH_RUN,
                                      .layout = LAYOUT_LINES,
                                      .separator = "=",
                                      .newline = "\n",
                                      .title = "nextflow.trace/v2\n",
                                      COLUMNS(columns),
                                      .about = "memory in KiB; what is not known is empty, as "
                                               "where Nextflow itself cannot tell"};

static const struct pr_table *const tables[] = {&trace, NULL};
const struct pr_dialect pr_dialect_nextflow = {"Nextflow, .command.trace version 2", tables};
