/* SPDX-License-Identifier: Apache-2.0 */
/* The public API for runs that were recorded. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proctor/proctor.h"
#include "report/recorded.h"
#include "report/written.h"
#include "store/find.h"
#include "store/replay.h"
#include "store/rows.h"

struct proctor_run {
    struct pr_stored *stored;
    struct pr_buf summary; /* empty where nobody has asked */
    pid_t owner;           /* who opened it: in a forked child it is dead */
    bool busy;             /* in a callback */
    proctor_sample_fn *fn;
    void *data;
};

static int check(const struct proctor_run *run, struct proctor_error *err)
{
    if (run->owner != getpid())
        return pr_error(err, ECHILD, "this run was opened by process %d", (int)run->owner);
    return run->busy ? pr_error(err, EDEADLK, "a callback cannot call into its run") : 0;
}

int proctor_run_open(struct proctor_run **ret_run, const char *name, struct proctor_error *err)
{
    char path[4096];
    struct proctor_run *run = calloc(1, sizeof *run);
    if (!run)
        return pr_error(err, ENOMEM, "out of memory");
    int code = pr_store_find(name, path, sizeof path, err);
    if (code == 0)
        code = pr_stored_open(&run->stored, path, STORED_READ, err);
    if (code < 0) {
        free(run);
        return code;
    }
    run->owner = getpid();
    *ret_run = run;
    return 0;
}

void proctor_run_free(struct proctor_run *run)
{
    if (!run)
        return;
    if (run->owner == getpid())
        pr_stored_close(run->stored);
    else
        pr_stored_abandon(run->stored);
    pr_buf_done(&run->summary);
    free(run);
}

const char *proctor_run_id(struct proctor_run *run)
{
    return run->owner == getpid() ? run->stored->id : NULL;
}

const char *proctor_run_path(struct proctor_run *run)
{
    return run->owner == getpid() ? run->stored->path : NULL;
}

static int summarize(struct proctor_run *run, struct proctor_error *err)
{
    int code = check(run, err);
    if (code < 0 || run->summary.len)
        return code;
    return pr_recorded_summary(run->stored, &run->summary, err);
}

const char *proctor_run_summary_json(struct proctor_run *run, struct proctor_error *err)
{
    return summarize(run, err) < 0 ? NULL : pr_buf_text(&run->summary);
}

static int figure(struct proctor_run *run, const char *key, const char *statistic, double *ret)
{
    char path[128];
    enum pr_metric_id id = pr_metric_find(key);
    int code = summarize(run, NULL);
    if (code < 0 || id == METRIC_NONE)
        return code < 0 ? code : -ENOENT;
    snprintf(path, sizeof path, "$.metrics.\"%s\".%s", pr_metrics[id].key, statistic);
    double v = pr_stored_number(run->stored, pr_buf_text(&run->summary), path);
    if (isnan(v))
        return -ENODATA;
    *ret = v;
    return 0;
}

int proctor_run_total(struct proctor_run *run, const char *key, double *ret)
{
    return figure(run, key, "total", ret);
}

int proctor_run_peak(struct proctor_run *run, const char *key, double *ret)
{
    return figure(run, key, "peak", ret);
}

static void on_sample(void *of, const struct proctor_snapshot *s)
{
    struct proctor_run *run = of;
    run->busy = true;
    run->fn(s, run->data);
    run->busy = false;
}

int proctor_run_samples(struct proctor_run *run, proctor_sample_fn *fn, void *data,
                        struct proctor_error *err)
{
    static const struct pr_replay_to to = {.members = true, .devices = true, .sample = on_sample};
    int code = check(run, err);
    if (code < 0)
        return code;
    run->fn = fn;
    run->data = data;
    return pr_replay(run->stored, &to, run, err);
}

int proctor_run_report(struct proctor_run *run, const char *path, struct proctor_error *err)
{
    char name[PATH_MAX], *const names[] = {name};
    const struct pr_report_how how = {0};
    struct stat file, there;
    int code = check(run, err);
    if (code == 0)
        code = pr_report_check(path, err);
    if (code == 0 && stat(run->stored->path, &file) == 0 && stat(path, &there) == 0 &&
        file.st_dev == there.st_dev && file.st_ino == there.st_ino)
        code = pr_error(err, EINVAL, "'%.200s' is the run itself", path);
    if (code == 0 && snprintf(name, sizeof name, "%s", path) >= (int)sizeof name)
        code = pr_error(err, ENAMETOOLONG, "the name of the report is too long");
    return code < 0 ? code : pr_report_write(&run->stored, 1, names, 1, &how, err);
}

int proctor_runs_list(void (*fn)(const char *json, void *data), void *data,
                      struct proctor_error *err)
{
    struct pr_run_row *rows = NULL;
    struct pr_buf text = {0};
    ssize_t count = pr_run_rows_read(&rows, err);
    int code = count < 0 ? (int)count : 0;
    for (ssize_t i = 0; code == 0 && i < count; i++) {
        struct pr_json j = {.out = &text};
        pr_buf_reset(&text);
        pr_run_row_json(&j, &rows[i]);
        if (text.failed)
            code = pr_error(err, ENOMEM, "out of memory");
        else
            fn(pr_buf_text(&text), data);
    }
    pr_run_rows_free(rows, count < 0 ? 0 : (size_t)count);
    pr_buf_done(&text);
    return code;
}
