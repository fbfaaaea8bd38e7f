/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t now(clockid_t id)
{
    struct timespec t = {0};
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t pr_clock_boot(void)
{
    return now(CLOCK_BOOTTIME);
}

int64_t pr_clock_wall(void)
{
    return now(CLOCK_REALTIME);
}

int64_t pr_clock_thread_cpu(void)
{
    return now(CLOCK_THREAD_CPUTIME_ID);
}

int64_t pr_clock_process_cpu(void)
{
    return now(CLOCK_PROCESS_CPUTIME_ID);
}

static struct tm utc(int64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    struct tm tm = {0};
    gmtime_r(&seconds, &tm);
    return tm;
}

void pr_clock_rfc3339(int64_t wall_ns, char *text, size_t size)
{
    struct tm tm = utc(wall_ns);
    size_t n = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + n, size - n, ".%03dZ", (int)(wall_ns / 1000000 % 1000));
}

void pr_clock_compact(int64_t wall_ns, char *text, size_t size)
{
    struct tm tm = utc(wall_ns);
    strftime(text, size, "%Y%m%dT%H%M%SZ", &tm);
}

int64_t pr_clock_pid_cpu(pid_t pid)
{
    struct timespec ts;
    /* As clock_getcpuclockid makes it, which asks the kernel once more. */
    clockid_t clock = (clockid_t)(~(unsigned)pid << 3 | 2);
    if (clock_gettime(clock, &ts) < 0)
        return -1;
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}
