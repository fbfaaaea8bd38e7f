/* SPDX-License-Identifier: Apache-2.0 */
/* The machine as seen under a root: where /proc and /sys are and what may be done with them. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"

/* Kernel memory for a held file is about 5 KB: this many are at most 30 MB. */
#define HOST_HOLD_MOST 6000

/* Files below /proc that several ask for at the same time. */
enum pr_kept_file { KEPT_MOUNTS, KEPT_OWN_GROUPS, KEPT_FILES };

struct pr_kept {
    char *text;
    size_t len;
    int64_t at; /* boot time, 0 for never */
};

struct pr_host {
    int root;     /* descriptor of the root directory */
    int proc;     /* descriptor of its /proc */
    bool foreign; /* another root, or another pid namespace: a pid there is no pid here, so no
                     system call may take one */
    bool held;    /* /proc is the kernel's: descriptors may be held. A captured tree is reopened at
                     each reading, so that another one can take its place between two ticks */
    bool lent;    /* a copy: whoever opened it closes it */
    bool fd_size; /* st_size of /proc/PID/fd counts descriptors (Linux 6.2) */
    long page_size, ticks_per_second;
    int64_t boot_wall;        /* wall time of the boot, ns */
    struct pr_kept *kept;     /* by pr_kept_file; NULL where memory is out */
    int holding, hold_limit;  /* held descriptors, and how many there may be */
    int others, others_limit; /* of those: files of processes but stat, which comes first */
    bool refused, crowded;    /* somebody would have held one more; the same at the tick before */
};

/* Opens root ("/" or a directory with proc and sys in it). */
int pr_host_open(struct pr_host *h, const char *root, struct proctor_error *err);
void pr_host_close(struct pr_host *h);
/* A file below /proc, malloc'ed; the caller frees. It may be of a moment ago, before that was asked
 * for by somebody else. 0 or -errno. */
int pr_host_slurp(const struct pr_host *h, enum pr_kept_file which, const char *path,
                  char **ret_text, size_t *ret_len);
/* Words to put behind "there is no process N": it may be hidden from us. Else "". */
const char *pr_host_hidden(const struct pr_host *h);
/* Wall time, ns, of a start time in ticks since boot. */
int64_t pr_host_wall_of(const struct pr_host *h, uint64_t ticks);
