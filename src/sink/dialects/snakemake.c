/* SPDX-License-Identifier: Apache-2.0 */
/* Snakemake's benchmark files: one row for the whole job. */
#include <math.h>

#include "sink/dialects/fields.h"

static bool h_m_s(const struct pr_row *row, struct pr_buf *out)
{
    long s = (long)pr_field_elapsed(row), days = s / 86400;
    if (days)
        pr_buf_printf(out, "%ld day%s, ", days, days == 1 ? "" : "s");
    pr_buf_printf(out, "%ld:%02ld:%02ld", s / 3600 % 24, s / 60 % 60, s % 60);
    return true;
}

#define TWO   .shape = SHAPE_FIXED, .decimals = 2
#define PEAK  .take = TAKE_PEAK, .per = MIB, TWO
#define TOTAL .take = TAKE_TOTAL, TWO

static const struct pr_column columns[] = {
    {.name = "s", .number = pr_field_elapsed, TWO, .ours = "seconds since the start"},
    {.name = "h:m:s", .text = h_m_s, .shape = SHAPE_TEXT, .ours = "the same, whole seconds"},
    {.name = "max_rss",
     .metric = METRIC_MEM_RSS_PEAK,
     PEAK,
     .note = "theirs misses what was between its samples, at first two a second, then one in 30 s"},
    {.name = "max_vms", .metric = METRIC_MEM_VMS, PEAK},
    {.name = "max_uss", .metric = METRIC_MEM_USS, PEAK},
    {.name = "max_pss", .metric = METRIC_MEM_PSS, PEAK},
    {.name = "io_in",
     .metric = METRIC_IO_READ,
     .per = MIB,
     TOTAL,
     .absent = "-",
     .note = "theirs loses processes that have ended"},
    {.name = "io_out",
     .metric = METRIC_IO_WRITE,
     .per = MIB,
     TOTAL,
     .absent = "-",
     .note = "as io_in"},
    {.name = "mean_load",
     .number = pr_field_load,
     TWO,
     .ours = "`cpu.time` by the duration, percent of one core"},
    {.name = "cpu_time", .metric = METRIC_CPU_TIME, TOTAL},
};

static const struct pr_table benchmark = {.name = "benchmark",
                                          .file = "benchmark.tsv",
                                          .each = EACH_RUN,
                                          .separator = "\t",
                                          .newline = "\n",
                                          .absent = "NA",
                                          .header = true,
                                          COLUMNS(columns),
                                          .about = "MiB and seconds"};

static const struct pr_table *const tables[] = {&benchmark, NULL};
const struct pr_dialect pr_dialect_snakemake = {"Snakemake 9, benchmark files", tables};
