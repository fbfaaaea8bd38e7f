/* SPDX-License-Identifier: Apache-2.0 */
/* Who is measured: at each tick a target says which processes have joined the job. */
#pragma once
#include "core/source.h"

struct pr_target {
    const struct pr_target_ops *ops; /* the first member of every target */
};

struct pr_target_ops {
    /* Adds those who joined to the set. 0 or -errno. */
    int (*update)(struct pr_target *target, const struct pr_tick *t, struct pr_entities *set);
    /* Are those that the target lives by gone? */
    bool (*over)(const struct pr_target *target, const struct pr_entities *set);
    /* close_files: false where a fork has copied the handle, and the descriptors are not ours. */
    void (*free)(struct pr_target *target, bool close_files);
};

struct pr_tree_setting {
    pid_t root;
    bool alone;     /* without children */
    bool fresh;     /* we have just started it: all it uses counts from its birth */
    bool held;      /* and it has not begun: nobody else can be of the job yet */
    bool wait_tree; /* not over before all members are gone */
    pid_t self;     /* never a member */
    pid_t adopter;  /* whose new children belong to the job (ourselves as subreaper), else 0 */
    const pid_t *strangers; /* children of the adopter that are not of the job */
    size_t stranger_count;
};

/* The tree of a process: whoever descends from it, and stays a member when orphaned, in a new
 * session or group. -ESRCH where there is no such process. */
int pr_tree_new(const struct pr_tree_setting *setting, const struct pr_host *host,
                struct pr_target **ret_target, struct proctor_error *err);
