/* SPDX-License-Identifier: Apache-2.0 */
/* Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/{memory,cpuacct,pids}.rst. Surprises:
 * `file` of version 2 and `cache` of version 1 have shared memory in them; without total_ the lines
 * of version 1 are of the group alone, without those below it; the `kernel` of memory.stat came
 * with Linux 5.18, and its parts do not make up the whole; version 1 counts time in ns. */
#include "source/cgroup_files.h"

const char *const pr_cgroup_controllers[ACCOUNT_COUNT] = {[ACCOUNT_MEMORY] = "memory",
                                                          [ACCOUNT_USAGE] = "cpuacct",
                                                          [ACCOUNT_THROTTLE] = "cpu",
                                                          [ACCOUNT_PIDS] = "pids"};

/* A file of one number has an empty key. */
#define NUMBER(metric, scale)                                                                      \
    {                                                                                              \
        {                                                                                          \
            "", metric, scale                                                                      \
        }                                                                                          \
    }

const struct pr_cgroup_file pr_cgroup_files[CGROUP_FILES] = {
    {ACCOUNT_MEMORY, 2, "memory.current", .main = true, .rows = NUMBER(METRIC_MEM_CGROUP, 1)},
    {ACCOUNT_MEMORY, 1, "memory.usage_in_bytes", .main = true,
     .rows = NUMBER(METRIC_MEM_CGROUP, 1)},
    {ACCOUNT_MEMORY, 2, "memory.peak", .rows = NUMBER(METRIC_MEM_CGROUP_PEAK, 1)},
    {ACCOUNT_MEMORY, 1, "memory.max_usage_in_bytes", .rows = NUMBER(METRIC_MEM_CGROUP_PEAK, 1)},
    {ACCOUNT_MEMORY, 2, "memory.stat", .costly = true,
     .rows = {{"anon ", METRIC_MEM_CGROUP_ANON, 1},
              {"file ", METRIC_MEM_CGROUP_FILE, 1},
              {"shmem ", METRIC_MEM_CGROUP_SHMEM, 1},
              {"kernel ", METRIC_MEM_CGROUP_KERNEL, 1}}},
    {ACCOUNT_MEMORY, 1, "memory.stat", .costly = true,
     .rows = {{"total_rss ", METRIC_MEM_CGROUP_ANON, 1},
              {"total_cache ", METRIC_MEM_CGROUP_FILE, 1},
              {"total_shmem ", METRIC_MEM_CGROUP_SHMEM, 1}}},
    {ACCOUNT_MEMORY, 1, "memory.kmem.usage_in_bytes", .rows = NUMBER(METRIC_MEM_CGROUP_KERNEL, 1)},
    {ACCOUNT_MEMORY, 2, "memory.events", .rows = {{"oom_kill ", METRIC_OOM_KILLS, 1}}},
    {ACCOUNT_MEMORY, 1, "memory.oom_control", .rows = {{"oom_kill ", METRIC_OOM_KILLS, 1}}},
    {ACCOUNT_USAGE, 1, "cpuacct.usage", .main = true, .rows = NUMBER(METRIC_CPU_CGROUP, 1e-9)},
    {ACCOUNT_USAGE, 2, "cpu.stat", .main = true,
     .rows = {{"usage_usec ", METRIC_CPU_CGROUP, 1e-6},
              {"throttled_usec ", METRIC_CPU_THROTTLED, 1e-6}}},
    {ACCOUNT_THROTTLE, 1, "cpu.stat", .rows = {{"throttled_time ", METRIC_CPU_THROTTLED, 1e-9}}},
    {ACCOUNT_THROTTLE, 2, "cpu.stat", .rows = {{"throttled_usec ", METRIC_CPU_THROTTLED, 1e-6}}},
    {ACCOUNT_PIDS, 0, "pids.current", .main = true, .rows = NUMBER(METRIC_THREADS_CGROUP, 1)},
};

void pr_cgroup_parse(const struct pr_cgroup_file *f, const char *text, size_t len, double *value)
{
    size_t count = 0;
    while (count < sizeof f->rows / sizeof *f->rows && f->rows[count].key)
        count++;
    pr_scan_keyed(text, len, f->rows, count, value);
}
