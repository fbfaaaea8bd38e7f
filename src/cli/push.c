/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor push RUN --mlflow URI`: what a server has not got yet. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/runs.h"
#include "publish/mlflow.h"
#include "publish/publisher.h"
#include "report/model.h"

#define PATIENCE 30.0 /* seconds without success */

/* What the run is called, and which node of it the file is of. */
static int open_outlet(const struct pr_config *c, const struct pr_stored *r, struct pr_outlet **ret,
                       struct proctor_error *err)
{
    struct pr_mlflow_setting setting;
    struct pr_buf name = {0}, command = {0}, node = {0};
    bool named = pr_stored_text(r, r->about, "$.name", &name),
         started = pr_stored_text(r, r->about, "$.command[0]", &command),
         of_several = pr_stored_text(r, r->about, "$.node", &node);
    struct pr_mlflow_run run = {.id = r->id,
                                .name = named ? pr_buf_text(&name) : NULL,
                                .command = started ? pr_buf_text(&command) : NULL,
                                .started = r->started,
                                .shared = true,
                                .page = pr_model_page};
    int code = pr_mlflow_read(&setting, c->push_mlflow, of_several ? pr_buf_text(&node) : NULL,
                              c->prefix, err);
    if (code == 0)
        code = pr_mlflow_open(&setting, &run, ret, err);
    explicit_bzero(setting.password, sizeof setting.password);
    explicit_bzero(setting.token, sizeof setting.token);
    pr_buf_done(&name);
    pr_buf_done(&command);
    pr_buf_done(&node);
    return code;
}

static int push(const struct pr_config *c, const char *name)
{
    struct proctor_error err = {0};
    struct pr_push done = {0};
    struct pr_outlet *outlet = NULL;
    struct pr_stored *r = pr_runs_open("push", name);
    if (!r)
        return EXIT_FAILED;
    char *path = strdup(r->path);
    int code = path ? open_outlet(c, r, &outlet, &err) : pr_error(&err, ENOMEM, "out of memory");
    pr_stored_close(r); /* it is opened to be changed */
    if (code == 0)
        code = pr_publisher_push(outlet, path, PATIENCE, &done, &err);
    free(path);
    if (*done.note)
        pr_complain("push: %s", done.note);
    if (code < 0) {
        pr_complain("push: %s", err.message);
        if (done.left > 0)
            pr_complain("push: %lld samples were sent, %lld are left", (long long)done.samples,
                        (long long)done.left);
        return EXIT_FAILED;
    }
    printf("%lld samples sent to run %s%s\n", (long long)done.samples, done.remote,
           done.ended ? "" : ", which goes on");
    return 0;
}

int pr_main_push(int argc, char **argv)
{
    struct pr_config c;
    int status, first = pr_runs_begin("push", argc, argv, 1, 1, &c, &status);
    if (first && !c.push_mlflow) {
        pr_complain("push: where to? --mlflow URI");
        status = EXIT_USAGE;
    } else if (first) {
        status = push(&c, argv[first]);
    }
    pr_config_done(&c);
    return status;
}
