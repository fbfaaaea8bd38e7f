/* SPDX-License-Identifier: Apache-2.0 */
/* Where a cgroup is: its directory in the hierarchy of a controller, version 1 or 2. Directories
 * are relative to host->root: "sys/fs/cgroup/memory/a/b". */
#pragma once
#include <stddef.h>

#include "core/host.h"

#define CGROUP_DIR 4096 /* room for one */

/* The directory of the cgroup that a process is in; controller "" is version 2. False where there
 * is none, or it cannot be seen from here. */
bool pr_cgroup_dir(const struct pr_host *host, pid_t pid, const char *controller, char *ret_dir,
                   size_t size);
/* The same of a cgroup that a user names: by its directory ("/sys/fs/cgroup/memory/a"; the group of
 * the same path in other hierarchies is meant as well), or by its path as /proc/PID/cgroup has it
 * ("/a" or "a"). Controller NULL: the directory itself, else where it exists, version 2 first. */
bool pr_cgroup_named(const struct pr_host *host, const char *name, const char *controller,
                     char *ret_dir, size_t size);
