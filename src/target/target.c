/* SPDX-License-Identifier: Apache-2.0 */
#include "core/target.h"

#include "target/targets.h"

int pr_target_new(const struct pr_target_setting *setting, const struct pr_host *host,
                  struct pr_target **ret_target, struct proctor_error *err)
{
    static pr_target_maker *const makers[] = {
        [TARGET_TREE] = pr_tree_new,     [TARGET_GROUP] = pr_group_new,
        [TARGET_MATCH] = pr_match_new,   [TARGET_CGROUP] = pr_cgroup_new,
        [TARGET_SYSTEM] = pr_system_new,
    };
    return makers[setting->kind](setting, host, ret_target, err);
}
