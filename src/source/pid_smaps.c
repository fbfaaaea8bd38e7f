/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/smaps_rollup: PSS and USS, the only expensive reading (9 ms per GB of small pages, and
 * it holds up the process), so it is made within a budget. What is not read again keeps its value,
 * and mem.pss.age says how old it is. A held descriptor belongs to the memory that the process had
 * when it was opened: after exec it answers ESRCH and has to be opened anew. */
#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "core/source.h"
#include "util/scan.h"

static const struct pr_scan_row rows[] = {
    {"Pss:", METRIC_MEM_PSS, 1024},           {"Private_Clean:", METRIC_MEM_USS, 1024},
    {"Private_Dirty:", METRIC_MEM_USS, 1024}, {"Private_Hugetlb:", METRIC_MEM_USS, 1024},
    {"Swap:", METRIC_MEM_SWAP, 1024},
};

static void drop_held(const struct pr_tick *t, struct pr_entity *e)
{
    if (e->fd[SOURCE_pid_smaps] < 0)
        return;
    close(e->fd[SOURCE_pid_smaps]);
    e->fd[SOURCE_pid_smaps] = -1;
    t->host->holding--;
}

static int read_smaps(const struct pr_tick *t, struct pr_entity *e)
{
    bool was_held = e->fd[SOURCE_pid_smaps] >= 0;
    ssize_t n = pr_source_text(t, e, SOURCE_pid_smaps);
    if (n == -ESRCH && was_held) {
        drop_held(t, e);
        n = pr_source_text(t, e, SOURCE_pid_smaps);
    }
    if (n >= 0 && !pr_scan_keyed(t->text, (size_t)n, rows, sizeof rows / sizeof *rows, e->value))
        n = -EIO;
    e->pss_at = n < 0 ? 0 : t->now;
    if (n >= 0)
        return 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].metric != METRIC_MEM_SWAP) /* status knows that one too */
            e->value[rows[i].metric] = NAN;
    drop_held(t, e);
    return (int)n;
}

const struct pr_source pr_source_pid_smaps = {.name = "smaps_rollup",
                                              .gives = READ_SMAPS,
                                              .file = "smaps_rollup",
                                              .can_wait = true,
                                              .read = read_smaps};
