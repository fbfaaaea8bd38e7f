/* SPDX-License-Identifier: Apache-2.0 */
/* Who is measured: at each tick a target says which processes have joined the job, and which have
 * left it though they live. */
#pragma once
#include "core/match.h"
#include "core/source.h"

struct pr_target {
    const struct pr_target_ops *ops; /* the first member of every target */
    int files;                       /* descriptors that it holds for good */
};

struct pr_target_ops {
    /* Adds those who joined to the set, and marks those who left. 0 or -errno. */
    int (*update)(struct pr_target *target, const struct pr_tick *t, struct pr_entities *set);
    /* Are those that the target lives by gone? */
    bool (*over)(const struct pr_target *target, const struct pr_entities *set);
    /* close_files: false where a fork has copied the handle, and the descriptors are not ours. */
    void (*free)(struct pr_target *target, bool close_files);
    bool may_be_empty; /* no members is a state as any other */
    bool from_within;  /* who joins is the child of a member, mostly of one that has run */
    bool own_only;     /* members' own use, without that of children they have reaped */
};

enum pr_target_kind { TARGET_TREE, TARGET_GROUP, TARGET_MATCH, TARGET_CGROUP, TARGET_SYSTEM };

struct pr_target_setting {
    enum pr_target_kind kind;
    pid_t root;                       /* the first process of a tree, or the number of a group */
    const char *cgroup;               /* as the user named it */
    const struct pr_matches *matches; /* the rules of TARGET_MATCH; borrowed */
    bool everybody;                   /* TARGET_SYSTEM: all processes are members, else nobody */
    bool alone;                       /* a tree without children */
    bool fresh;        /* we have just started it: all it uses counts from its birth */
    bool held;         /* and it has not begun: nobody else can be of the job yet */
    bool empty_handed; /* and it has no TCP socket from us */
    bool wait_tree;    /* not over before all members are gone */
    pid_t self;        /* never a member */
    pid_t adopter;     /* whose new children belong to the job (ourselves as subreaper), else 0 */
    bool all_come;     /* every orphan of the job comes to it: it is a subreaper */
    const pid_t *strangers; /* children of the adopter that are not of the job */
    size_t stranger_count;
};

/* -ESRCH where there is no such process, group or cgroup. */
int pr_target_new(const struct pr_target_setting *setting, const struct pr_host *host,
                  struct pr_target **ret_target, struct proctor_error *err);
