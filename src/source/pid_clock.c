/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU clock of a process: nanoseconds, exited threads included, one system call, no permission
 * needed. It takes a pid, so it is of no use under a foreign root, and it silently answers for
 * whoever has the pid now: what it says counts only with what stat says after it. */
#include "core/source.h"
#include "util/clock.h"

static int read_clock(const struct pr_tick *t, struct pr_entity *e)
{
    e->ran = t->host->foreign ? -1 : pr_clock_pid_cpu(e->pid); /* else stat's sum in ticks stands */
    return 0;
}

const struct pr_source pr_source_pid_clock = {
    .name = "CPU clock", .gives = READ_CLOCK, .read = read_clock};
