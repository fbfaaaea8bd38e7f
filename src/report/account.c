/* SPDX-License-Identifier: Apache-2.0 */
/* How the totals were obtained, in words that both renderings share. */
#include "report/summary.h"

const char *pr_summary_source(const struct pr_facts *facts)
{
    static const char *const sources[] = {
        [WAY_RUN] = "rusage of every process, reaped by its parent or by proctor",
        [WAY_RUN_NO_SUBREAPER] = "rusage of the job and of what it reaped",
        [WAY_ATTACH] = "samples: living members and what they have reaped",
        [WAY_ATTACH_ALONE] = "samples of one process",
    };
    return sources[facts->way];
}

bool pr_summary_complete(const struct pr_session *s, const struct pr_facts *facts)
{
    bool whole = facts->way == WAY_RUN || (facts->way == WAY_ATTACH_ALONE && !s->gone);
    return whole && s->ledger.unabsorbed == 0 && !s->children_ignored;
}

void pr_summary_note(const struct pr_session *s, const struct pr_facts *facts, struct pr_buf *out)
{
    const char *join = "";
    if (s->ledger.unabsorbed) {
        pr_buf_printf(out,
                      "nobody in the job waited for %lu of its processes: they count as they were "
                      "last sampled",
                      s->ledger.unabsorbed);
        join = "; ";
    }
    if (s->children_ignored) {
        pr_buf_printf(out, "%sa process ignores SIGCHLD: how its children ended is not known",
                      join);
        join = "; ";
    }
    if (facts->way == WAY_RUN_NO_SUBREAPER || facts->way == WAY_ATTACH) {
        pr_buf_printf(out, "%sorphans that lived between two samples are not seen", join);
        join = "; ";
    }
    if (facts->way >= WAY_ATTACH && s->gone)
        pr_buf_printf(out, "%swhat was used after the last sample is not in it", join);
}
