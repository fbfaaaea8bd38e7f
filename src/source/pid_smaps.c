/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/smaps_rollup: PSS and USS, the only expensive reading (9 ms per GB of small pages, and
 * it holds up the process), so it is made within a budget (core/tick_share.c). The file is not
 * held: a descriptor belongs to the memory that the process had when it was opened, and answers
 * ESRCH after exec. */
#include <errno.h>
#include <math.h>

#include "core/source.h"
#include "util/scan.h"

static const struct pr_scan_row rows[] = {
    {"Rss:", METRIC_MEM_RSS, 1024}, /* of the same moment: PSS is never more */
    {"Pss:", METRIC_MEM_PSS, 1024},           {"Private_Clean:", METRIC_MEM_USS, 1024},
    {"Private_Dirty:", METRIC_MEM_USS, 1024}, {"Private_Hugetlb:", METRIC_MEM_USS, 1024},
    {"Swap:", METRIC_MEM_SWAP, 1024},
};

static int read_smaps(const struct pr_tick *t, struct pr_entity *e)
{
    double known = e->value[METRIC_MEM_RSS]; /* by statm; what that does not tell stays absent */
    ssize_t n = pr_source_text(t, e, SOURCE_pid_smaps);
    if (n >= 0 && !pr_scan_keyed(t->text, (size_t)n, rows, sizeof rows / sizeof *rows, e->value))
        n = -EIO;
    if (isnan(known))
        e->value[METRIC_MEM_RSS] = NAN;
    e->share.at = n < 0 ? 0 : t->now;
    if (n < 0)
        e->value[METRIC_MEM_PSS] = e->value[METRIC_MEM_USS] = NAN; /* status knows swap, too */
    e->share.pss = e->value[METRIC_MEM_PSS];
    e->share.uss = e->value[METRIC_MEM_USS];
    return n < 0 ? (int)n : 0;
}

const struct pr_source pr_source_pid_smaps = {.name = "smaps_rollup",
                                              .gives = READ_SMAPS,
                                              .file = "smaps_rollup",
                                              .can_wait = true,
                                              .read = read_smaps};
