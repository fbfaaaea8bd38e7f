/* SPDX-License-Identifier: Apache-2.0 */
/* Powercap package counters (Documentation/power/powercap/powercap.rst), in microjoules, wrapping
 * at max_energy_range_uj. Only the top zones intel-rapl:N count: their children are parts of them,
 * intel-rapl-mmio repeats them, and psys holds the whole platform. A process has no counter of its
 * own, so the job gets the share that it had of the machine's busy CPU time; that is an
 * attribution, and marked as one. */
#include "core/energy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/fs.h"
#include "util/scan.h"

#define ZONES "sys/class/powercap"

static double read_joules(const struct pr_host *host, int *held, const char *path)
{
    char text[64];
    uint64_t v;
    int fd = *held >= 0 ? *held : pr_fs_open(host->root, path);
    ssize_t n = fd < 0 ? fd : pr_fs_pread(fd, text, sizeof text);
    if (fd >= 0 && host->held)
        *held = fd;
    else if (fd >= 0)
        close(fd);
    struct pr_scan s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    return pr_scan_u64(&s, &v) ? (double)v * 1e-6 : NAN;
}

/* user nice system idle iowait irq softirq steal; guest time is inside user. */
static double machine_busy(const struct pr_host *host)
{
    char text[512];
    uint64_t v[8];
    ssize_t n = pr_fs_read(host->proc, "stat", text, sizeof text);
    struct pr_scan s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    if (!pr_scan_prefix(&s, "cpu "))
        return NAN;
    for (int i = 0; i < 8; i++)
        if (!pr_scan_u64(&s, &v[i]))
            return NAN;
    return (double)(v[0] + v[1] + v[2] + v[5] + v[6]) / (double)host->ticks_per_second;
}

static void add_zone(struct pr_energy *e, const struct pr_host *host, int number)
{
    char path[80], name[64] = "";
    int none = -1;
    snprintf(path, sizeof path, ZONES "/intel-rapl:%d/name", number);
    ssize_t n = pr_fs_read(host->root, path, name, sizeof name);
    if (n < 0 || strncmp(name, "package", 7) != 0)
        return;
    int i = e->zones;
    e->fd[i] = -1;
    snprintf(path, sizeof path, ZONES "/intel-rapl:%d/max_energy_range_uj", number);
    e->range[i] = read_joules(host, &none, path);
    if (none >= 0)
        close(none);
    snprintf(e->path[i], sizeof e->path[i], ZONES "/intel-rapl:%d/energy_uj", number);
    e->last[i] = read_joules(host, &e->fd[i], e->path[i]);
    if (isnan(e->last[i]) && e->fd[i] >= 0)
        close(e->fd[i]);
    if (isnan(e->last[i]))
        snprintf(e->reason, sizeof e->reason, "/%.60s is not readable", e->path[i]);
    else
        e->zones++;
}

void pr_energy_open(struct pr_energy *e, const struct pr_host *host)
{
    *e = (struct pr_energy){.reason = "no powercap package counters on this machine"};
    bool any = faccessat(host->root, ZONES, F_OK, 0) == 0;
    for (int i = 0; i < ENERGY_ZONES && any; i++)
        add_zone(e, host, i);
    e->busy = e->zones ? machine_busy(host) : NAN;
}

double pr_energy_read(struct pr_energy *e, const struct pr_host *host, double job_cpu)
{
    double used = 0;
    if (!e->zones)
        return NAN;
    for (int i = 0; i < e->zones; i++) {
        double now = read_joules(host, &e->fd[i], e->path[i]);
        if (isnan(now))
            continue;
        double growth = now - e->last[i];
        used += growth >= 0 ? growth : isnan(e->range[i]) ? now : growth + e->range[i];
        e->last[i] = now;
    }
    e->pending_joules += used;
    e->pending_cpu += job_cpu > 0 ? job_cpu : 0;
    double busy = machine_busy(host), growth = busy - e->busy;
    if (!(growth > 0)) /* its ticks are coarse: the share is known when they have moved */
        return e->joules;
    e->joules += e->pending_joules * fmin(1, e->pending_cpu / growth);
    e->busy = busy;
    e->pending_joules = e->pending_cpu = 0;
    return e->joules;
}

void pr_energy_close(struct pr_energy *e)
{
    for (int i = 0; i < e->zones; i++)
        if (e->fd[i] >= 0)
            close(e->fd[i]);
    e->zones = 0;
}
