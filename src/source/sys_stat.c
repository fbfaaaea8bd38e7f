/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/stat: a line "cpu" for the machine, "cpu0", "cpu1" for each core that is online, in ticks:
 * user nice system idle iowait irq softirq steal guest guest_nice. Surprise: guest is inside user
 * and guest_nice inside nice already. Old kernels have fewer fields. */
#include <math.h>
#include <stdlib.h>

#include "core/machine.h"
#include "util/fs.h"
#include "util/scan.h"

enum field { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, GUEST, GUEST_NICE, FIELDS };

/* Which fields make up which metric. */
static const struct {
    enum pr_metric_id metric;
    unsigned fields;
} rows[] = {
    {METRIC_SYSTEM_CPU_USER, 1 << USER | 1 << NICE},
    {METRIC_SYSTEM_CPU_NICE, 1 << NICE},
    {METRIC_SYSTEM_CPU_GUEST, 1 << GUEST | 1 << GUEST_NICE},
    {METRIC_SYSTEM_CPU_SYSTEM, 1 << SYSTEM | 1 << IRQ | 1 << SOFTIRQ},
    {METRIC_SYSTEM_CPU_IRQ, 1 << IRQ},
    {METRIC_SYSTEM_CPU_SOFTIRQ, 1 << SOFTIRQ},
    {METRIC_SYSTEM_CPU_IDLE, 1 << IDLE},
    {METRIC_SYSTEM_CPU_IOWAIT, 1 << IOWAIT},
    {METRIC_SYSTEM_CPU_STEAL, 1 << STEAL},
    {METRIC_SYSTEM_CPU_TIME, 1 << USER | 1 << NICE | 1 << SYSTEM | 1 << IRQ | 1 << SOFTIRQ},
};
#define ROWS (sizeof rows / sizeof *rows)

static double sum_of(const double *field, unsigned fields)
{
    double sum = 0;
    for (int i = 0; i < FIELDS; i++)
        if (fields >> i & 1)
            sum += field[i];
    return sum; /* NaN where one is absent */
}

static void take(struct pr_machine *m, struct pr_device_state *core, const double *field)
{
    for (size_t i = 0; i < ROWS; i++) {
        double v = sum_of(field, rows[i].fields);
        if (core)
            pr_device_put(core, rows[i].metric, v);
        else
            m->raw[rows[i].metric] = v;
    }
}

static bool take_forks(struct pr_scan line, double *ret)
{
    uint64_t forks;
    if (!pr_scan_prefix(&line, "processes ") || !pr_scan_u64(&line, &forks))
        return false;
    *ret = (double)forks;
    return true;
}

double pr_machine_forks(const struct pr_host *host, char *text, size_t size)
{
    double forks = NAN;
    struct pr_scan line;
    ssize_t n = pr_fs_read(host->proc, "stat", text, size);
    struct pr_scan s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    while (pr_scan_line(&s, &line) && !take_forks(line, &forks))
        ;
    return forks;
}

static bool take_cpu(struct pr_machine *m, struct pr_scan line)
{
    double field[FIELDS];
    uint64_t ticks;
    struct pr_scan name;
    struct pr_device_state *core = NULL;
    bool machine = line.p < line.end && *line.p == ' ';
    if (!machine &&
        (!pr_scan_word(&line, &name) ||
         !(core = pr_devices_get(&m->devices, DEVICE_CORE, name.p, (size_t)(name.end - name.p)))))
        return false;
    for (int i = 0; i < FIELDS; i++)
        field[i] =
            pr_scan_u64(&line, &ticks) ? (double)ticks / (double)m->host->ticks_per_second : NAN;
    take(m, core, field);
    return machine && !isnan(field[IDLE]);
}

/* The line of interrupts in between is the longest, and needs not be looked into. */
static bool parse(struct pr_machine *m, const char *text, size_t len)
{
    struct pr_scan s = pr_scan_of(text, len), line;
    bool found = false;
    while (pr_scan_line(&s, &line)) {
        if (pr_scan_prefix(&line, "cpu"))
            found |= take_cpu(m, line);
        else
            take_forks(line, &m->raw[METRIC_SYSTEM_FORKS]);
    }
    return found;
}

const struct pr_machine_source pr_machine_source_sys_stat = {
    .name = "/proc/stat", .gives = READ_CPUS, .file = "stat", .parse = parse};
