/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/status. Context switches in it are those of the leader thread only: a lower bound. */
#include <signal.h>
#include <string.h>

#include "core/source.h"
#include "util/clock.h"
#include "util/scan.h"

#define SWAP_FRESH (5 * NS_PER_S)

static const struct pr_scan_row rows[] = {
    {"VmHWM:", METRIC_MEM_RSS_PEAK, 1024},
    {"VmSwap:", METRIC_MEM_SWAP, 1024},
    {"voluntary_ctxt_switches:", METRIC_CTX_VOLUNTARY, 1},
    {"nonvoluntary_ctxt_switches:", METRIC_CTX_INVOLUNTARY, 1},
};

/* The bit of SIGCHLD in the line of ignored signals: its children leave no account behind. */
static bool ignores_children(const char *text, size_t len)
{
    static const char key[] = "\nSigIgn:\t";
    const char *line = memmem(text, len, key, sizeof key - 1);
    const size_t nibble = 16 - 1 - (SIGCHLD - 1) / 4; /* of 16 hexadecimal digits */
    if (!line || line + sizeof key - 1 + 16 > text + len)
        return false;
    char c = line[sizeof key - 1 + nibble];
    int digit = c >= 'a' ? c - 'a' + 10 : c - '0';
    return digit >> (SIGCHLD - 1) % 4 & 1;
}

static bool parse(const struct pr_tick *t, struct pr_entity *e, const char *text, size_t len)
{
    e->faults_seen = e->value[METRIC_FAULTS_MINOR] + e->value[METRIC_FAULTS_MAJOR];
    e->marked_at = t->now;
    e->ignores_children |= ignores_children(text, len);
    double swap = e->value[METRIC_MEM_SWAP];
    bool good = pr_scan_keyed(text, len, rows, sizeof rows / sizeof *rows, e->value);
    /* smaps_rollup has the better figure, while it is fresh: it knows of swapped shared memory. */
    if (e->share.at && t->now - e->share.at < SWAP_FRESH)
        e->value[METRIC_MEM_SWAP] = swap;
    return good;
}

const struct pr_source pr_source_pid_status = {
    .name = "status", .gives = READ_STATUS, .file = "status", .seldom = true, .parse = parse};
