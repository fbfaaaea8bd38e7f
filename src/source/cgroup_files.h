/* SPDX-License-Identifier: Apache-2.0 */
/* Which file of a cgroup has which metrics. */
#pragma once
#include "core/metric.h"
#include "util/scan.h"

/* What of a cgroup may be accounted for in version 1 or 2, each by itself. */
enum pr_cgroup_account {
    ACCOUNT_MEMORY,
    ACCOUNT_USAGE,
    ACCOUNT_THROTTLE,
    ACCOUNT_PIDS,
    ACCOUNT_COUNT
};

extern const char *const pr_cgroup_controllers[ACCOUNT_COUNT]; /* of version 1 */

struct pr_cgroup_file {
    enum pr_cgroup_account account;
    int version;
    const char *name;
    bool costly; /* not at every sample */
    bool main;   /* its absence is worth a word */
    struct pr_scan_row rows[4];
};

#define CGROUP_FILES 14
extern const struct pr_cgroup_file pr_cgroup_files[CGROUP_FILES];

/* Takes the text of a file into value[metric]; what it does not have is untouched. */
void pr_cgroup_parse(const struct pr_cgroup_file *f, const char *text, size_t len, double *value);
