/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor push RUN --mlflow URI|--otlp URL`: what a server has not got yet. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/runs.h"
#include "publish/mlflow.h"
#include "publish/otlp.h"
#include "publish/publisher.h"
#include "report/model.h"

#define PATIENCE 30.0 /* seconds without success */

/* What the run is called, and which node of it the file is of. */
static int open_mlflow(const struct pr_config *c, const struct pr_stored *r, struct pr_outlet **ret,
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
    /* The node of the run: we may be on another. */
    int code = pr_mlflow_read(&setting, c->push_mlflow, of_several ? pr_buf_text(&node) : "",
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

static int open_otlp(const struct pr_config *c, const struct pr_stored *r, struct pr_outlet **ret,
                     struct proctor_error *err)
{
    struct pr_otlp_setting setting;
    int code = pr_otlp_read(&setting, c->push_otlp, err);
    (void)r;
    if (code == 0 && setting.disabled)
        code = pr_error(err, ECANCELED, "otlp: OTEL_SDK_DISABLED is set: nothing is sent");
    setting.command = c->otlp_command;
    if (code == 0)
        code = pr_otlp_open(&setting, ret, err);
    pr_otlp_forget(&setting);
    return code;
}

typedef int open_fn(const struct pr_config *c, const struct pr_stored *r, struct pr_outlet **ret,
                    struct proctor_error *err);

static void say_wait(const char *kind, const char *why, double seconds)
{
    pr_complain("push: %s: %s; it is tried again, for %.0f s", kind, why, seconds);
}

static int push(const struct pr_config *c, const char *name, open_fn *open)
{
    struct proctor_error err = {0};
    struct pr_push done = {.waits = say_wait};
    struct pr_outlet *outlet = NULL;
    struct pr_stored *r = pr_runs_open("push", name);
    if (!r)
        return EXIT_FAILED;
    char *path = strdup(r->path);
    int code = path ? open(c, r, &outlet, &err) : pr_error(&err, ENOMEM, "out of memory");
    pr_stored_close(r); /* it is opened to be changed */
    if (code == 0)
        code = pr_publisher_push(outlet, path, PATIENCE, &done, &err);
    free(path);
    const struct pr_publishing *state = &done.state;
    if (*done.remark)
        pr_complain("push: %s", done.remark);
    if (code < 0) {
        pr_complain("push: %s", err.message);
        if (state->left > 0)
            pr_complain("push: %lld samples were sent, %lld are left", (long long)state->sent,
                        (long long)state->left);
        return EXIT_FAILED;
    }
    if (state->sent)
        printf("%lld samples sent to ", (long long)state->sent);
    else
        printf("no sample was left to send to ");
    printf("%s%s%s\n", *state->remote ? "run " : "", *state->remote ? state->remote : state->url,
           done.ended ? "" : ", which goes on");
    return 0;
}

int pr_main_push(int argc, char **argv)
{
    struct pr_config c;
    int status, first = pr_runs_begin("push", argc, argv, 1, 1, &c, &status);
    if (first && !c.push_mlflow == !c.push_otlp) {
        pr_complain("push: where to? Either --mlflow URI or --otlp URL");
        status = EXIT_USAGE;
    } else if (first) {
        status = push(&c, argv[first], c.push_mlflow ? open_mlflow : open_otlp);
    }
    pr_config_done(&c);
    return status;
}
