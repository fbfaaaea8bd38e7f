/* SPDX-License-Identifier: Apache-2.0 */
/* How the totals were obtained, in words that both renderings share. */
#include "report/summary.h"

#include <math.h>

#include "core/exact.h"
#include "core/net.h"

static const char *ledger_source(const struct pr_facts *facts)
{
    static const char *const sources[] = {
        [WAY_RUN] = "rusage: the kernel's account of every process that was waited for",
        [WAY_RUN_NO_SUBREAPER] = "rusage of the job and of what it reaped",
        [WAY_ATTACH] = "samples: living members and what they have reaped",
        [WAY_ATTACH_ALONE] = "samples of one process",
        [WAY_MATCH] = "samples of processes by name, each its own use alone",
        [WAY_SYSTEM] = "samples of the kernel's counters of the machine",
        [WAY_EVERYBODY] = "samples: living processes and what they have reaped",
    };
    return sources[facts->way];
}

/* The account beside the ledger's; NULL where there is none. */
static const struct pr_exact *exact_of(const struct pr_session *s)
{
    return s->exact && s->exact->ops ? s->exact : NULL;
}

const char *pr_summary_source(const struct pr_session *s, const struct pr_facts *facts,
                              enum pr_account account)
{
    if (account == ACCOUNT_CPU || facts->way == WAY_SYSTEM)
        return exact_of(s) ? s->exact->ops->source : ledger_source(facts);
    return facts->way <= WAY_RUN_NO_SUBREAPER
               ? "/proc/PID/io of living processes; what the reaped ones left in proctor's own"
               : "/proc/PID/io of living processes, with what they have reaped";
}

double pr_summary_residual(const struct pr_session *s)
{
    const struct pr_exact *x = exact_of(s);
    return x ? x->counted - x->figure[EXACT_TIME] : NAN;
}

bool pr_summary_known(const struct pr_session *s, enum pr_metric_id id)
{
    return s->stats.metric[id].known > 0 || !isnan(pr_stats_peak(&s->stats, id));
}

const char *pr_summary_reason(const struct pr_session *s, enum pr_metric_id id)
{
    if (pr_metric_is_derived(id) && !pr_summary_known(s, pr_metrics[id].of))
        return pr_summary_reason(s, pr_metrics[id].of);
    if (s->reason[id][0])
        return s->reason[id];
    if (pr_machine_reason(&s->machine, id))
        return pr_machine_reason(&s->machine, id);
    if ((pr_metrics[id].needs & READ_GPU) && *s->machine.gpu_reason)
        return s->machine.gpu_reason;
    if (id == METRIC_ENERGY)
        return s->energy.reason;
    if ((pr_metrics[id].needs & READ_NET) && s->net && pr_net_reason(s->net))
        return pr_net_reason(s->net);
    return s->gone ? "the job ended before it could be read" : "there was no time to read it";
}

/* Another account has all of it, whoever waited for whom. */
static bool is_settled(const struct pr_session *s, enum pr_account account)
{
    return account == ACCOUNT_CPU && exact_of(s) && pr_exact_complete(s->exact);
}

bool pr_summary_complete(const struct pr_session *s, const struct pr_facts *facts,
                         enum pr_account account)
{
    bool whole = facts->way == WAY_RUN || facts->way == WAY_SYSTEM ||
                 (facts->way == WAY_ATTACH_ALONE && !s->gone);
    return is_settled(s, account) || (whole && s->ledger.unabsorbed == 0 && !s->children_ignored);
}

void pr_summary_note(const struct pr_session *s, const struct pr_facts *facts,
                     enum pr_account account, struct pr_buf *out)
{
    const struct pr_exact *x = account == ACCOUNT_CPU ? exact_of(s) : NULL;
    bool open = !is_settled(s, account); /* it matters who waited for whom */
    const struct {
        bool holds;
        unsigned long count; /* for the %lu in the text, where there is one */
        const char *text;
    } notes[] = {
        {s->left_count > 0, s->left_count, "%lu left running, counted until the job's end"},
        {open && s->ledger.unabsorbed > 0 && facts->way != WAY_MATCH, s->ledger.unabsorbed,
         "nobody in the job waited for %lu of its processes: they count as they were last sampled"},
        {open && s->children_ignored && facts->way != WAY_MATCH, 0,
         "a process ignores SIGCHLD: how its children ended is not known"},
        {facts->way == WAY_RUN_NO_SUBREAPER || facts->way == WAY_ATTACH ||
             facts->way == WAY_EVERYBODY,
         0, "orphans that lived between two samples are not seen"},
        {facts->way == WAY_MATCH, 0,
         "who ended counts as last sampled; who lived between two samples is not seen"},
        {s->departed > 0, s->departed,
         "%lu left the job and went on: it counts until then, or until a member waits for it"},
        {facts->way >= WAY_ATTACH && s->gone, 0,
         "what was used after the last sample is not in it"},
        {x && pr_exact_escaped(x), 0,
         "processes have left the cgroup of the run: the account of the processes is used"},
        {x && isnan(x->figure[EXACT_TIME]), 0, "the other account could not be read"},
        {x && x->lossy, 0, "records of exited processes were lost: there were too many at once"},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        if (!notes[i].holds)
            continue;
        pr_buf_str(out, out->len ? "; " : "");
        pr_buf_printf(out, notes[i].text, notes[i].count);
    }
}
