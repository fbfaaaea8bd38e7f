/* SPDX-License-Identifier: Apache-2.0 */
/* Where the directory of a cgroup is, relative to the host's root, in version 1, 2 or both. */
#pragma once
#include "core/host.h"

/* Of the group that a process is in. controller: "memory", or "" for version 2. */
bool pr_cgroup_dir(const struct pr_host *host, pid_t pid, const char *controller, char *ret_dir,
                   size_t size);
/* Of a group that a user names: by its directory, or as /proc/PID/cgroup shows it. True only where
 * it exists. */
bool pr_cgroup_named(const struct pr_host *host, const char *name, const char *controller,
                     char *ret_dir, size_t size);
