/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence that memory killed: what the kernel counts of it in the job's memory cgroup and in those
 * above it, and on the whole machine, before and after. Read twice in a run, never at a sample. */
#pragma once
#include "core/host.h"

#define OOM_LEVELS 16 /* cgroups, the job's own first */
#define OOM_PATH   256
/* In the text of an event of a kill that was none of the job's. */
#define OOM_ELSEWHERE "elsewhere on this machine"

enum pr_oom_count { OOM_HITS, OOM_KILLS, OOM_COUNTS };

struct pr_oom {
    char *dir; /* of the job's group, relative to the root; NULL for none */
    size_t top;
    int version, levels;
    double before[OOM_LEVELS][OOM_COUNTS]; /* NaN for unknown */
    double machine_before;
    /* The result; NaN for unknown, and all of it growth. */
    double kills;         /* of processes of the job's group */
    double machine_kills; /* of anybody */
    bool whole;           /* kills has all of the group and of those below, where the job stayed */
    bool left;            /* set by who sees it: the job has left the group since */
    double hits;  /* how often the limit of the nearest group that has run into it was met */
    double limit; /* of that group */
    bool own;     /* it is the job's own */
    char where[OOM_PATH]; /* its path */
};

/* Takes what is before. pid: the process whose group is the job's; or name, as a user named it. */
void pr_oom_open(struct pr_oom *o, const struct pr_host *host, pid_t pid, const char *name);
/* Takes what is after; o->dir and the counts before stay. */
void pr_oom_read(struct pr_oom *o, const struct pr_host *host);
void pr_oom_done(struct pr_oom *o);
