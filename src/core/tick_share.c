/* SPDX-License-Identifier: Apache-2.0 */
/* PSS by budget. What a reading will cost is known from the last one and from how the size has
 * changed since. The oldest and those that changed most come first, as far as the budget goes; one
 * that would hold the process up for long comes once a minute at the most. In between PSS is what
 * was read plus the change of RSS. Where all else leaves nothing of the budget, a fifth of it on
 * top is for those of whom nothing is known, or nothing of the last minute. */
#include <math.h>

#include "core/tick.h"
#include "util/clock.h"

#define WINDOW      64               /* members that are put in order at once, */
#define POOR_MOST   512              /* and looked at in a tick where no budget is left */
#define STALL       (NS_PER_S / 100) /* so long a process should not be held up, */
#define STALL_AGAIN (60 * NS_PER_S)  /* but this seldom */
#define ENDING_MOST (NS_PER_S / 20)  /* for those of them whose time has come when a phase ends */
#define QUIET_FOR                                                                                  \
    (NS_PER_S * 9 / 10)    /* one that has not run is as it was, but for what others do */
#define OLD_AFTER  60.0    /* seconds after which age counts as much as a change of all */
#define PAGE_COST  35.0    /* ns, before anything was measured: a small page, */
#define OTHER_COST 20000.0 /* and a hundred mappings */
#define PAGES_TELL 4096    /* from so many on a reading tells what a page costs */
#define DUE_PART   0.2     /* of the budget, */
#define DUE_FIRST  1e7     /* and so many ns when all begins */

struct candidate {
    struct pr_entity *e;
    double urgency;
};

static double change_of(const struct pr_entity *e)
{
    return e->value[METRIC_MEM_RSS] - e->share.rss;
}

static double predicted(const struct pr_session *s, const struct pr_entity *e)
{
    double page = s->turns.page_cost > 0 ? s->turns.page_cost : PAGE_COST;
    double bytes = e->share.at ? change_of(e) : e->value[METRIC_MEM_RSS];
    double ns = (e->share.at ? (double)e->share.cost : OTHER_COST) +
                pr_value_known(bytes) / (double)s->host.page_size * page;
    return fmax(0, ns);
}

/* Who was never read comes first; else bytes that are wrong, or may be by now. */
static double urgency(const struct pr_entity *e, int64_t now)
{
    double rss = pr_value_known(e->value[METRIC_MEM_RSS]);
    if (!e->share.at)
        return 1e18 + rss;
    double age = pr_seconds(now - e->share.at);
    return fabs(pr_value_known(change_of(e))) + (rss + 1) * age / OLD_AFTER;
}

static bool would_stall(const struct pr_session *s, const struct pr_entity *e)
{
    return predicted(s, e) > (double)STALL;
}

/* The end of a phase is the moment for what holds a process up: while one is open it waits for
 * that, for a minute more. */
static bool may_stall(const struct pr_session *s, const struct pr_entity *e, int64_t now)
{
    bool waits = s->phases.open_count && !s->phases.ending;
    return !e->share.stalled_at ||
           now - e->share.stalled_at >= (waits ? 2 * STALL_AGAIN : STALL_AGAIN);
}

/* Whatever the budget. */
static bool is_moment(const struct pr_session *s)
{
    return s->phases.ending && s->patient_cost < ENDING_MOST;
}

static bool is_candidate(const struct pr_session *s, const struct pr_entity *e, int64_t now)
{
    if (!pr_entity_is_here(e) || e->no_mm || e->kernel_thread)
        return false;
    bool quiet = e->ran >= 0 && e->ran == e->share.ran && !(fabs(change_of(e)) > 0);
    if (e->share.at && quiet && now - e->share.at < QUIET_FOR)
        return false;
    return !would_stall(s, e) || may_stall(s, e, now);
}

/* The most urgent first. */
static size_t fill(const struct pr_session *s, int64_t now, size_t from, size_t count,
                   struct candidate *window)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        struct pr_entity *e = s->set.items[(from + i) % s->set.count];
        if (!is_candidate(s, e, now))
            continue;
        struct candidate c = {e, urgency(e, now)};
        size_t at = n++;
        for (; at > 0 && window[at - 1].urgency < c.urgency; at--)
            window[at] = window[at - 1];
        window[at] = c;
    }
    return n;
}

/* What costs more than can be saved up is read when all has been saved; that leaves a debt. */
static bool can_pay(const struct pr_session *s, const struct pr_entity *e, int64_t now)
{
    double most = s->config->budget * 1e7, has = (double)s->allowance;
    if (is_moment(s) && would_stall(s, e))
        return true;
    if (has < 0)
        return s->turns.due >= 0 && (!e->share.at || pr_seconds(now - e->share.at) >= OLD_AFTER);
    return !e->share.at || has >= fmin(predicted(s, e), most * 0.9);
}

