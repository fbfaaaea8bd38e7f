/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor rm` and `proctor gc`: runs that are not needed any more. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/runs.h"
#include "store/rows.h"
#include "core/run_file.h"
#include "util/clock.h"
#include "util/text.h"

static void said(const char *what, const struct pr_run_row *row)
{
    struct pr_buf line = {0};
    pr_buf_printf(&line, "%s ", what);
    pr_text_safe(&line, row->path);
    pr_buf_str(&line, " (");
    pr_units_human(&line, row->bytes, UNIT_BYTES);
    pr_buf_str(&line, ")");
    puts(pr_buf_text(&line));
    pr_buf_done(&line);
}

static bool removed(const char *command, const struct pr_run_row *row)
{
    int code = pr_run_file_remove(row->path);
    if (code < 0)
        pr_complain("%s: %s: '%s'", command, strerror(-code), row->path);
    else
        said("removed", row);
    return code == 0;
}

/* --- one by one ------------------------------------------------------------------------------- */

static bool remove_run(const char *run, bool force)
{
    struct proctor_error err;
    struct pr_run_row row;
    char path[4096];
    if (pr_store_find(run, path, sizeof path, &err) < 0) {
        pr_complain("rm: %s", err.message);
        return false;
    }
    pr_run_row_read(&row, path);
    bool good = false;
    if (row.trouble && !force)
        pr_complain("rm: %s%s", row.trouble,
                    row.bytes > 0 ? "; --force removes it all the same" : "");
    else if (!row.trouble && row.state == RUN_RUNNING && !force)
        pr_complain("rm: %s is being recorded; --force removes it all the same", row.id);
    else if (!row.trouble && row.state == RUN_ELSEWHERE && !force)
        pr_complain("rm: %s has no end and was begun on %s, which cannot be asked from here; "
                    "--force removes it all the same",
                    row.id, row.host);
    else
        good = removed("rm", &row);
    pr_run_row_done(&row);
    return good;
}

int pr_main_rm(int argc, char **argv)
{
    struct pr_config c;
    int status, first = pr_runs_begin("rm", argc, argv, 1, INT_MAX, &c, &status);
    if (first) {
        status = 0;
        for (int i = first; i < argc && argv[i]; i++)
            if (!remove_run(argv[i], c.even_running))
                status = EXIT_FAILED;
    }
    pr_config_done(&c);
    return status;
}

/* --- what is old ------------------------------------------------------------------------------ */

struct keep {
    double newest; /* how many */
    int64_t since; /* wall time, ns */
};

/* A plain number counts runs; with a unit it is a time. */
static bool parse_keep(const char *text, struct keep *ret)
{
    double v;
    *ret = (struct keep){.newest = 0, .since = INT64_MAX};
    if (pr_units_parse_number(text, &v)) {
        ret->newest = v;
        return v == floor(v);
    }
    if (!pr_units_parse_duration(text, &v))
        return false;
    ret->since = pr_clock_wall() - llround(fmin(v, 9e9) * 1e9);
    return true;
}

static void report(bool dry, size_t count, double bytes, size_t kept, size_t unreadable)
{
    struct pr_buf line = {0};
    pr_buf_printf(&line, "%s %zu run%s (", dry ? "would remove" : "removed", count,
                  count == 1 ? "" : "s");
    pr_units_human(&line, bytes, UNIT_BYTES);
    pr_buf_printf(&line, "), kept %zu", kept);
    if (unreadable)
        pr_buf_printf(&line, "; %zu files that cannot be read were left alone", unreadable);
    puts(pr_buf_text(&line));
    pr_buf_done(&line);
}

static int collect(const struct keep *keep, bool dry)
{
    struct pr_run_row *rows = NULL;
    ssize_t count = pr_runs_all("gc", &rows);
    size_t gone = 0, kept = 0, unreadable = 0;
    double bytes = 0;
    int status = 0;
    if (count < 0)
        return EXIT_FAILED;
    for (ssize_t i = 0; i < count; i++) {
        const struct pr_run_row *row = &rows[i];
        bool young = (double)i < keep->newest || row->started >= keep->since;
        unreadable += row->trouble != NULL;
        if (row->trouble)
            continue;
        if (young || row->state == RUN_RUNNING || row->state == RUN_ELSEWHERE) {
            kept++;
            continue;
        }
        if (dry)
            said("would remove", row);
        else if (!removed("gc", row)) {
            status = EXIT_FAILED;
            continue;
        }
        gone++;
        bytes += row->bytes;
    }
    report(dry, gone, bytes, kept, unreadable);
    pr_run_rows_free(rows, (size_t)count);
    return status;
}

int pr_main_gc(int argc, char **argv)
{
    struct pr_config c;
    struct keep keep;
    int status;
    if (pr_cli_begin("gc", argc, argv, &c, &status)) {
        status = EXIT_USAGE;
        if (!c.keep)
            pr_complain("gc: --keep is missing: how many of the newest runs, or how old: 100, 30d");
        else if (!parse_keep(c.keep, &keep))
            pr_complain("gc: --keep: '%.60s' is neither a number of runs nor a time; write 100 or "
                        "30d",
                        c.keep);
        else
            status = collect(&keep, c.dry_run);
    }
    pr_config_done(&c);
    return status;
}
