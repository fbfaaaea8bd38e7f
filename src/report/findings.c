/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said beyond figures, each in a sentence with its evidence. SIGKILL, or 137, alone
 * says nothing of memory: anybody may have sent it. */
#include <math.h>

#include "report/summary.h"
#include "util/text.h"

enum { SIGKILL_NUMBER = 9, STATUS_OF_A_KILLED_ONE = 128 + SIGKILL_NUMBER };

static bool was_killed(const struct pr_facts *facts)
{
    return facts->exit_signal == SIGKILL_NUMBER || facts->exit_code == STATUS_OF_A_KILLED_ONE;
}

/* Who would have been the one: the largest that was ever seen. */
static void largest(const struct pr_session *s, struct pr_buf *out)
{
    if (!(s->set.largest_rss > 0))
        return;
    pr_buf_str(out, "; the largest process was ");
    pr_text_safe(out, s->set.largest.comm);
    pr_buf_printf(out, " (%d) with ", (int)s->set.largest.pid);
    pr_units_human(out, s->set.largest_rss, UNIT_BYTES);
    pr_buf_str(out, " when last seen");
}

static void limit(const struct pr_session *s, struct pr_buf *out)
{
    double bytes = s->limits.total[LIMIT_MEMORY];
    if (isnan(bytes))
        return;
    pr_buf_str(out, "; the limit is ");
    pr_units_human(out, bytes, UNIT_BYTES);
    pr_buf_str(out, " (");
    pr_text_safe(out, s->limits.source[LIMIT_MEMORY]);
    pr_buf_str(out, ")");
}

/* Memory, with its evidence; false where there is none. */
static bool memory(const struct pr_session *s, const struct pr_facts *facts, struct pr_buf *out)
{
    double kills = pr_stats_total(&s->stats, METRIC_OOM_KILLS);
    if (!(kills > 0))
        return false;
    pr_buf_printf(out, "%s: the kernel killed %.0f process%s of the job's cgroup",
                  was_killed(facts) ? "the job ran out of memory" : "memory ran out", kills,
                  kills > 1 ? "es" : "");
    limit(s, out);
    largest(s, out);
    return true;
}

void pr_summary_finding(const struct pr_session *s, const struct pr_facts *facts,
                        struct pr_buf *out)
{
    if (memory(s, facts, out) || facts->exit_signal != SIGKILL_NUMBER)
        return;
    pr_buf_str(out, isnan(pr_stats_total(&s->stats, METRIC_OOM_KILLS))
                        ? "somebody sent SIGKILL; whether memory was the reason is not known: the "
                          "job has no cgroup with an account of it"
                        : "somebody sent SIGKILL; the job's cgroup shows no kill for memory");
}
