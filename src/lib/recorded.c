/* SPDX-License-Identifier: Apache-2.0 */
/* The public API for runs that were recorded. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "proctor/proctor.h"
#include "report/recorded.h"
#include "store/find.h"
#include "store/replay.h"

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
