/* SPDX-License-Identifier: Apache-2.0 */
/* resource-tracker 0.5, the Python package. Its numbers are str() of int and float, and a growth of
 * nothing is the int 0; None is "". Its own reader takes the mean of what it finds, and a "" is
 * none: so what a run begins and ends with is 0, as it is there. */
#include "sink/dialects/fields.h"

#define SECONDS .take = TAKE_DELTA, .decimals = 6, .zero = "0"
#define GROWTH  .take = TAKE_DELTA, .shape = SHAPE_WHOLE
#define MEMORY  .per = MIB, .decimals = 4
#define SPACE   .per = 1e9, .decimals = 2
#define NO_GPU  .no_gpu = "0"
#define GPU     NO_GPU, .first = "0", .ended = "0"

#define TIMESTAMP                                                                                  \
    {                                                                                              \
        .name = "timestamp", .number = pr_field_time, .decimals = 3,                               \
        .ours = "wall time of the sample, Unix seconds"                                            \
    }

/* The prefix is that of the combined table. */
#define PROCESS(p)                                                                                 \
    {.name = p "pid",                                                                              \
     .number = pr_field_root_pid,                                                                  \
     .shape = SHAPE_WHOLE,                                                                         \
     .ours = "pid of the job's first process"},                                                    \
        {.name = p "children",                                                                     \
         .number = pr_field_children,                                                              \
         .shape = SHAPE_WHOLE,                                                                     \
         .zero = "\"\"",                                                                           \
         .ours = "`procs` less 1",                                                                 \
         .note = "theirs counts its own trackers and misses what other threads have started"},     \
        {.name = p "utime",                                                                        \
         .metric = METRIC_CPU_USER,                                                                \
         SECONDS,                                                                                  \
         .note = "theirs loses processes that nobody waits for, and then hides all else"},         \
        {.name = p "stime", .metric = METRIC_CPU_SYSTEM, SECONDS, .note = "as utime"},             \
        {.name = p "cpu_usage",                                                                    \
         .metric = METRIC_CPU_USAGE,                                                               \
         .decimals = 4,                                                                            \
         .zero = "0",                                                                              \
         .first = "0",                                                                             \
         .ended = "0"},                                                                            \
        {.name = p "memory_mib", .metric = METRIC_MEM_PSS, MEMORY, .ended = "0.0"},                \
        {.name = p "disk_read_bytes", .metric = METRIC_IO_READ, GROWTH},                           \
        {.name = p "disk_write_bytes", .metric = METRIC_IO_WRITE, GROWTH},                         \
        {.name = p "gpu_usage",                                                                    \
         .metric = METRIC_GPU_USAGE,                                                               \
         .decimals = 4,                                                                            \
         GPU,                                                                                      \
         .note = "theirs is 0 where the first GPU is idle, and knows four GPUs"},                  \
        {.name = p "gpu_vram_mib", .metric = METRIC_GPU_MEM, MEMORY, GPU},                         \
    {                                                                                              \
        .name = p "gpu_utilized", .metric = METRIC_GPU_COUNT, .shape = SHAPE_WHOLE, GPU            \
    }