static void learn(struct pr_session *s, const struct pr_entity *e, int64_t cost)
{
    double pages = e->value[METRIC_MEM_RSS] / (double)s->host.page_size;
    if (!(pages >= PAGES_TELL))
        return;
    double page = (double)cost / pages;
    s->turns.page_cost = s->turns.page_cost > 0 ? (3 * s->turns.page_cost + page) / 4 : page;
}

static void read_one(struct pr_session *s, const struct pr_tick *t, struct pr_entity *e)
{
    bool stalls = would_stall(s, e);
    int64_t began = pr_clock_thread_cpu();
    pr_tick_source(s, t, e, SOURCE_pid_smaps); /* with the size of that moment */
    int64_t cost = pr_clock_thread_cpu() - began;
    s->turns.due -= s->allowance < 0 ? (double)cost : 0;
    s->allowance -= cost;
    s->patient_cost += cost;
    if (e->share.at != t->now)
        return;
    e->share.cost = cost;
    e->share.ran = e->ran;
    e->share.rss = e->value[METRIC_MEM_RSS];
    if (stalls || cost > STALL)
        e->share.stalled_at = t->now;
    learn(s, e, cost);
}

/* What those who cannot stay unknown may use in a second. */
static double due_in_a_second(const struct pr_session *s)
{
    return DUE_PART * s->config->budget * 1e7;
}

/* Debts are forgotten after ten seconds. */
static void earn_due(struct pr_session *s)
{
    double second = due_in_a_second(s);
    double saved = s->turns.due + second * pr_seconds(s->now.interval);
    if (s->now.first)
        s->turns.due = DUE_FIRST;
    else
        s->turns.due = fmax(-10 * second, fmin(second, saved));
}

static bool may_read(const struct pr_session *s)
{
    return s->allowance >= 0 || s->turns.due >= 0 || is_moment(s);
}

/* How many of them were read. */
static size_t read_window(struct pr_session *s, const struct pr_tick *t, size_t from, size_t count)
{
    struct candidate window[WINDOW];
    size_t n = fill(s, t->now, from, count, window), read = 0;
    for (size_t i = 0; i < n && may_read(s); i++) {
        bool poor = s->allowance < 0, pays = can_pay(s, window[i].e, t->now);
        if (!pays && !poor && !s->phases.ending)
            break; /* it comes first, when enough is saved */
        if (!pays)
            continue;
        read_one(s, t, window[i].e);
        read++;
    }
    return read;
}

static void read_some(struct pr_session *s, const struct pr_tick *t)
{
    size_t count = s->set.count, from = s->turns.share, read = 0;
    bool poor = s->allowance < 0 && s->turns.due >= 0;
    if (poor && t->now < s->turns.rested && !is_moment(s))
        return;
    size_t all = poor && count > POOR_MOST ? POOR_MOST : count;
    for (size_t done = 0; done < all && may_read(s); done += WINDOW) {
        size_t some = all - done < WINDOW ? all - done : WINDOW;
        read += read_window(s, t, from + done, some);
        s->turns.share = (from + done + some) % count;
    }
    if (poor && !read && all == count) /* nobody needs it: not asked again for a second */
        s->turns.rested = t->now + NS_PER_S;
}

/* What is between two readings; never above the size. */
static void estimate(struct pr_entity *e)
{
    double *v = e->value, change = change_of(e), rss = v[METRIC_MEM_RSS];
    if (isnan(change))
        return;
    v[METRIC_MEM_PSS] = fmax(0, fmin(e->share.pss + change, rss));
    v[METRIC_MEM_USS] = fmax(0, fmin(e->share.uss + change, v[METRIC_MEM_PSS]));
}

void pr_tick_shares(struct pr_session *s, const struct pr_tick *t)
{
    if (!(s->select.reads & READ_SMAPS))
        return;
    if (!s->turns.again)
        earn_due(s);
    if (!s->gone && s->set.count)
        read_some(s, t);
    for (size_t k = 0; k < s->set.count; k++) {
        struct pr_entity *e = s->set.items[k];
        bool known = e->share.at && pr_entity_is_here(e) && !s->gone;
        e->value[METRIC_MEM_PSS_AGE] = known ? pr_seconds(t->now - e->share.at) : NAN;
        if (known && e->share.at != t->now)
            estimate(e);
    }
}
