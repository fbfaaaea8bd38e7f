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

/* Neither gmtime_r nor strftime: they read the local time zone first. The calendar repeats every
 * 400 years, which are counted from a first of March, so that a leap day is the last of its year.
 */
static struct tm utc(int64_t wall_ns)
{
    int64_t seconds = wall_ns / NS_PER_S, days = seconds / 86400 + 719468, rest = seconds % 86400;
    int64_t era = days / 146097, day = days % 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t in_year = day - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * in_year + 2) / 153; /* from March on */
    return (struct tm){.tm_year = (int)(era * 400 + year + (month >= 10) - 1900),
                       .tm_mon = (int)((month + 2) % 12),
                       .tm_mday = (int)(in_year - (153 * month + 2) / 5 + 1),
                       .tm_hour = (int)(rest / 3600),
                       .tm_min = (int)(rest / 60 % 60),
                       .tm_sec = (int)(rest % 60)};
}

void pr_clock_rfc3339(int64_t wall_ns, char *text, size_t size)
{
    struct tm tm = utc(wall_ns);
    snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(wall_ns / 1000000 % 1000));
}

void pr_clock_compact(int64_t wall_ns, char *text, size_t size)
{
    struct tm tm = utc(wall_ns);
    snprintf(text, size, "%04d%02d%02dT%02d%02d%02dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec);
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
