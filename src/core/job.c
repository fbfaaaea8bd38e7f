/* SPDX-License-Identifier: Apache-2.0 */
#include "core/job.h"

#include <math.h>
#include <stdio.h>

#include "core/stat_line.h"
#include "core/tick.h"
#include "util/clock.h"
#include "util/fs.h"

#define LOOKS_ENOUGH 3

void pr_session_meet(struct pr_session *s)
{
    pr_tick_meet(s, pr_clock_boot());
}

/* A child that lived between two samples, and is now a zombie: it still has a name, and counters.
 */
static struct pr_entity *meet_at_its_end(struct pr_session *s, const struct pr_tick *t, pid_t pid)
{
    char path[32];
    struct pr_entity *e = pr_entities_add(&s->set, pid, 0);
    if (!e)
        return NULL;
    snprintf(path, sizeof path, "%d/stat", (int)pid);
    ssize_t n = pr_fs_read(t->host->proc, path, t->text, t->text_size);
    if (n <= 0 || !pr_stat_take(t, e, t->text, (size_t)n)) {
        pr_entities_drop_last(&s->set);
        s->set.started--;
        return NULL;
    }
    e->born_inside = true;
    return e;
}

void pr_session_look(struct pr_session *s, pid_t pid)
{
    struct pr_tick t = {&s->host, pr_clock_boot(), s->text, SESSION_TEXT};
    struct pr_entity *e = pr_entities_find(&s->set, pid);
    bool known = e != NULL;
    if (!known && !(e = meet_at_its_end(s, &t, pid)))
        return;
    if (s->select.reads & READ_IO)
        pr_source_read(&t, e, SOURCE_pid_io);
    int64_t own = s->host.foreign ? -1 : pr_clock_pid_cpu(pid);
    e->end.own_cpu = own < 0 ? -1 : pr_seconds(own);
    if (!known)
        return;
    pr_source_read(&t, e, SOURCE_pid_stat);
    pr_source_read(&t, e, SOURCE_pid_status);
    if (s->select.reads & READ_SCHED)
        pr_source_read(&t, e, SOURCE_pid_sched);
    s->children_ignored |= e->ignores_children;
}

/* How it ended, for the roll. rusage has what its children left with it, too. */
static void note_end(struct pr_session *s, struct pr_entity *e, const double *usage, double maxrss,
                     int status)
{
    bool childless = e->reaped[METRIC_FAULTS_MINOR] == 0;
    double own = usage[METRIC_CPU_TIME] - e->reaped[METRIC_CPU_TIME]; /* which comes in ticks */
    e->end.waited = true;
    e->end.status = status;
    e->end.at = pr_clock_boot();
    e->value[METRIC_CPU_TIME] = childless             ? usage[METRIC_CPU_TIME]
                                : e->end.own_cpu >= 0 ? e->end.own_cpu
                                                      : fmax(0, own);
    if (!childless || !(maxrss > s->rss_floor))
        return;
    e->end.mark = fmax(e->end.mark, maxrss);
    e->end.mark_final = true;
}

/* Not even its end could be read. */
static void enroll_unknown(struct pr_session *s, pid_t pid, const double *usage, int status)
{
    struct pr_roll_entry entry = {.pid = pid,
                                  .ppid = s->ledger.reaper,
                                  .ended = s->start_wall + pr_clock_boot() - s->start_boot,
                                  .cpu = usage[METRIC_CPU_TIME],
                                  .peak = NAN,
                                  .status = status,
                                  .way = ROLL_WAITED,
                                  .comm = "(unknown)"};
    pr_values_none(entry.io, ROLL_IO);
    s->roll.killed = true; /* perhaps somebody for whom it waited */
    pr_roll_add(&s->roll, &entry);
}

void pr_session_reaped(struct pr_session *s, pid_t pid, const double *usage, double maxrss,
                       int status)
{
    struct pr_entity *e = pr_entities_find(&s->set, pid);
    bool passing = e && e->looks == 0 && e == s->set.items[s->set.count - 1];
    s->reaped_lately = true;
    /* What is not above our own size at the fork is a bound and not a mark; a process that was
     * looked at some times has shown its own. */
    if (maxrss > s->rss_floor || !e || e->looks < LOOKS_ENOUGH)
        s->high[METRIC_MEM_RSS_PEAK] = fmax(s->high[METRIC_MEM_RSS_PEAK], maxrss);
    if (e) {
        pr_entities_vanish(&s->set, e);
        note_end(s, e, usage, maxrss, status);
    } else {
        s->set.started++;
        s->set.exited++;
        enroll_unknown(s, pid, usage, status);
    }
    pr_ledger_reap(&s->ledger, e, usage);
    if (passing) {
        pr_tick_enroll(s, e);
        pr_source_release(&s->host, e);
        pr_entities_drop_last(&s->set);
    }
}

void pr_session_call_off(struct pr_session *s)
{
    s->begun = false;
}
