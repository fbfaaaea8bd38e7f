/* SPDX-License-Identifier: Apache-2.0 */
/* What the workloads share: a page in which they say what they used, and ways to use it. */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdatomic.h>
#include <sys/types.h>

/* Lies in a memory file that whoever started us has given: it outlives exec, every process of the
 * job sees it, and writing into it is neither a call that writes nor a byte to a disk. */
struct tally {
    double before;                 /* CPU seconds of the root before it was in its group */
    _Atomic long said_ns;          /* CPU time of those for whom nobody in the job waits */
    _Atomic long wrote, read;      /* bytes */
    _Atomic long touched, procs;   /* bytes at once, processes at once */
    _Atomic long reused, buffered; /* pids had before; readers that had to go through the cache */
};

extern struct tally *tally;
extern long count, amount, extra; /* the arguments behind the name */

struct workload {
    const char *name;
    void (*run)(void);
};
extern const struct workload cpu_workloads[], io_workloads[], memory_workloads[];

/* Uses so many microseconds of this thread's CPU time from now on. */
void burn(long microseconds);
/* Adds what this process has used: for those that nobody waits for. */
void say(void);
void pause_ms(long milliseconds);
/* fork() that cannot fail. */
pid_t forked(void);
void wait_for(pid_t pid);
void wait_for_all(void);
/* A grandchild whose parent has ended does this; back in the job when its parent has. */
void orphan(void (*work)(long), long with);
/* Until whoever takes in orphans has reaped every one of them: all they used is in an account. */
void orphans_end(void);
/* Becomes this program again, with another workload. */
void become(const char *name, long n);
void fail(const char *what);

#endif
