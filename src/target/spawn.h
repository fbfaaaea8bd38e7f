/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a job so that nothing about it differs from a start without us. For the command only. */
#pragma once
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct pr_spawn {
    char **argv, **envp; /* borrowed; NULL-terminated */
    sigset_t mask;       /* the job's signal mask */
    bool chld_ignored;   /* SIGCHLD was ignored when we were started */
    int cgroup;          /* a cgroup of version 2 to be born in, -1 for ours */
    bool in_cgroup;      /* so it was; else it is to be moved */
    pid_t pid;
    int go, report; /* our ends of the pipes to the held child */
};

/* Forks a child that holds still until it is released; returns when it does. 0 or -errno. */
int pr_spawn_hold(struct pr_spawn *s);
/* Lets it exec; returns once it has: 0, or -errno of the exec, and the child is gone then. */
int pr_spawn_release(struct pr_spawn *s);
/* Ends a child that was never released, and waits for it. */
void pr_spawn_cancel(struct pr_spawn *s);
