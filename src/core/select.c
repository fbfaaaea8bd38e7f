/* SPDX-License-Identifier: Apache-2.0 */
#include "core/select.h"

#include <errno.h>
#include <string.h>

#include "core/config.h"

/* "cpu.time" matches itself; "cpu.*" and "*" match what begins so. */
static bool matches(const char *pattern, size_t len, const char *key)
{
    if (len && pattern[len - 1] == '*')
        return strncmp(key, pattern, len - 1) == 0;
    return strlen(key) == len && strncmp(key, pattern, len) == 0;
}

int pr_select_check(const char *key, const char *what, struct proctor_error *err)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (matches(key, strlen(key), pr_metrics[i].key))
            return 0;
    return pr_error(err, EINVAL, "%s: '%.40s' is no metric; `proctor metrics` lists them", what,
                    key);
}

/* What a metric needs, itself or through what it derives from. */
static unsigned needs(int id)
{
    const struct pr_metric *m = &pr_metrics[id];
    unsigned reads = m->needs;
    if (pr_metric_is_derived((enum pr_metric_id)id)) {
        reads |= needs((int)m->of);
        if (m->otherwise)
            reads |= needs((int)m->otherwise);
    }
    return reads;
}

/* Asked for, or nothing was, and not switched off. */
static bool is_shown(const struct pr_config *c, const struct pr_metric *m)
{
    bool asked = !c->select.count;
    for (size_t i = 0; i < c->select.count; i++)
        asked |= matches(c->select.items[i], strlen(c->select.items[i]), m->key);
    bool off = (c->no_pss && m->needs == READ_SMAPS) || (c->no_gpu && m->needs == READ_GPU);
    /* Without a job there is only the machine to speak of. */
    bool nobodys = c->machine && !c->processes && !(m->scope & (SCOPE_SYSTEM | SCOPE_GPU));
    return asked && !off && !nobodys;
}

/* What the lines at the end of a job say nothing of. */
#define NOT_IN_LINES                                                                               \
    (READ_NET | READ_NETDEV | READ_DISKS | READ_SPACE | READ_LOAD | READ_MEMINFO | READ_CPUS |     \
     READ_ENERGY | READ_CGROUP_REST | READ_PSI)

struct pr_select pr_select_of(const struct pr_config *c)
{
    struct pr_select s = {.reads = READ_STAT}; /* who a process is */
    unsigned untold = pr_config_is_told(c) ? 0 : NOT_IN_LINES;
    for (int i = 0; i < METRIC_COUNT; i++) {
        s.shown[i] = is_shown(c, &pr_metrics[i]) && !(needs(i) & untold);
        if (s.shown[i])
            s.reads |= needs(i);
    }
    if (c->no_pss)
        s.reads &= ~(unsigned)READ_SMAPS;
    return s;
}
