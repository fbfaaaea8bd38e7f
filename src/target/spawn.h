/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a job so that nothing about it differs from a start without us. For the command only. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define SPAWN_LATE      8192 /* bytes */
#define SPAWN_LATE_MOST 4    /* variables */

struct pr_spawn {
    char **argv, **envp; /* borrowed; NULL-terminated, the latter with room for SPAWN_LATE_MOST */
    /* Variables that are known only when it is released, in memory that is shared with it: each
     * ends with a NUL, all with an empty one. They replace those of the same name. NULL for none.
     */
    char *late;
    sigset_t mask;     /* the job's signal mask */
    bool chld_ignored; /* SIGCHLD was ignored when we were started */
    int cgroup;        /* a cgroup of version 2 to be born in, -1 for ours */
    bool in_cgroup;    /* so it was; else it is to be moved */
    pid_t pid;
    int go, report; /* our ends of the pipes to the held child */
};

/* Room for late variables; without memory there are none. */
void pr_spawn_expect(struct pr_spawn *s);
/* One of them, as NAME=VALUE; what has no room is left out. */
void pr_spawn_add(struct pr_spawn *s, const char *name, const char *value);
/* Forks a child that holds still until it is released. 0 or -errno. */
int pr_spawn_hold(struct pr_spawn *s);
/* Lets it exec; returns once it has: 0, or -errno of the exec, and the child is gone then. */
int pr_spawn_release(struct pr_spawn *s);
/* Ends a child that was never released, and waits for it. */
void pr_spawn_cancel(struct pr_spawn *s);
