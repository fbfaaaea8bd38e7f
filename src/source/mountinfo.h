/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/mountinfo (proc(5)), one mount per line:
 *   id parent major:minor root point options [tags...] - type source super-options */
#pragma once
#include "core/host.h"
#include "util/scan.h"

/* Parts of the line as they stand there; root and point are escaped. */
struct pr_mount {
    uint64_t id, parent;
    struct pr_scan device, root, point, type, source, options; /* the last two may be empty */
};

/* The next line that is one; false at the end of the text. */
bool pr_mount_next(struct pr_scan *text, struct pr_mount *ret);
/* Blanks and the like stand as \040. False where it does not fit. */
bool pr_mount_unescape(struct pr_scan s, char *ret, size_t size);
/* Below /proc: whose mounts are looked at. The second is for where the first cannot be read. */
const char *pr_mount_file(const struct pr_host *host, bool second);
/* The whole table, malloc'ed; the caller frees. 0 or -errno. */
int pr_mount_table(const struct pr_host *host, char **ret_text, size_t *ret_len);
