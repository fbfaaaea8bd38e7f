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

static uint64_t matching(const char *pattern, size_t len)
{
    uint64_t bits = 0;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (matches(pattern, len, pr_metrics[i].key))
            bits |= UINT64_C(1) << i;
    return bits;
}

int pr_select_check(const char *key, const char *what, struct proctor_error *err)
{
    if (matching(key, strlen(key)))
        return 0;
    return pr_error(err, EINVAL, "%s: '%.80s' is no metric; `proctor metrics` lists them", what,
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

struct pr_select pr_select_of(const struct pr_config *c)
{
    struct pr_select s = {c->select.count ? 0 : (UINT64_C(1) << METRIC_COUNT) - 1, 0};
    for (size_t i = 0; i < c->select.count; i++)
        s.shown |= matching(c->select.items[i], strlen(c->select.items[i]));
    for (int i = 0; i < METRIC_COUNT; i++) {
        bool pss = pr_metrics[i].needs == READ_SMAPS;
        if ((c->no_pss && pss) || (c->no_gpu && strncmp(pr_metrics[i].key, "gpu.", 4) == 0))
            s.shown &= ~(UINT64_C(1) << i);
        if (pr_selected(&s, i))
            s.reads |= needs(i);
    }
    if (c->no_pss)
        s.reads &= ~(unsigned)READ_SMAPS;
    s.reads |= READ_STAT; /* who a process is */
    return s;
}
