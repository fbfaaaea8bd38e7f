/* SPDX-License-Identifier: Apache-2.0 */
/* resource-tracker 0.1: clock ticks, kB, GiB under the name of gb, lines that end with CR LF. */
#include "sink/dialects/fields.h"

#define TICKS  .take = TAKE_DELTA, .times = 100, .shape = SHAPE_WHOLE /* USER_HZ */
#define GROWTH .take = TAKE_DELTA, .shape = SHAPE_WHOLE
#define KB     .per = KIB, .shape = SHAPE_WHOLE
#define SPACE  .per = GIB, .decimals = 2
#define NO_GPU .no_gpu = "0"
#define GPU    NO_GPU, .first = "0", .ended = "0"

/* Theirs by its own formula: what neither is free nor can be taken back. */
static double memory_used(const struct pr_row *row)
{
    const double *v = row->sample->value;
    return v[METRIC_SYSTEM_MEM_TOTAL] - v[METRIC_SYSTEM_MEM_FREE] - v[METRIC_SYSTEM_MEM_BUFFERS] -
           v[METRIC_SYSTEM_MEM_CACHED];
}

#define TIMESTAMP                                                                                  \
    {                                                                                              \
        .name = "timestamp", .number = pr_field_time, .decimals = DECIMALS_ALL,                    \
        .ours = "wall time of the sample, Unix seconds"                                            \
    }

static const struct pr_column process_columns[] = {
    TIMESTAMP,
    {.name = "pid",
     .number = pr_field_root_pid,
     .shape = SHAPE_WHOLE,
     .ours = "pid of the job's first process"},
    {.name = "children",
     .number = pr_field_children,
     .shape = SHAPE_WHOLE,
     .ended = "0",
     .ours = "`procs` less 1",
     .note = "theirs counts its own trackers and misses what other threads have started"},
    {.name = "utime",
     .metric = METRIC_CPU_USER,
     TICKS,
     .note = "theirs is wrong for a command with a blank in its name, and loses processes that "
             "nobody waits for"},
    {.name = "stime", .metric = METRIC_CPU_SYSTEM, TICKS, .note = "as utime"},
    {.name = "cpu_usage",
     .metric = METRIC_CPU_USAGE,
     .decimals = 4,
     .zero = "0",
     .first = "0",
     .ended = "0"},
    {.name = "pss", .metric = METRIC_MEM_PSS, KB, .ended = "0"},
    {.name = "read_bytes", .metric = METRIC_IO_READ, GROWTH},
    {.name = "write_bytes", .metric = METRIC_IO_WRITE, GROWTH},
    {.name = "gpu_usage",
     .metric = METRIC_GPU_USAGE,
     .decimals = DECIMALS_ALL,
     GPU,
     .note = "theirs is 0 where the first GPU is idle, and knows four GPUs"},
    {.name = "gpu_vram", .metric = METRIC_GPU_MEM, .per = MIB, .decimals = DECIMALS_ALL, GPU},
    {.name = "gpu_utilized", .metric = METRIC_GPU_COUNT, .shape = SHAPE_WHOLE, GPU},
};

static const struct pr_column system_columns[] = {
    TIMESTAMP,
    {.name = "processes",
     .metric = METRIC_SYSTEM_PROCS,
     .shape = SHAPE_WHOLE,
     .note = "theirs is the number of forks since boot"},
    {.name = "utime", .metric = METRIC_SYSTEM_CPU_USER, TICKS},
    {.name = "stime",
     .metric = METRIC_SYSTEM_CPU_SYSTEM,
     TICKS,
     .note = "theirs leaves interrupts out"},
    {.name = "cpu_usage",
     .metric = METRIC_SYSTEM_CPU_USAGE,
     .decimals = 4,
     .zero = "0",
     .first = "0",
     .note = "theirs leaves interrupts out"},
    {.name = "memory_free", .metric = METRIC_SYSTEM_MEM_FREE, KB},
    {.name = "memory_used",
     .number = memory_used,
     KB,
     .ours = "total - free - buffers - cached, KiB"},
    {.name = "memory_buffers", .metric = METRIC_SYSTEM_MEM_BUFFERS, KB},
    {.name = "memory_cached",
     .metric = METRIC_SYSTEM_MEM_CACHED,
     KB,
     .note = "with reclaimable kernel memory, which theirs leaves out"},
    {.name = "memory_active_anon", .metric = METRIC_SYSTEM_MEM_ACTIVE_ANON, KB},
    {.name = "memory_inactive_anon", .metric = METRIC_SYSTEM_MEM_INACTIVE_ANON, KB},
    {.name = "disk_read_bytes",
     .metric = METRIC_SYSTEM_DISK_READ,
     GROWTH,
     .note = "theirs takes partitions and what lies on them twice, and sectors of 4 KiB"},
    {.name = "disk_write_bytes",
     .metric = METRIC_SYSTEM_DISK_WRITE,
     GROWTH,
     .note = "as disk_read_bytes"},
    {.name = "disk_space_total_gb",
     .metric = METRIC_SYSTEM_DISK_SPACE_TOTAL,
     SPACE,
     .note = "GiB, as theirs; but a device counts once, not once for each mount"},
    {.name = "disk_space_used_gb",
     .metric = METRIC_SYSTEM_DISK_SPACE_USED,
     SPACE,
     .note = "as disk_space_total_gb"},
    {.name = "disk_space_free_gb",
     .metric = METRIC_SYSTEM_DISK_SPACE_FREE,
     SPACE,
     .note = "as disk_space_total_gb"},
    {.name = "net_recv_bytes",
     .metric = METRIC_SYSTEM_NET_RX,
     GROWTH,
     .note = "theirs takes bridges and what is behind them twice"},
    {.name = "net_sent_bytes", .metric = METRIC_SYSTEM_NET_TX, GROWTH, .note = "as net_recv_bytes"},
    {.name = "gpu_usage",
     .metric = METRIC_SYSTEM_GPU_USAGE,
     .decimals = DECIMALS_ALL,
     NO_GPU,
     .note = "one that does not tell makes theirs drop all behind it"},
    {.name = "gpu_vram",
     .metric = METRIC_SYSTEM_GPU_MEM,
     .per = MIB,
     .decimals = DECIMALS_ALL,
     NO_GPU},
    {.name = "gpu_utilized", .metric = METRIC_SYSTEM_GPU_COUNT, .shape = SHAPE_WHOLE, NO_GPU},
};

#define CSV                                                                                        \
    .each = EACH_SAMPLE, .separator = ",", .newline = "\r\n", .quoting = QUOTE_TEXT,               \
    .absent = "\"\"", .header = true

static const struct pr_table process = {
    .name = "process",
    .file = "process.csv",
    CSV,
    COLUMNS(process_columns),
    .about = "as PidTracker writes it, and the first sample, which is lost there"};
static const struct pr_table system_table = {
    .name = "system",
    .file = "system.csv",
    CSV,
    COLUMNS(system_columns),
    .about = "as SystemTracker writes it, and the first sample, which is lost there"};

static const struct pr_table *const tables[] = {&process, &system_table, NULL};
const struct pr_dialect pr_dialect_resource_tracker_0_1 = {"resource-tracker 0.1 for Python",
                                                           tables};
