/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor recover`: the end of a run whose recorder died. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "cli/runs.h"
#include "store/rows.h"
#include "report/rebuild.h"
#include "store/change.h"
#include "util/text.h"

static void said(const char *path, const char *what)
{
    struct pr_buf line = {0};
    pr_text_safe(&line, path);
    pr_buf_printf(&line, ": %s", what);
    puts(pr_buf_text(&line));
    pr_buf_done(&line);
}

/* 1: done; 0: nothing to be done; -errno. force: even where nobody can tell whether its recorder
 * lives. */
static int rebuild(const char *path, bool force, struct pr_buf *summary, struct proctor_error *err)
{
    struct pr_stored *r = NULL;
    int code = pr_stored_open(&r, path, STORED_READ, err);
    if (code == 0 && r->state == RUN_RUNNING)
        code = pr_error(err, EBUSY, "%s is being recorded", r->id);
    else if (code == 0 && r->state == RUN_ELSEWHERE && !force)
        code = pr_error(err, EBUSY,
                        "%.100s has no end and was begun on %.60s, which cannot be asked from "
                        "here; --force recovers it all the same",
                        r->id, r->host);
    else if (code == 0)
        code = r->state != RUN_ENDED;
    pr_stored_close(r);
    if (code != 1)
        return code;
    code = pr_stored_open(&r, path, STORED_CHANGE, err);
    if (code == 0)
        code = pr_rebuild(r, summary, err);
    if (code == 0)
        code = pr_stored_complete(r, pr_buf_text(summary), err);
    pr_stored_close(r);
    return code < 0 ? code : 1;
}

static bool recover(const char *path, bool force, bool quiet)
{
    struct proctor_error err;
    struct pr_buf summary = {0};
    int code = rebuild(path, force, &summary, &err);
    if (code < 0)
        pr_complain("recover: %s", err.message);
    else if (code == 1)
        said(path, "recovered");
    else if (!quiet)
        said(path, "is whole; there is nothing to recover");
    pr_buf_done(&summary);
    return code >= 0;
}

static int recover_all(bool force)
{
    struct pr_run_row *rows = NULL;
    ssize_t count = pr_runs_all("recover", &rows);
    int status = count < 0 ? EXIT_FAILED : 0;
    size_t died = 0;
    for (ssize_t i = 0; i < count; i++) {
        if (rows[i].trouble)
            pr_complain("recover: %s", rows[i].trouble);
        bool gone = rows[i].state == RUN_DIED || (rows[i].state == RUN_ELSEWHERE && force);
        if (rows[i].trouble || !gone)
            continue;
        died++;
        if (!recover(rows[i].path, force, true))
            status = EXIT_FAILED;
    }
    if (count >= 0 && !died)
        puts("no recorder has died: there is nothing to recover");
    if (count >= 0)
        pr_run_rows_free(rows, (size_t)count);
    return status;
}

int pr_main_recover(int argc, char **argv)
{
    struct pr_config c;
    struct proctor_error err;
    char path[4096];
    int status, first = pr_runs_begin("recover", argc, argv, 0, INT_MAX, &c, &status);
    bool named = first && first < argc && argv[first];
    if (first && named == c.all) {
        pr_complain("recover: name a run, or --all for every one whose recorder died");
    } else if (first) {
        status = c.all ? recover_all(c.even_elsewhere) : 0;
        for (int i = first; named && i < argc && argv[i]; i++) {
            bool found = pr_store_find(argv[i], path, sizeof path, &err) == 0;
            if (!found)
                pr_complain("recover: %s", err.message);
            if (!found || !recover(path, c.even_elsewhere, false))
                status = EXIT_FAILED;
        }
    }
    pr_config_done(&c);
    return status;
}
