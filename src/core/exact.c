/* SPDX-License-Identifier: Apache-2.0 */
#include "core/exact.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The ledger may be ahead of a figure by this much, and still both are of the same processes:
 * readings are not taken at one moment, and times in /proc come in ticks. */
#define AHEAD_SECONDS 0.02
#define AHEAD_RATIO   0.01

#define DESCRIPTORS_LEAST 64

const struct pr_exact_ops *const pr_exact_ways[EXACT_WAYS] = {&pr_exact_cgroup, &pr_exact_perf,
                                                              &pr_exact_taskstats};

static const enum pr_metric_id metrics[EXACT_PARTS] = {
    [EXACT_USER] = METRIC_CPU_USER,
    [EXACT_SYSTEM] = METRIC_CPU_SYSTEM,
    [EXACT_TIME] = METRIC_CPU_TIME,
};

static void blank(struct pr_exact *x)
{
    *x = (struct pr_exact){.clone_fd = -1, .counted = NAN};
    for (int i = 0; i < EXACT_PARTS; i++)
        x->figure[i] = x->most[i] = NAN;
}

int pr_exact_refuse(struct pr_exact *x, int code, const char *remedy, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(x->why, sizeof x->why, format, args);
    va_end(args);
    snprintf(x->remedy, sizeof x->remedy, "%s", remedy);
    return -code;
}

/* --- which way -------------------------------------------------------------------------------- */

static bool is_wanted(const struct pr_exact *x, const struct pr_exact_ops *ops)
{
    return x->automatic ? ops->automatic : strcmp(ops->name, x->asked) == 0;
}

/* The first from here on that is wanted and works; none is no failure where it is automatic. */
static int choose(struct pr_exact *x, size_t from)
{
    for (x->at = from; x->at < EXACT_WAYS; x->at++) {
        x->ops = pr_exact_ways[x->at];
        if (!is_wanted(x, x->ops))
            continue;
        int r = x->ops->prepare(x);
        if (r == 0)
            return 0;
        pr_exact_finish(x);
        if (!x->automatic)
            return r;
    }
    x->ops = NULL;
    return 0;
}

static int say(const struct pr_exact *x, int r, struct proctor_error *err)
{
    if (r == 0)
        return 0;
    return pr_error(err, -r, "--exact %s: %s; %s", x->asked, x->why, x->remedy);
}

static double descriptors(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : (double)limit.rlim_max;
}

int pr_exact_prepare(struct pr_exact *x, const char *asked, const struct pr_host *host,
                     struct proctor_error *err)
{
    blank(x);
    x->host = host;
    x->asked = asked;
    x->automatic = strcmp(asked, "auto") == 0;
    /* Recording itself needs the last ones. */
    bool poor = x->automatic && descriptors() < DESCRIPTORS_LEAST;
    return say(x, choose(x, poor ? EXACT_WAYS : 0), err);
}

int pr_exact_enter(struct pr_exact *x, pid_t pid, bool inside, struct proctor_error *err)
{
    while (x->ops) {
        int r = x->ops->enter(x, pid, inside);
        if (r == 0)
            return 0;
        if (!x->automatic)
            return say(x, r, err);
        pr_exact_finish(x);
        choose(x, x->at + 1);
    }
    return 0;
}

int pr_exact_finish(struct pr_exact *x)
{
    int r = x->ops && x->state ? x->ops->finish(x) : 0;
    x->state = NULL;
    x->clone_fd = -1;
    return r;
}

int pr_exact_probe(struct pr_exact *x, const struct pr_exact_ops *ops, bool automatic)
{
    blank(x);
    x->automatic = automatic;
    return ops->probe(x);
}

/* --- the figure ------------------------------------------------------------------------------- */

bool pr_exact_escaped(const struct pr_exact *x)
{
    double figure = x->figure[EXACT_TIME];
    return x->ops && x->ops->whole && x->counted > figure * (1 + AHEAD_RATIO) + AHEAD_SECONDS;
}

bool pr_exact_undivided(const struct pr_exact *x)
{
    return x && x->ops && x->figure[EXACT_TIME] > x->counted && isnan(x->figure[EXACT_USER]);
}

bool pr_exact_complete(const struct pr_exact *x)
{
    return x->ops && x->ops->whole && !isnan(x->figure[EXACT_TIME]) && !pr_exact_escaped(x);
}

/* What the job is said to have used. User and system time follow whoever has the total: the two
 * accounts divide it by different ticks. */
static double best(const struct pr_exact *x, int part, double ledger)
{
    double figure = x->figure[part];
    if (part == EXACT_TIME)
        return fmax(ledger, figure);
    return isnan(figure) || pr_exact_escaped(x) ? ledger : figure;
}

void pr_exact_settle(struct pr_exact *x, const struct pr_entities *set, double *value)
{
    if (!x || !x->ops)
        return;
    if (x->state)
        x->ops->read(x, set);
    x->counted = value[METRIC_CPU_TIME];
    for (int i = 0; i < EXACT_PARTS; i++) {
        double *v = &value[metrics[i]];
        *v = x->most[i] = fmax(best(x, i, *v), x->most[i]);
    }
}
