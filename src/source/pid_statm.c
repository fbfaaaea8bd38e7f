/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/statm: pages of address space and resident pages. Exact where stat's rss is batched. */
#include "core/source.h"
#include "util/scan.h"

static void parse(const struct pr_tick *t, struct pr_entity *e, const char *text, size_t len)
{
    struct pr_scan s = pr_scan_of(text, len);
    uint64_t size, resident;
    if (!pr_scan_u64(&s, &size) || !pr_scan_u64(&s, &resident))
        return;
    e->value[METRIC_MEM_VMS] = (double)size * (double)t->host->page_size;
    e->value[METRIC_MEM_RSS] = (double)resident * (double)t->host->page_size;
}

const struct pr_source pr_source_pid_statm = {
    .name = "statm", .gives = READ_STATM, .file = "statm", .parse = parse};
