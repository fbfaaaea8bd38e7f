/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said beyond figures, each in a sentence with its evidence. SIGKILL, or 137, alone
 * says nothing of memory: anybody may have sent it. */
#include <math.h>
#include <string.h>

#include "report/summary.h"
#include "util/text.h"

enum { SIGKILL_NUMBER = 9, STATUS_OF_A_KILLED_ONE = 128 + SIGKILL_NUMBER };

#define GROWTH_LEAST 0.1 /* of what it had in the end: else it was large all the time */

static bool was_killed(const struct pr_facts *facts)
{
    return facts->exit_signal == SIGKILL_NUMBER || facts->exit_code == STATUS_OF_A_KILLED_ONE;
}

/* Who would have been the one: the largest that is known. Where the job had more in one process
 * than that, better nobody than the wrong one. */
static void largest(const struct pr_session *s, struct pr_buf *out)
{
    const struct pr_roll_entry *best = NULL;
    for (size_t i = 0; i < s->roll.count; i++) {
        const struct pr_roll_entry *e = pr_roll_at(&s->roll, i);
        if (e->peak > (best ? best->peak : 0))
            best = e;
    }
    if (!best || s->high[METRIC_MEM_RSS_PEAK] > 2 * best->peak)
        return;
    pr_buf_str(out, "; the largest process was ");
    pr_text_safe(out, best->comm);
    pr_buf_printf(out, " (%d) with ", (int)best->pid);
    pr_units_human(out, best->peak, UNIT_BYTES);
}

/* The limit that was met, or the one that would be met first. */
static void limit(const struct pr_session *s, struct pr_buf *out)
{
    const struct pr_oom *o = &s->oom;
    bool met = o->hits > 0 && o->limit > 0;
    double bytes = met ? o->limit : s->limits.total[LIMIT_MEMORY];
    if (isnan(bytes))
        return;
    pr_buf_str(out, met ? "; the limit of cgroup " : "; the limit is ");
    if (met) {
        pr_text_safe(out, o->where);
        pr_buf_str(out, ", ");
    }
    pr_units_human(out, bytes, UNIT_BYTES);
    if (met) {
        pr_buf_printf(out, ", was met %.0f time%s", o->hits, o->hits > 1 ? "s" : "");
        return;
    }
    pr_buf_str(out, " (");
    pr_text_safe(out, s->limits.source[LIMIT_MEMORY]);
    pr_buf_str(out, ")");
}

/* How it came to that, where it came slowly enough to be seen. */
static void growth(const struct pr_session *s, struct pr_buf *out)
{
    double seconds, by = pr_stats_growth(&s->stats, &seconds);
    if (!(by > s->stats.rss_trail.last * GROWTH_LEAST) || !(seconds > 0))
        return;
    pr_buf_str(out, "; the job had grown by ");
    pr_units_human(out, by, UNIT_BYTES);
    pr_buf_str(out, " in its last ");
    pr_units_human(out, seconds, UNIT_SECONDS);
}

static void evidence(const struct pr_session *s, struct pr_buf *out)
{
    limit(s, out);
    largest(s, out);
    growth(s, out);
}

/* Memory, with its evidence; false where there is none. */
static bool memory(const struct pr_session *s, const struct pr_facts *facts, struct pr_buf *out)
{
    double kills = s->oom_kills, machine = s->oom.machine_kills;
    if (kills > 0)
        pr_buf_printf(out, "%s: the kernel killed %.0f process%s of the job's cgroup",
                      was_killed(facts) ? "the job ran out of memory" : "memory ran out", kills,
                      kills > 1 ? "es" : "");
    else if (machine > 0 && isnan(s->oom.kills) && was_killed(facts))
        pr_buf_printf(out,
                      "memory is a likely reason: while the job ran the kernel killed %.0f "
                      "process%s on this machine for want of it, and the job has no cgroup that "
                      "would tell whose",
                      machine, machine > 1 ? "es" : "");
    else
        return false;
    evidence(s, out);
    return true;
}

