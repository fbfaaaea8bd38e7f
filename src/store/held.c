/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a recorder lives. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/stat_line.h"
#include "store/stored.h"
#include "util/fs.h"

/* On a network file system the recorder may be at work on another machine, and there is no lock. */
enum pr_run_state pr_stored_recorder(const struct pr_stored *r)
{
    char host[256] = "", path[64], text[1024];
    double pid = pr_stored_number(r, r->about, "$.recorder.pid"),
           ticks = pr_stored_number(r, r->about, "$.recorder.start_ticks");
    gethostname(host, sizeof host - 1);
    if (*r->host && strcmp(host, r->host) != 0)
        return RUN_ELSEWHERE;
    if (!(pid > 0) || !(pid < 1e9))
        return RUN_DIED;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    ssize_t n = pr_fs_read(AT_FDCWD, path, text, sizeof text);
    struct pr_stat_line line;
    bool lives = n > 0 && pr_stat_line_parse(text, (size_t)n, &line) &&
                 (double)line.start == ticks && !pr_stat_line_is_dead(&line);
    return lives ? RUN_RUNNING : RUN_DIED;
}

const char *pr_run_state_name(enum pr_run_state state)
{
    static const char *const names[] = {[RUN_RUNNING] = "running",
                                        [RUN_ENDED] = "ended",
                                        [RUN_DIED] = "died",
                                        [RUN_ELSEWHERE] = "elsewhere"};
    return names[state];
}
