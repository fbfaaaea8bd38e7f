/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/meminfo. As free(1) has it: what is cached includes reclaimable kernel memory, and what is
 * used is what cannot be had without swapping. */
#include <math.h>

#include "core/machine.h"
#include "util/scan.h"

enum { SWAP_FREE = 0 }; /* not a metric of the machine: its place in raw is free */

static const struct pr_scan_row rows[] = {
    {"MemTotal:", METRIC_SYSTEM_MEM_TOTAL, 1024},
    {"MemFree:", METRIC_SYSTEM_MEM_FREE, 1024},
    {"MemAvailable:", METRIC_SYSTEM_MEM_AVAILABLE, 1024},
    {"Buffers:", METRIC_SYSTEM_MEM_BUFFERS, 1024},
    {"Cached:", METRIC_SYSTEM_MEM_CACHED, 1024},
    {"SReclaimable:", METRIC_SYSTEM_MEM_CACHED, 1024},
    {"Shmem:", METRIC_SYSTEM_MEM_SHARED, 1024},
    {"Active:", METRIC_SYSTEM_MEM_ACTIVE, 1024},
    {"Inactive:", METRIC_SYSTEM_MEM_INACTIVE, 1024},
    {"Active(anon):", METRIC_SYSTEM_MEM_ACTIVE_ANON, 1024},
    {"Inactive(anon):", METRIC_SYSTEM_MEM_INACTIVE_ANON, 1024},
    {"SwapTotal:", METRIC_SYSTEM_SWAP_TOTAL, 1024},
    {"SwapFree:", SWAP_FREE, 1024},
};

static bool parse(struct pr_machine *m, const char *text, size_t len)
{
    double *v = m->raw;
    pr_scan_keyed(text, len, rows, sizeof rows / sizeof *rows, v);
    v[METRIC_SYSTEM_MEM_USED] = v[METRIC_SYSTEM_MEM_TOTAL] - v[METRIC_SYSTEM_MEM_AVAILABLE];
    v[METRIC_SYSTEM_SWAP_USED] = v[METRIC_SYSTEM_SWAP_TOTAL] - v[SWAP_FREE];
    return !isnan(v[METRIC_SYSTEM_MEM_TOTAL]);
}

const struct pr_machine_source pr_machine_source_sys_meminfo = {
    .name = "/proc/meminfo", .gives = READ_MEMINFO, .file = "meminfo", .parse = parse};