#define SYSTEM(p)                                                                                  \
    {.name = p "processes", .metric = METRIC_SYSTEM_PROCS, .shape = SHAPE_WHOLE},                  \
        {.name = p "utime", .metric = METRIC_SYSTEM_CPU_USER, SECONDS},                            \
        {.name = p "stime",                                                                        \
         .metric = METRIC_SYSTEM_CPU_SYSTEM,                                                       \
         SECONDS,                                                                                  \
         .note = "theirs leaves interrupts out"},                                                  \
        {.name = p "cpu_usage",                                                                    \
         .metric = METRIC_SYSTEM_CPU_USAGE,                                                        \
         .decimals = 4,                                                                            \
         .zero = "0",                                                                              \
         .first = "0",                                                                             \
         .note = "theirs leaves interrupts out"},                                                  \
        {.name = p "memory_free_mib", .metric = METRIC_SYSTEM_MEM_FREE, MEMORY},                   \
        {.name = p "memory_used_mib", .metric = METRIC_SYSTEM_MEM_USED, MEMORY},                   \
        {.name = p "memory_buffers_mib", .metric = METRIC_SYSTEM_MEM_BUFFERS, MEMORY},             \
        {.name = p "memory_cached_mib", .metric = METRIC_SYSTEM_MEM_CACHED, MEMORY},               \
        {.name = p "memory_active_mib", .metric = METRIC_SYSTEM_MEM_ACTIVE, MEMORY},               \
        {.name = p "memory_inactive_mib", .metric = METRIC_SYSTEM_MEM_INACTIVE, MEMORY},           \
        {.name = p "disk_read_bytes",                                                              \
         .metric = METRIC_SYSTEM_DISK_READ,                                                        \
         GROWTH,                                                                                   \
         .note = "theirs takes partitions and what lies on them twice, and sectors of 4 KiB"},     \
        {.name = p "disk_write_bytes",                                                             \
         .metric = METRIC_SYSTEM_DISK_WRITE,                                                       \
         GROWTH,                                                                                   \
         .note = "as disk_read_bytes"},                                                            \
        {.name = p "disk_space_total_gb",                                                          \
         .metric = METRIC_SYSTEM_DISK_SPACE_TOTAL,                                                 \
         SPACE,                                                                                    \
         .note = "theirs counts a device once for each mount"},                                    \
        {.name = p "disk_space_used_gb",                                                           \
         .metric = METRIC_SYSTEM_DISK_SPACE_USED,                                                  \
         SPACE,                                                                                    \
         .note = "as disk_space_total_gb"},                                                        \
        {.name = p "disk_space_free_gb",                                                           \
         .metric = METRIC_SYSTEM_DISK_SPACE_FREE,                                                  \
         SPACE,                                                                                    \
         .note = "as disk_space_total_gb"},                                                        \
        {.name = p "net_recv_bytes",                                                               \
         .metric = METRIC_SYSTEM_NET_RX,                                                           \
         GROWTH,                                                                                   \
         .note = "theirs takes bridges and what is behind them twice, or lo, too"},                \
        {.name = p "net_sent_bytes",                                                               \
         .metric = METRIC_SYSTEM_NET_TX,                                                           \
         GROWTH,                                                                                   \
         .note = "as net_recv_bytes"},                                                             \
        {.name = p "gpu_usage",                                                                    \
         .metric = METRIC_SYSTEM_GPU_USAGE,                                                        \
         .decimals = 4,                                                                            \
         NO_GPU,                                                                                   \
         .note = "one that does not tell makes theirs drop all behind it"},                        \
        {.name = p "gpu_vram_mib", .metric = METRIC_SYSTEM_GPU_MEM, MEMORY, NO_GPU},               \
    {                                                                                              \
        .name = p "gpu_utilized", .metric = METRIC_SYSTEM_GPU_COUNT, .shape = SHAPE_WHOLE, NO_GPU  \
    }

static const struct pr_column process_columns[] = {TIMESTAMP, PROCESS("")};
static const struct pr_column system_columns[] = {TIMESTAMP, SYSTEM("")};
static const struct pr_column combined_columns[] = {TIMESTAMP, SYSTEM("system_"),
                                                    PROCESS("process_")};

#define CSV                                                                                        \
    .each = EACH_SAMPLE, .separator = ",", .quoting = QUOTE_TEXT, .absent = "\"\"", .header = true

static const struct pr_table process = {
    .name = "process",
    .file = "process.csv",
    CSV,
    .newline = "\n",
    COLUMNS(process_columns),
    .about = "as ProcessTracker writes it, and the first sample, which is lost there"};
static const struct pr_table system_table = {
    .name = "system",
    .file = "system.csv",
    CSV,
    .newline = "\n",
    COLUMNS(system_columns),
    .about = "as SystemTracker writes it, and the first sample, which is lost there"};
static const struct pr_table combined = {.name = "combined",
                                         .file = "combined.csv",
                                         CSV,
                                         .newline = "\r\n",
                                         COLUMNS(combined_columns),
                                         .about =
                                             "both, as get_combined_metrics().to_csv() has them"};

static const struct pr_table *const tables[] = {&process, &system_table, &combined, NULL};
const struct pr_dialect pr_dialect_resource_tracker = {"resource-tracker 0.5 for Python", tables};
