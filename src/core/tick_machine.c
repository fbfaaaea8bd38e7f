/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a tick that is about the machine and the job's cgroup. */
#include <math.h>

#include "core/tick.h"
#include "util/clock.h"

/* Between two readings: at the least, since the kernel's ticks are coarse, and however little
 * budget there is. Where it is not what is recorded it costs more than many a job, 0.2 ms. */
static const struct {
    int64_t least, most;
} times[] = {{NS_PER_S / 2, 2 * NS_PER_S}, {NS_PER_S / 10, NS_PER_S}};

static bool is_due(const struct pr_session *s, int64_t now)
{
    bool recorded = s->config->machine || s->step >= NS_PER_S; /* then with each sample */
    int64_t wait = s->machine_allowance >= 0 ? times[recorded].least : times[recorded].most;
    if (s->now.first || s->now.last || !s->machine.read_at)
        return true;
    return now - s->machine.read_at >= wait * 9 / 10; /* what comes at the interval may be early */
}

static void copy_devices(struct pr_session *s)
{
    const struct pr_devices *all = &s->machine.devices;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].present && pr_snapshot_reserve(&s->now, 0, s->now.device_count + 1))
            s->now.devices[s->now.device_count++] = all->items[i].out;
}

/* The kernel has killed for want of memory: rarely what anybody wanted. */
static void say_kills(struct pr_session *s, double at, double count, const char *whose)
{
    if (count > 0)
        pr_event_add(&s->events, EVENT_OOM, at, 0,
                     "the kernel killed %.0f process%s %s for want of memory", count,
                     count > 1 ? "es" : "", whose);
}

static void watch_oom(struct pr_session *s)
{
    double kills = s->now.value[METRIC_OOM_KILLS];
    if (!(kills > s->oom_kills))
        return;
    say_kills(s, pr_seconds(s->now.elapsed), kills - s->oom_kills, "of the cgroup");
    s->oom_kills = kills;
}

void pr_tick_kills(struct pr_session *s)
{
    bool watched = s->machine.cgroup || s->select.reads & (READ_CGROUP | READ_CGROUP_REST);
    s->oom.left |= s->machine.moved || !watched; /* at the last sample; or nobody has looked */
    pr_oom_read(&s->oom, &s->host);
    struct pr_stat *peak = &s->stats.metric[METRIC_MEM_CGROUP_PEAK];
    if (s->oom.own && s->oom.limit > 0) /* the kernel's mark may have been there before */
        peak->max = fmax(peak->max, s->oom.limit);
    double known = s->oom_kills;
    s->oom_kills = fmax(s->oom.kills, known);
    say_kills(s, s->stats.seconds, s->oom_kills - known, "of the cgroup");
    /* One of the job's may have been killed in a group that nobody looks at, of a container; and
     * orphans may end where nobody tells us how. */
    bool told = (s->watched.all_come || s->machine.cgroup) && !s->children_ignored;
    bool elsewhere = s->oom.whole && told && !s->roll.killed;
    say_kills(s, s->stats.seconds, s->oom.machine_kills - s->oom_kills,
              elsewhere ? OOM_ELSEWHERE : "on this machine");
}

void pr_tick_machine(struct pr_session *s, int64_t now)
{
    struct pr_tick t = {&s->host, now, s->text, SESSION_TEXT};
    double *value = s->now.value;
    if (!s->set.still)
        s->machine.ran_at = now;
    if (s->config->machine || s->watched.alone) /* there are others of whom it is to tell */
        s->machine.ran_at = 0;
    s->now.device_count = 0;
    s->now.machine_interval = s->machine.read_at ? now - s->machine.read_at : s->now.interval;
    if (is_due(s, now))
        pr_machine_read(&s->machine, &t);
    else
        pr_machine_skip(&s->machine);
    for (int id = PROC_METRICS; id < METRIC_COUNT; id++)
        if (isnan(value[id]))
            value[id] = s->machine.value[id];
    for (int id = PROC_METRICS; id < JOB_METRICS; id++) {
        if (pr_metrics[id].kind == KIND_HIGH_WATER)
            s->high[id] = value[id] = fmax(value[id], s->high[id]);
        if (s->gone && pr_metrics[id].kind == KIND_GAUGE)
            value[id] = NAN;
    }
    if (s->want_devices) {
        copy_devices(s);
        pr_tick_gpu_devices(s);
    }
    watch_oom(s);
}
