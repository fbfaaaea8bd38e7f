/* SPDX-License-Identifier: Apache-2.0 */
/* What the job may use: the denominators of ratios. */
#pragma once
#include "core/derive.h"
#include "core/host.h"

/* Version 1 of cgroups says "none" with the largest number of whole pages: no limit is so high. */
#define LIMIT_NONE 0x1p62

/* The smallest of: the machine, the cgroup's limits up the hierarchy, CPU affinity. pid 0: the
 * machine alone. */
void pr_limits_read(const struct pr_host *host, pid_t pid, struct pr_limits *ret);
/* The smallest of the machine and the limits of a cgroup that a user names (cgroup_path.h) and of
 * those above it. */
void pr_limits_read_cgroup(const struct pr_host *host, const char *name, struct pr_limits *ret);
/* Is memory, CPU time or the set of CPUs limited by the process's cgroup of version 2 or by one
 * above it? Which, in words. */
bool pr_limits_in_v2(const struct pr_host *host, pid_t pid, char *ret_which, size_t size);
