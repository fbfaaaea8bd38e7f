/* SPDX-License-Identifier: Apache-2.0 */
/* Samples for MLflow's REST API (mlflow/protos/service.proto). A server refuses more than 1,000
 * metrics in a request and, if it is a hosted one, more than a megabyte. What it has already of a
 * batch it takes again without a second point: key, time, step and value are its primary key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "publish/mlflow_parts.h"
#include "util/units.h"

#define METRICS_MOST 980 /* of 1,000 entries in all: what the run is goes with the first */
#define BYTES_MOST   (800 * 1024)

/* --- samples ---------------------------------------------------------------------------------- */

static void add_value(void *of, const char *key, double value)
{
    struct pr_mlflow *m = of;
    struct pr_json j = {.out = &m->metrics};
    if (m->metric_count++)
        pr_buf_char(&m->metrics, ',');
    pr_json_open(&j, '{');
    pr_mlflow_member(&j, "key", key);
    pr_json_key(&j, "value");
    pr_buf_reset(&m->text);
    pr_units_shortest(&m->text, value);
    pr_json_raw(&j, pr_buf_text(&m->text));
    pr_json_key(&j, "timestamp");
    pr_json_int(&j, m->time);
    pr_json_key(&j, "step");
    pr_json_int(&j, m->step);
    pr_json_close(&j, '}');
}

static bool mlflow_add(struct pr_outlet *o, int64_t sample, const struct proctor_snapshot *s)
{
    struct pr_mlflow *m = (struct pr_mlflow *)o;
    size_t bytes = m->metrics.len, count = m->metric_count;
    m->step = sample;
    m->time = s->time / 1000000;
    pr_mlflow_values(&m->names, s, add_value, m);
    bool fits = m->metric_count <= METRICS_MOST && m->metrics.len <= BYTES_MOST;
    if (!fits && m->sample_count) {
        m->metrics.len = bytes;
        m->metric_count = count;
        return false;
    }
    m->sample_count++;
    return true;
}

static int log_batch(struct pr_mlflow *m)
{
    struct pr_json j = pr_mlflow_body(m);
    pr_mlflow_member(&j, "run_id", m->outlet.remote);
    pr_json_key(&j, "metrics");
    pr_buf_char(&m->body, '[');
    pr_buf_add(&m->body, m->metrics.data, m->metrics.len);
    pr_buf_char(&m->body, ']');
    if (m->about.len) {
        pr_buf_char(&m->body, ',');
        pr_buf_add(&m->body, m->about.data, m->about.len);
    }
    pr_buf_char(&m->body, '}');
    m->body.failed |= m->metrics.failed || m->about.failed;
    return pr_mlflow_ask(m, "runs/log-batch", &m->body);
}

/* Older servers take parameters of 500 bytes, and none takes another value of one: samples do not
 * stay behind for that. */
static int mlflow_send(struct pr_outlet *o)
{
    struct pr_mlflow *m = (struct pr_mlflow *)o;
    int code = m->metric_count || m->about.len ? log_batch(m) : 0;
    if (code == -EINVAL && o->answer.status == 400 && m->about.len) {
        pr_buf_reset(&m->about);
        pr_mlflow_remark(m, "its description is not there", o->why);
        code = m->metric_count ? log_batch(m) : 0;
    }
    if (code < 0)
        return code;
    pr_buf_reset(&m->metrics);
    pr_buf_reset(&m->about);
    m->metric_count = m->sample_count = 0;
    return 0;
}

/* --- */

static void mlflow_free(struct pr_outlet *o)
{
    struct pr_mlflow *m = (struct pr_mlflow *)o;
    struct pr_buf *const bufs[] = {&m->metrics, &m->about, &m->body,       &m->url,
                                   &m->text,    &m->page,  &o->answer.body};
    pr_http_free(o->http);
    pr_db_close(m->json);
    pr_mlflow_names_done(&m->names);
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        pr_buf_done(bufs[i]);
    free(m->id);
    free(m->name);
    free(m->command);
    free(m);
}

static const struct pr_outlet_ops ops = {.kind = "mlflow",
                                         .mild = true,
                                         .begin = pr_mlflow_begin,
                                         .describe = pr_mlflow_describe,
                                         .add = mlflow_add,
                                         .send = mlflow_send,
                                         .end = pr_mlflow_end,
                                         .free = mlflow_free};

static int connect_to(struct pr_mlflow *m, struct proctor_error *err)
{
    struct pr_mlflow_setting *s = &m->setting;
    char why[160] = "";
    struct pr_http_setting http = {.user = *s->user ? s->user : NULL,
                                   .password = *s->user ? s->password : NULL,
                                   .token = *s->token ? s->token : NULL,
                                   .ca = s->ca,
                                   .certificate = s->certificate,
                                   .insecure = s->insecure,
                                   .timeout = s->timeout,
                                   .files = s->files};
    int code = pr_http_new(&m->outlet.http, &http, why, sizeof why);
    if (code == 0)
        code = pr_db_open(&m->json, ":memory:", DB_CREATE, why, sizeof why);
    explicit_bzero(s->password, sizeof s->password);
    s->with_token = *s->token;
    explicit_bzero(s->token, sizeof s->token);
    return code < 0 ? pr_error(err, -code, "mlflow: %s", why) : 0;
}

int pr_mlflow_open(const struct pr_mlflow_setting *s, const struct pr_mlflow_run *run,
                   struct pr_outlet **ret, struct proctor_error *err)
{
    struct pr_mlflow *m = calloc(1, sizeof *m);
    if (!m)
        return pr_error(err, ENOMEM, "out of memory");
    m->outlet.ops = &ops;
    m->setting = *s;
    m->id = strdup(run->id);
    m->name = run->name ? strdup(run->name) : NULL;
    m->command = run->command ? strdup(run->command) : NULL;
    m->started = run->started;
    m->shared = run->shared;
    m->make_page = run->page;
    snprintf(m->outlet.url, sizeof m->outlet.url, "%s", s->url);
    snprintf(m->outlet.remote, sizeof m->outlet.remote, "%s", s->run ? s->run : "");
    if (s->workspace)
        snprintf(m->header, sizeof m->header, "X-MLFLOW-WORKSPACE: %.200s", s->workspace);
    snprintf(m->outlet.prefix, sizeof m->outlet.prefix, "%s", s->prefix);
    snprintf(m->outlet.node, sizeof m->outlet.node, "%s", s->node);
    int code = m->id ? pr_mlflow_names_init(&m->names, m->outlet.prefix, m->outlet.node) : -ENOMEM;
    code = code < 0 ? pr_error(err, -code, "out of memory") : connect_to(m, err);
    if (code < 0)
        mlflow_free(&m->outlet);
    else
        *ret = &m->outlet;
    return code;
}
