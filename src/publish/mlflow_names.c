/* SPDX-License-Identifier: Apache-2.0 */
/* The job has the names, units and meaning of the dialect stouputils. The machine has those of
 * MLflow's own monitor (its megabytes are 1e6 bytes), so that they are on its page of system
 * metrics. */
#include "publish/mlflow_names.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PROCESS    "process/" /* as the dialect has it */
#define MEGA       1e6
#define ALL        .decimals = DECIMALS_ALL
#define MEGABYTES  .per = MEGA, ALL
#define PERCENTAGE .times = 100, ALL

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

/* Of all cores that the machine has, and never more: the kernel counts by ticks, which at short
 * intervals may fall on either side of a sample. */
static double cpu(const struct pr_row *row)
{
    double cores = 0;
    for (size_t i = 0; i < row->sample->device_count; i++)
        cores += row->sample->devices[i].kind == DEVICE_CORE;
    double v = share(row->sample->value[METRIC_SYSTEM_CPU_USAGE], cores);
    return v > 1 ? 1 : v;
}

static double memory(const struct pr_row *row)
{
    return share(row->sample->value[METRIC_SYSTEM_MEM_USED],
                 row->sample->value[METRIC_SYSTEM_MEM_TOTAL]);
}

static double disk(const struct pr_row *row)
{
    return share(row->sample->value[METRIC_SYSTEM_DISK_SPACE_USED],
                 row->sample->value[METRIC_SYSTEM_DISK_SPACE_TOTAL]);
}

static double of_gpu(const struct pr_row *row, enum pr_metric_id id)
{
    return row->gpu->value[pr_device_slot(DEVICE_GPU, id)];
}

static double gpu_memory(const struct pr_row *row)
{
    return share(of_gpu(row, METRIC_GPU_MEM_USED), of_gpu(row, METRIC_GPU_MEM_TOTAL));
}

static double gpu_power(const struct pr_row *row)
{
    return share(of_gpu(row, METRIC_GPU_POWER), of_gpu(row, METRIC_GPU_POWER_LIMIT));
}

static const struct pr_column system_columns[] = {
    {.name = "cpu_utilization_percentage", .number = cpu, PERCENTAGE},
    {.name = "system_memory_usage_megabytes", .metric = METRIC_SYSTEM_MEM_USED, MEGABYTES},
    {.name = "system_memory_usage_percentage", .number = memory, PERCENTAGE},
    {.name = "disk_usage_percentage", .number = disk, PERCENTAGE},
    {.name = "disk_usage_megabytes", .metric = METRIC_SYSTEM_DISK_SPACE_USED, MEGABYTES},
    {.name = "disk_available_megabytes", .metric = METRIC_SYSTEM_DISK_SPACE_FREE, MEGABYTES},
    {.name = "network_receive_megabytes", .metric = METRIC_SYSTEM_NET_RX, MEGABYTES},
    {.name = "network_transmit_megabytes", .metric = METRIC_SYSTEM_NET_TX, MEGABYTES},
};
/* Behind "gpu_3_". */
static const struct pr_column gpu_columns[] = {
    {.name = "memory_usage_percentage", .number = gpu_memory, PERCENTAGE},
    {.name = "memory_usage_megabytes", .metric = METRIC_GPU_MEM_USED, MEGABYTES},
    {.name = "utilization_percentage", .metric = METRIC_GPU_UTIL, PERCENTAGE},
    {.name = "power_usage_watts", .metric = METRIC_GPU_POWER, ALL},
    {.name = "power_usage_percentage", .number = gpu_power, PERCENTAGE},
};
static const struct pr_table system_table = {.each = EACH_SAMPLE, COLUMNS(system_columns)},
                             gpu_table = {.each = EACH_GPU, COLUMNS(gpu_columns)};

int pr_mlflow_names_init(struct pr_mlflow_names *n, const char *prefix, const char *node)
{
    const struct pr_table *const tables[MLFLOW_TABLES] = {
        [MLFLOW_PROCESS] = pr_dialect_find("stouputils")->tables[0],
        [MLFLOW_SYSTEM] = &system_table,
        [MLFLOW_GPU] = &gpu_table};
    int code = 0;
    *n = (struct pr_mlflow_names){.prefix = prefix, .node = node};
    for (int i = 0; i < MLFLOW_TABLES && code == 0; i++)
        code = pr_table_state_init(&n->tables[i], tables[i]);
    return code;
}

void pr_mlflow_names_done(struct pr_mlflow_names *n)
{
    for (int i = 0; i < MLFLOW_TABLES; i++)
        pr_table_state_done(&n->tables[i]);
}

static void write_key(const struct pr_mlflow_names *n, int table, const char *name, int gpu,
                      char *key, size_t size)
{
    const char *slash = *n->node ? "/" : "";
    if (table == MLFLOW_PROCESS)
        snprintf(key, size, "%s%s%s%s", n->prefix, n->node, slash, name + strlen(PROCESS));
    else if (table == MLFLOW_SYSTEM)
        snprintf(key, size, "system/%s%s%s", n->node, slash, name);
    else
        snprintf(key, size, "system/%s%sgpu_%d_%s", n->node, slash, gpu, name);
}

void pr_mlflow_values(struct pr_mlflow_names *n, const struct proctor_snapshot *s,
                      pr_mlflow_value_fn *each, void *of)
{
    char key[256];
    for (int table = 0; table < MLFLOW_TABLES; table++) {
        const struct pr_table_state *state = &n->tables[table];
        struct pr_row row = {.sample = s};
        size_t cursor = 0;
        while (pr_row_next(state->table, &row, &cursor) && row.index < MLFLOW_GPUS)
            for (int i = 0; i < state->table->column_count; i++) {
                double v = pr_row_number(state, i, &row);
                if (!isfinite(v))
                    continue;
                write_key(n, table, state->table->columns[i].name, row.index, key, sizeof key);
                each(of, key, v);
            }
    }
}
