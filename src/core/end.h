/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of how a process ended, of which the roll is made (roll.h); and of who has not. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* COMM_MAX: the kernel keeps 15 bytes, kernel threads show up to 63. */
#define COMM_MAX 64

#define END_IO 4 /* metrics of I/O, from METRIC_IO_READ on */

struct pr_end {
    bool waited;       /* we waited for it: its values are its last, its CPU time rusage's */
    bool mark_final;   /* of mark: it cannot have had more */
    int status;        /* as wait has it; -1 for unknown */
    double own_cpu;    /* by its clock when it had ended; below 0 for unknown */
    int64_t at;        /* boot time at which it was missed first, 0 for never */
    double mark;       /* the highest resident size that any reading or record had */
    double cpu_before; /* used before it was watched */
    double io_brought[END_IO]; /* by children that it waited for, or done before it was watched */
    double io_told[END_IO];    /* its own by exit records of its threads (source/taskstats.c) */
};

/* Who was still running at the end. */
struct pr_left {
    pid_t pid;
    char comm[COMM_MAX];
};
