/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/statm: pages of address space and resident pages. Exact where stat's rss is batched. */
#include <math.h>

#include "core/source.h"
#include "util/scan.h"

static bool parse(const struct pr_tick *t, struct pr_entity *e, const char *text, size_t len)
{
    struct pr_scan s = pr_scan_of(text, len);
    uint64_t size, resident;
    if (!pr_scan_u64(&s, &size) || !pr_scan_u64(&s, &resident))
        return false;
    /* Without address space there is nothing to see: the first thread has ended, or all are about
     * to. */
    bool any = size || resident;
    e->resized = e->faulted = false;
    e->value[METRIC_MEM_VMS] = any ? (double)size * (double)t->host->page_size : NAN;
    e->value[METRIC_MEM_RSS] = any ? (double)resident * (double)t->host->page_size : NAN;
    return true;
}

const struct pr_source pr_source_pid_statm = {
    .name = "statm", .gives = READ_STATM, .file = "statm", .parse = parse};
