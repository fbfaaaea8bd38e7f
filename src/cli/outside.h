/* SPDX-License-Identifier: Apache-2.0 */
/* The command's own surroundings: what it inherited, and how it leaves. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/host.h"

struct pr_outside {
    int *fds; /* descriptors above 2 that we were started with */
    size_t fd_count;
    bool has_sockets; /* one of them may be a TCP socket, or one of 0, 1, 2 */
    pid_t *children;  /* children that we had before the job: not of the job */
    size_t child_count;
};

/* Whatever of 0, 1, 2 is closed is opened as /dev/null, closing on exec: our own files must not
 * land there, and the job must find them closed. */
void pr_outside_plug_holes(void);
/* Notes what we inherited; before we open anything. */
void pr_outside_look(struct pr_outside *o);
/* Drops our copies of standard input, standard output and all inherited descriptors. */
void pr_outside_let_go(struct pr_outside *o);
/* The job's environment: ours, less PROCTOR_* but PROCTOR_HOME, with PROCTOR_RUN_ID, and with
 * PROCTOR_SOCKET where that is not empty; with room for so many more. NULL when memory is out. */
char **pr_outside_environment(const char *run_id, const char *socket, size_t more);
/* Raises RLIMIT_NOFILE; how many descriptors may be held. */
int pr_outside_raise_limit(void);
/* Does the root's /proc show this child of ours under the same pid? */
int pr_outside_check_root(const struct pr_host *host, pid_t pid, struct proctor_error *err);
/* Dies of the signal, without a core; returns where that cannot be, as in PID 1. */
void pr_outside_die_of(int sig);
void pr_outside_done(struct pr_outside *o, char **environment);
