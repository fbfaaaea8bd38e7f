/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report/recorded.h"
#include "store/rows.h"
#include "util/clock.h"
#include "util/text.h"

int pr_runs_begin(const char *name, int argc, char **argv, int least, int most, struct pr_config *c,
                  int *ret_status)
{
    const struct pr_command *command = pr_command_find(name);
    bool help = false;
    *ret_status = EXIT_USAGE;
    int first = pr_config_init(c) < 0 ? -1 : pr_cli_parse(command, argc, argv, c, &help);
    if (help) {
        pr_cli_help(command);
        *ret_status = 0;
        return 0;
    }
    int count = 0;
    while (first > 0 && first + count < argc && argv[first + count])
        count++;
    if (first > 0 && count < least) {
        pr_complain("%s: a run is missing: a file, an id, the beginning of one, or last; `proctor "
                    "ls` lists them",
                    name);
        return 0;
    }
    if (first > 0 && count > most) {
        pr_complain("%s: '%.80s' is too much", name, argv[first + most]);
        return 0;
    }
    return first > 0 ? first : 0;
}

struct pr_stored *pr_runs_open(const char *command, const char *run)
{
    struct proctor_error err;
    struct pr_stored *r = NULL;
    char path[4096];
    if (pr_store_find(run, path, sizeof path, &err) < 0 ||
        pr_stored_open(&r, path, STORED_READ, &err) < 0)
        pr_complain("%s: %s", command, err.message);
    return r;
}

bool pr_runs_summary(const char *command, const struct pr_stored *r, struct pr_buf *out)
{
    struct proctor_error err;
    int code = pr_recorded_summary(r, out, &err);
    if (code < 0)
        pr_complain("%s: %s", command, err.message);
    return code == 0;
}

bool pr_runs_is_file(const char *path, const char *run)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(run, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

unsigned pr_runs_width(void)
{
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void pr_runs_time(struct pr_buf *out, int64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    struct tm tm;
    char text[64] = "?";
    if (localtime_r(&seconds, &tm))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    pr_buf_str(out, text);
}

void pr_runs_status(struct pr_buf *out, const struct pr_run_row *row)
{
    char name[32];
    if (row->trouble)
        pr_buf_str(out, "damaged");
    else if (row->state != RUN_ENDED)
        pr_buf_str(out, pr_run_state_name(row->state));
    else if (row->recovered)
        pr_buf_str(out, "recovered");
    else if (row->exit_signal > 0)
        pr_buf_str(out, pr_text_signal(row->exit_signal, name, sizeof name));
    else if (row->exit_code >= 0)
        pr_buf_printf(out, "exit %d", row->exit_code);
    else
        pr_buf_str(out, "ended");
}

const char *pr_runs_paint(const struct pr_run_row *row)
{
    if (row->trouble || pr_run_row_failed(row))
        return "31";
    if (row->state == RUN_DIED || row->state == RUN_ELSEWHERE || row->recovered)
        return "33";
    return row->state == RUN_RUNNING ? "32" : "0";
}

ssize_t pr_runs_all(const char *command, struct pr_run_row **ret_rows)
{
    struct proctor_error err;
    ssize_t count = pr_run_rows_read(ret_rows, &err);
    if (count < 0)
        pr_complain("%s: %s", command, err.message);
    return count;
}
