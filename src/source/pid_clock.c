/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU clock of a process: nanoseconds, exited threads included, one system call, no permission
 * needed. It takes a pid, so it is of no use under a foreign root, and it silently answers for
 * whoever has the pid now: what it says counts only with what stat says after it. */
#include <time.h>

#include "core/source.h"
#include "util/clock.h"

static int read_clock(const struct pr_tick *t, struct pr_entity *e)
{
    struct timespec ts;
    e->ran = -1;
    if (t->host->foreign)
        return 0; /* stat's sum in ticks stands */
    if (!e->clock && clock_getcpuclockid(e->pid, &e->clock) != 0)
        e->clock = 0;
    if (!e->clock || clock_gettime(e->clock, &ts) < 0)
        return 0;
    e->ran = (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
    return 0;
}

const struct pr_source pr_source_pid_clock = {
    .name = "CPU clock", .gives = READ_CLOCK, .read = read_clock};
