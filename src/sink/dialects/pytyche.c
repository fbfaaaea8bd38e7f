/* SPDX-License-Identifier: Apache-2.0 */
/* pytyche's HWMonitor: what nvidia-smi wrote for it, its own samples of the CPU, and the summary of
 * all three. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sink/dialects/fields.h"
#include "util/clock.h"

/* "2026/11/15 06:08:47.846", the clock of the place, as nvidia-smi has it. */
static bool local_time(const struct pr_row *row, struct pr_buf *out)
{
    int64_t ms = row->sample->time / 1000000;
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    char text[32];
    if (!localtime_r(&seconds, &t) || !strftime(text, sizeof text, "%Y/%m/%d %H:%M:%S", &t))
        return false;
    pr_buf_printf(out, "%s.%03d", text, (int)(ms % 1000));
    return true;
}

/* "2026-11-15T06:08:47.846+00:00". */
static bool iso_time(const struct pr_row *row, struct pr_buf *out)
{
    char text[40];
    pr_clock_rfc3339(row->sample->time, text, sizeof text);
    pr_buf_printf(out, "%.*s+00:00", (int)strcspn(text, "Z"), text);
    return true;
}

static double number_of_gpu(const struct pr_row *row)
{
    return row->index;
}

/* All that CPUs can do; guests are in user mode. */
static double all_cpu_time(const struct pr_row *row)
{
    const double *v = row->sample->value;
    return v[METRIC_SYSTEM_CPU_USER] + v[METRIC_SYSTEM_CPU_SYSTEM] + v[METRIC_SYSTEM_CPU_IDLE] +
           v[METRIC_SYSTEM_CPU_IOWAIT] + v[METRIC_SYSTEM_CPU_STEAL];
}

static double unknown(const struct pr_row *row)
{
    (void)row;
    return NAN;
}

#define WHOLE   .shape = SHAPE_FIXED
#define PERCENT .times = 100, WHOLE
#define MEMORY  .per = MIB, WHOLE
#define MHZ     .per = 1e6, WHOLE

enum { HW_UTIL = 1, HW_MEMORY = 3, HW_POWER = 5 };
static const struct pr_column hw_columns[] = {
    {.name = "timestamp", .text = local_time, .shape = SHAPE_TEXT, .ours = "local time"},
    [HW_UTIL] = {.name = "utilization.gpu", .metric = METRIC_GPU_UTIL, PERCENT},
    {.name = "utilization.memory", .metric = METRIC_GPU_MEM_UTIL, PERCENT},
    [HW_MEMORY] = {.name = "memory.used", .metric = METRIC_GPU_MEM_USED, MEMORY, .needed = true},
    {.name = "memory.total", .metric = METRIC_GPU_MEM_TOTAL, MEMORY},
    [HW_POWER] = {.name = "power.draw",
                  .metric = METRIC_GPU_POWER,
                  .shape = SHAPE_FIXED,
                  .decimals = 2},
    {.name = "temperature.gpu", .metric = METRIC_GPU_TEMP, WHOLE},
    {.name = "clocks.current.sm", .metric = METRIC_GPU_CLOCK_SM, MHZ},
    {.name = "clocks.current.memory", .metric = METRIC_GPU_CLOCK_MEM, MHZ},
};

enum { DMON_MEM = 2 };
static const struct pr_column dmon_columns[] = {
    {.name = "gpu", .number = number_of_gpu, WHOLE, .width = 5, .ours = "which GPU, from 0"},
    {.name = "sm", .metric = METRIC_GPU_UTIL, PERCENT, .width = 6},
    [DMON_MEM] = {.name = "mem",
                  .metric = METRIC_GPU_MEM_UTIL,
                  PERCENT,
                  .width = 6,
                  .note = "present drivers have bar1 in MB there, which theirs then takes for it"},
    {.name = "fb", .metric = METRIC_GPU_MEM_USED, MEMORY, .width = 6, .needed = true},
};

#define SHARE                                                                                      \
    .take = TAKE_SHARE, .share_of = all_cpu_time, .times = 100, .shape = SHAPE_FIXED,              \
    .decimals = 1, .needed = true

