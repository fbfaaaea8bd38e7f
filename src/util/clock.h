/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks in int64 nanoseconds. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

int64_t pr_clock_boot(void); /* CLOCK_BOOTTIME: counts through suspend, never steps */
int64_t pr_clock_wall(void);
int64_t pr_clock_thread_cpu(void); /* CPU time of the calling thread */
int64_t pr_clock_process_cpu(void);

static inline double pr_seconds(int64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

/* "2026-11-15T09:02:53.123Z" into text (at least 32 bytes). */
void pr_clock_rfc3339(int64_t wall_ns, char *text, size_t size);
/* "20261115T090253Z", the first half of a run id. */
void pr_clock_compact(int64_t wall_ns, char *text, size_t size);
/* CPU time of a process, ended threads included, ns; -1 where there is none with that pid, be it
 * that a thread has it. */
int64_t pr_clock_pid_cpu(pid_t pid);
