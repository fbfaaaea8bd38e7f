/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a machine, and of the cgroup that the job is in. */
#include <math.h>

#include "report/page.h"

#define COUNT(list) (sizeof list / sizeof *list)

static void cpu_line(struct pr_page *p)
{
    static const struct pr_page_item parts[] = {
        {"user ", METRIC_SYSTEM_CPU_USER, false, ""},
        {"system ", METRIC_SYSTEM_CPU_SYSTEM, false, ""},
        {"waiting for storage ", METRIC_SYSTEM_CPU_IOWAIT, false, ""},
        {"stolen ", METRIC_SYSTEM_CPU_STEAL, false, ""},
    };
    const struct pr_stats *st = &p->s->stats;
    double peak = st->metric[METRIC_SYSTEM_CPU_USAGE].max, limit = p->s->limits.total[LIMIT_CPU];
    if (!pr_page_items(p, "CPU", parts, COUNT(parts)))
        return;
    pr_buf_str(p->out, "; mean ");
    pr_page_human(p, pr_stats_mean(st, METRIC_SYSTEM_CPU_USAGE), UNIT_CORES);
    if (!isnan(peak)) {
        /* The kernel counts in ticks: in a short interval one too many may fall. */
        pr_buf_str(p->out, ", peak ");
        pr_units_fixed(p->out, peak > limit ? limit : peak, 2);
    }
    if (limit > 0) {
        pr_buf_str(p->out, " of ");
        pr_units_number(p->out, limit);
    }
    pr_page_curve(p, &st->cpu, "34");
    pr_page_end(p);
}

void pr_page_machine(struct pr_page *p)
{
    static const struct pr_page_item memory[] = {
        {"peak ", METRIC_SYSTEM_MEM_USED, true, " used"},
        {"", METRIC_SYSTEM_MEM_TOTAL, false, " in all"},
        {"swap peak ", METRIC_SYSTEM_SWAP_USED, true, ""},
    };
    static const struct pr_page_item disk[] = {
        {"", METRIC_SYSTEM_DISK_READ, false, " read"},
        {"", METRIC_SYSTEM_DISK_WRITE, false, " written"},
        {"", METRIC_SYSTEM_DISK_SPACE_FREE, false, " free"},
        {"", METRIC_SYSTEM_DISK_SPACE_TOTAL, false, " in all"},
    };
    static const struct pr_page_item net[] = {
        {"", METRIC_SYSTEM_NET_RX, false, " received"},
        {"", METRIC_SYSTEM_NET_TX, false, " sent"},
    };
    static const struct pr_page_item pressure[] = {
        {"some task waited for a CPU for ", METRIC_SYSTEM_PSI_CPU, false, ""},
        {"for memory ", METRIC_SYSTEM_PSI_MEMORY, false, ""},
        {"for storage ", METRIC_SYSTEM_PSI_IO, false, ""},
    };
    cpu_line(p);
    if (pr_page_items(p, "memory", memory, COUNT(memory))) {
        pr_page_curve(p, &p->s->stats.memory, "35");
        pr_page_end(p);
    }
    if (pr_page_items(p, "disk", disk, COUNT(disk)))
        pr_page_end(p);
    if (pr_page_items(p, "network", net, COUNT(net)))
        pr_page_end(p);
    pr_page_gpu(p);
    if (pr_page_items(p, "waiting", pressure, COUNT(pressure)))
        pr_page_end(p);
}

static double total(const struct pr_page *p, enum pr_metric_id id)
{
    double v = pr_stats_total(&p->s->stats, id);
    return isnan(v) ? 0 : v;
}

/* Where somebody asked for a cgroup; and where it has cost the job something. */
void pr_page_cgroup(struct pr_page *p)
{
    static const struct pr_page_item items[] = {
        {"", METRIC_CPU_CGROUP, false, " of CPU"},
        {"throttled for ", METRIC_CPU_THROTTLED, false, ""},
        {"memory peak ", METRIC_MEM_CGROUP_PEAK, true, " with its cache"},
    };
    bool said = p->s->machine.cgroup || total(p, METRIC_OOM_KILLS) > 0 ||
                total(p, METRIC_CPU_THROTTLED) >= 0.001;
    if (said && pr_page_items(p, "cgroup", items, COUNT(items)))
        pr_page_end(p);
}
