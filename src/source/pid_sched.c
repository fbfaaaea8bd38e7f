/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/schedstat: nanoseconds on a CPU, ready to run and waiting for one, and how often. Of
 * the first thread only: a lower bound. */
#include "core/source.h"
#include "util/clock.h"
#include "util/scan.h"

static bool parse(const struct pr_tick *t, struct pr_entity *e, const char *text, size_t len)
{
    struct pr_scan s = pr_scan_of(text, len);
    uint64_t ran, waited;
    (void)t;
    if (!pr_scan_u64(&s, &ran) || !pr_scan_u64(&s, &waited))
        return false;
    e->value[METRIC_SCHED_DELAY] = (double)waited / (double)NS_PER_S;
    return true;
}

const struct pr_source pr_source_pid_sched = {
    .name = "schedstat", .gives = READ_SCHED, .file = "schedstat", .seldom = true, .parse = parse};
