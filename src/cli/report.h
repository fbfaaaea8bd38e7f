/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of recorded runs as files. */
#pragma once
#include "core/error.h"
#include "store/stored.h"

/* A text takes the place of a file, by rename, so that nobody ever sees half of it; devices and
 * pipes are just written. 0 or -errno. */
int pr_report_replace(const char *path, const struct pr_buf *text);

/* Can a report be written there, by the ending of its name? 0 or -errno. */
int pr_report_check(const char *path, struct proctor_error *err);
/* One report of all the runs, into each of the files; each is written by rename. 0 or -errno. */
int pr_report_write(struct pr_stored *const *runs, size_t count, char *const *paths,
                    size_t path_count, struct proctor_error *err);
