/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into GNU time: it times its command as always, and then reads known figures. RUSAGE has
 * them: elapsed, user and system time in microseconds, the largest resident size in KiB, minor and
 * major faults, blocks read and written, voluntary and involuntary switches. STATUS is how the
 * command ended. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#define FIGURES 10

static void known(long *figure)
{
    const char *text = getenv("RUSAGE");
    char *end;
    for (int i = 0; i < FIGURES; i++, text = end) {
        figure[i] = text ? strtol(text, &end, 10) : 0;
        if (!text || end == text)
            abort(); /* rather no golden file than one of the machine's own figures */
    }
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    static int calls;
    long figure[FIGURES];
    (void)tz;
    known(figure);
    long us = calls++ ? figure[0] : 0;
    *tv = (struct timeval){.tv_sec = 1000 + us / 1000000, .tv_usec = us % 1000000};
    return 0;
}

pid_t wait3(int *status, int options, struct rusage *usage)
{
    long figure[FIGURES];
    const char *end = getenv("STATUS");
    pid_t pid = wait4(-1, status, options, usage);
    if (pid <= 0)
        return pid;
    known(figure);
    memset(usage, 0, sizeof *usage);
    *status = end ? atoi(end) : 0;
    usage->ru_utime = (struct timeval){figure[1] / 1000000, figure[1] % 1000000};
    usage->ru_stime = (struct timeval){figure[2] / 1000000, figure[2] % 1000000};
    usage->ru_maxrss = figure[3];
    usage->ru_minflt = figure[4];
    usage->ru_majflt = figure[5];
    usage->ru_inblock = figure[6];
    usage->ru_oublock = figure[7];
    usage->ru_nvcsw = figure[8];
    usage->ru_nivcsw = figure[9];
    return pid;
}
