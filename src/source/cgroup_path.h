/* SPDX-License-Identifier: Apache-2.0 */
/* For sources that look at one cgroup in several hierarchies: the tables are read once. */
#pragma once
#include "core/cgroup_path.h"
#include "source/mountinfo.h"

struct pr_cgroup_place {
    char dir[CGROUP_DIR]; /* relative to host->root */
    size_t top;           /* so much of it is the mount point; the group's path is behind it */
    bool exists;
};

/* A mount of cgroups; root and point as they are, in the table's memory. */
struct pr_cgroup_mount {
    struct pr_scan type, options;
    const char *root, *point;
};

struct pr_cgroup_view {
    const struct pr_host *host;
    const char *name; /* as the user has it, borrowed; NULL where it is that of a process */
    char *table;      /* mountinfo */
    struct pr_cgroup_mount *mounts;
    size_t mount_count;
    char *groups;
    size_t groups_len;
};

/* Of the named group, or of that of the process where name is NULL. 0 or -errno. */
int pr_cgroup_view_open(struct pr_cgroup_view *v, const struct pr_host *host, pid_t pid,
                        const char *name);
/* The same of a process of whose /proc/PID/cgroup this is the text. */
int pr_cgroup_view_of(struct pr_cgroup_view *v, const struct pr_host *host, const char *groups,
                      size_t len);
void pr_cgroup_view_close(struct pr_cgroup_view *v);
/* The place of the group in the hierarchy of a controller. False where none is mounted that would
 * show it; it may still not exist. */
bool pr_cgroup_find(const struct pr_cgroup_view *v, const char *controller,
                    struct pr_cgroup_place *ret);
/* The top of what is mounted. */
bool pr_cgroup_top(const struct pr_cgroup_view *v, const char *controller,
                   struct pr_cgroup_place *ret);
/* Is the controller of version 1? It is in one hierarchy, so there are no files of it in version 2.
 * Of a named group that is not known: false. */
bool pr_cgroup_is_v1(const struct pr_cgroup_view *v, const char *controller);
/* Is there a cgroup in this directory? */
bool pr_cgroup_exists(const struct pr_host *host, const char *dir);

/* The path in the hierarchy of a controller, of the text of /proc/PID/cgroup. */
bool pr_cgroup_path_of(const char *text, size_t len, const char *controller, char *ret,
                       size_t size);