enum { CPU_USR = 1, CPU_IDLE = 2 };
static const struct pr_column cpu_columns[] = {
    {.name = "timestamp", .text = iso_time, .shape = SHAPE_TEXT, .ours = "UTC"},
    [CPU_USR] = {.name = "usr_pct",
                 .metric = METRIC_SYSTEM_CPU_USER,
                 SHARE,
                 .note = "theirs is too low on a machine with guests, whom it counts twice"},
    [CPU_IDLE] = {.name = "idle_pct",
                  .metric = METRIC_SYSTEM_CPU_IDLE,
                  SHARE,
                  .note = "as usr_pct"},
};

static const struct pr_table hw_metrics = {
    .name = "hw_metrics",
    .file = "hw_metrics.csv",
    .each = EACH_GPU,
    .separator = ", ",
    .newline = "\n",
    .absent = "[N/A]",
    COLUMNS(hw_columns),
    .about = "a row for each GPU, MiB, W and MHz, without a header: as `nvidia-smi --query-gpu`"};
static const struct pr_table dmon = {
    .name = "dmon",
    .file = "hw_dmon.csv",
    .each = EACH_GPU,
    .separator = " ",
    .newline = " \n",
    .absent = "-",
    .title = "# gpu     sm    mem     fb \n# Idx      %      %     MB \n",
    COLUMNS(dmon_columns),
    .about = "a row for each GPU: the columns that the reader of `nvidia-smi dmon` expects"};
static const struct pr_table cpu_metrics = {
    .name = "cpu_metrics",
    .file = "cpu_metrics.csv",
    .each = EACH_SAMPLE,
    .separator = ",",
    .newline = "\n",
    .header = true,
    COLUMNS(cpu_columns),
    .about = "of the whole machine; a sample in which it was not read has no row"};

#define MEAN_OF(table, which) .take = TAKE_ROWS_MEAN, .rows = &(table), .column = (which)
#define MAX_OF(table, which)  .take = TAKE_ROWS_MAX, .rows = &(table), .column = (which)
#define ONE                   .decimals = 1, .absent = "0.0"

static const struct pr_column summary_columns[] = {
    {.name = "peak_vram_mb", MAX_OF(hw_metrics, HW_MEMORY), ONE},
    {.name = "gpu_util_mean_pct",
     MEAN_OF(hw_metrics, HW_UTIL),
     ONE,
     .note = "theirs drops a row in which any value is not known"},
    {.name = "gpu_util_max_pct", MAX_OF(hw_metrics, HW_UTIL), ONE},
    {.name = "power_watts_mean", MEAN_OF(hw_metrics, HW_POWER), ONE},
    {.name = "power_watts_max", MAX_OF(hw_metrics, HW_POWER), ONE},
    {.name = "cpu_usr_mean_pct", MEAN_OF(cpu_metrics, CPU_USR), ONE},
    {.name = "cpu_idle_mean_pct", MEAN_OF(cpu_metrics, CPU_IDLE), ONE},
    {.name = "jax_peak_bytes_mb",
     .number = unknown,
     ONE,
     .if_positive = "jax_peak_bytes_mb",
     .ours = "JAX alone could tell: left out, as theirs leaves it out"},
    {.name = "mem_util_mean_pct",
     MEAN_OF(dmon, DMON_MEM),
     ONE,
     .if_positive = "mem_util_mean_pct",
     .note = "as mem of dmon"},
    {.name = "mem_util_max_pct",
     MAX_OF(dmon, DMON_MEM),
     ONE,
     .if_positive = "mem_util_mean_pct",
     .note = "as mem of dmon"},
};

static const struct pr_table resource_summary = {
    .name = "resource-summary",
    .file = "resource_summary.json",
    .each = EACH_RUN,
    .layout = LAYOUT_OBJECT,
    .json = true,
    COLUMNS(summary_columns),
    .about = "ResourceSummary.to_dict() of the three above: means and peaks of what is written "
             "there, mem_util_* only where its mean is above 0"};

static const struct pr_table *const tables[] = {&hw_metrics, &dmon, &cpu_metrics, &resource_summary,
                                                NULL};
const struct pr_dialect pr_dialect_pytyche = {"pytyche, diagnostics.run_monitor", tables};
