/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a recorder lives. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/stat_line.h"
#include "store/stored.h"
#include "util/fs.h"

bool pr_stored_recorder_lives(const struct pr_stored *r)
{
    char host[256] = "", path[64], text[1024];
    double pid = pr_stored_number(r, r->about, "$.recorder.pid"),
           ticks = pr_stored_number(r, r->about, "$.recorder.start_ticks");
    gethostname(host, sizeof host - 1);
    if (!(pid > 0) || !(pid < 1e9) || strcmp(host, r->host) != 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    ssize_t n = pr_fs_read(AT_FDCWD, path, text, sizeof text);
    struct pr_stat_line line;
    return n > 0 && pr_stat_line_parse(text, (size_t)n, &line) && (double)line.start == ticks &&
           !pr_stat_line_is_dead(&line);
}
