/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of targets: one file each, one row in target.c. */
#pragma once
#include "core/target.h"

typedef int pr_target_maker(const struct pr_target_setting *setting, const struct pr_host *host,
                            struct pr_target **ret_target, struct proctor_error *err);

pr_target_maker pr_tree_new;   /* a process and whoever descends from it */
pr_target_maker pr_group_new;  /* a process group */
pr_target_maker pr_match_new;  /* processes by name, on the whole machine */
pr_target_maker pr_cgroup_new; /* a cgroup and those below it */
pr_target_maker pr_system_new; /* the machine: nobody, or everybody */
