/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts of local file systems whose size may be asked for without ever hanging. */
#pragma once
#include <stddef.h>
#include <sys/vfs.h>

#include "core/host.h"

struct pr_local_mount {
    const char *point;  /* as the kernel has it, not escaped */
    const char *device; /* "8:1" */
};

/* Calls `ask` for the mounts of each device, in the order of mountinfo's text, until it returns
 * true for one. 0 or -ENOMEM. */
int pr_local_mounts(const char *text, size_t len,
                    bool (*ask)(void *data, const struct pr_local_mount *mount), void *data);
/* Size of the file system that is mounted at an absolute path. 0 or -errno; -ENOTSUP for a captured
 * tree, of which the kernel knows nothing. */
int pr_space_stat(const struct pr_host *host, const char *path, struct statfs *ret);