/* Who goes to another group shortly before has no account in the job's. */
static void no_kill_in_group(const struct pr_session *s, struct pr_buf *out)
{
    double others = s->oom.machine_kills;
    pr_buf_str(out, "the job's cgroup shows no kill for memory");
    if (others > 0)
        pr_buf_printf(out,
                      ", but meanwhile the kernel killed %.0f process%s on this machine for want "
                      "of it",
                      others, others > 1 ? "es" : "");
}

void pr_summary_finding(const struct pr_session *s, const struct pr_facts *facts,
                        struct pr_buf *out)
{
    if (memory(s, facts, out) || facts->exit_signal != SIGKILL_NUMBER)
        return;
    pr_buf_str(out, "somebody sent SIGKILL; ");
    if (!isnan(s->oom.kills) || !isnan(pr_stats_total(&s->stats, METRIC_OOM_KILLS)))
        no_kill_in_group(s, out);
    else if (s->oom.machine_kills == 0)
        pr_buf_str(out, "the kernel has killed nobody on this machine for want of memory");
    else
        pr_buf_str(out, "whether memory was the reason is not known: the job has no cgroup with an "
                        "account of it");
}

/* --- what stands out ----------------------------------------------------------------------------
 */

/* Of one process. What is above every sum that was sampled is of one alone, and the roll may not
 * have it: what wait4 says of somebody who had children may be theirs. Else it may be such a sum,
 * in which shared pages count several times. */
static double largest_mark(const struct pr_session *s)
{
    const struct pr_stat *v = s->stats.metric;
    double most = NAN;
    if (v[METRIC_MEM_RSS_PEAK].max > v[METRIC_MEM_RSS].max)
        return v[METRIC_MEM_RSS_PEAK].max;
    for (size_t i = 0; i < s->roll.command_count; i++)
        most = fmax(most, s->roll.commands[i].peak);
    return most;
}

/* PSS, unless the budget let it be read only now and then, or it was not read at the peak: as the
 * report has it. */
static void take_memory(const struct pr_session *s, struct pr_evidence *e)
{
    const struct pr_stat *v = s->stats.metric;
    double mark = v[METRIC_MEM_RSS_PEAK].max;
    bool pss = v[METRIC_MEM_PSS].known * 2 > v[METRIC_MEM_RSS].known &&
               !(mark > PEAK_MISSED * v[METRIC_MEM_RSS].max);
    const struct pr_stat *of = &v[pss ? METRIC_MEM_PSS : METRIC_MEM_RSS];
    bool marked = !pss && mark > of->max;
    pr_evidence_memory(e, marked ? mark : of->max, marked ? NAN : of->at, largest_mark(s));
    e->memory_limit = s->limits.total[LIMIT_MEMORY];
    e->memory_of_machine = strcmp(s->limits.source[LIMIT_MEMORY], "machine") == 0;
}

bool pr_summary_worst(const struct pr_session *s, struct pr_finding *ret, struct pr_buf *out)
{
    const struct pr_stat *v = s->stats.metric;
    struct pr_evidence e = {
        .duration = s->stats.seconds,
        .cores = NAN, /* what was not used, and what was not seen, is for a report */
        .cores_limit = NAN,
        .unsampled = NAN,
        .cpu_time = pr_stats_total(&s->stats, METRIC_CPU_TIME),
        .throttled = pr_stats_total(&s->stats, METRIC_CPU_THROTTLED),
        .delay = pr_stats_total(&s->stats, METRIC_SCHED_DELAY),
        .swap = v[METRIC_MEM_SWAP].max,
        .swap_at = v[METRIC_MEM_SWAP].at,
        .files = v[METRIC_FDS_RATIO].max,
        .files_at = v[METRIC_FDS_RATIO].at,
        .io_full = pr_stats_total(&s->stats, METRIC_SYSTEM_PSI_IO_FULL),
    };
    take_memory(s, &e);
    return pr_rules_worst(&e, SEVERITY_WARN, ret, out);
}
