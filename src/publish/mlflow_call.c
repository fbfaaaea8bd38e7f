/* SPDX-License-Identifier: Apache-2.0 */
/* Asking MLflow's server and understanding what it answers, which SQLite reads. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "publish/mlflow_parts.h"
#include "util/text.h"

#define RUN_MOST (4 * 1024 * 1024) /* bytes: the run of many nodes has all their names in it */

bool pr_mlflow_answered(struct pr_mlflow *m, const char *path, char *ret, size_t size)
{
    struct pr_query *q = NULL;
    bool found = false;
    if (pr_query_new(&q, m->json, path ? "SELECT json_extract(?1, ?2)" : "SELECT json_type(?1)") <
        0)
        return false;
    pr_query_text(q, 1, pr_buf_text(&m->outlet.answer.body));
    if (path)
        pr_query_text(q, 2, path);
    if (pr_query_step(q) == 1 && !pr_query_is_null(q, 0)) {
        const char *text = pr_query_get_text(q, 0);
        found = text && snprintf(ret, size, "%s", text) < (int)size;
    }
    pr_query_free(q);
    return found;
}

bool pr_mlflow_tagged(struct pr_mlflow *m, const char *key, const char *value)
{
    static const char sql[] =
        "SELECT 1 FROM json_each(?1, '$.run.data.tags') WHERE json_extract(value, '$.key') = ?2"
        " AND json_extract(value, '$.value') = ?3";
    struct pr_query *q = NULL;
    if (pr_query_new(&q, m->json, sql) < 0)
        return false;
    pr_query_text(q, 1, pr_buf_text(&m->outlet.answer.body));
    pr_query_text(q, 2, key);
    pr_query_text(q, 3, value);
    bool found = pr_query_step(q) == 1;
    pr_query_free(q);
    return found;
}

int pr_mlflow_fail(struct pr_mlflow *m, int code, const char *what)
{
    snprintf(m->outlet.why, sizeof m->outlet.why, "%.120s: %.170s", m->outlet.url, what);
    return -code;
}

void pr_mlflow_remark(struct pr_mlflow *m, const char *what, const char *why)
{
    char *text = m->outlet.remark;
    size_t n = strlen(text), size = sizeof m->outlet.remark;
    snprintf(text + n, size - n, "%s%s: %s", n ? "; " : "", what, why);
}

/* Which of those that it was asked with was wrong; what they are is not said. */
static const char *as_whom(const struct pr_mlflow_setting *s)
{
    if (*s->user)
        return "the user and password that were given are not right for it";
    return s->with_token ? "MLFLOW_TRACKING_TOKEN, or DATABRICKS_TOKEN, is not right for it"
                         : "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or "
                           "MLFLOW_TRACKING_TOKEN";
}

/* What an answer that is no success means for us. */
static int judge(struct pr_mlflow *m)
{
    char said[120] = "", what[180];
    int status = m->outlet.answer.status;
    bool later = status == 408 || status == 429 || status >= 500;
    pr_mlflow_answered(m, "$.message", said, sizeof said);
    for (char *p = said; *p; p++)
        *p = *p == '\n' ? ' ' : *p;
    if (status >= 300 && status < 400)
        snprintf(what, sizeof what, "it is somewhere else (status %d): name its own address",
                 status);
    else if (status == 401 || status == 403)
        snprintf(what, sizeof what, "it does not let us in (status %d): %s", status,
                 as_whom(&m->setting));
    else
        snprintf(what, sizeof what, "status %d%s%.90s", status, *said ? ": " : "", said);
    return pr_mlflow_fail(m, later ? EAGAIN : status == 404 ? ENOENT : EINVAL, what);
}

static bool is_object(struct pr_mlflow *m)
{
    char type[16];
    return pr_mlflow_answered(m, NULL, type, sizeof type) && strcmp(type, "object") == 0;
}

/* The URL is in m->url. */
static int call(struct pr_mlflow *m, struct pr_buf *body, const char *type, size_t most)
{
    struct pr_outlet *o = &m->outlet;
    struct pr_http_request request = {.url = pr_buf_text(&m->url),
                                      .body = body ? pr_buf_text(body) : NULL,
                                      .len = body ? body->len : 0,
                                      .type = type,
                                      .put = type != NULL,
                                      .most = most,
                                      .header = *m->header ? m->header : NULL};
    if (m->url.failed || (body && body->failed))
        return pr_mlflow_fail(m, ENOMEM, "out of memory");
    int code = pr_http_send(o->http, &request, &o->answer);
    if (code < 0)
        return pr_mlflow_fail(m, -code, o->answer.why);
    if (o->answer.status != 200)
        return judge(m);
    /* Who answers something else is not MLflow, or not in its senses. A file it takes in silence.
     */
    bool good = (type && !o->answer.body.len) || is_object(m);
    return good ? 0 : pr_mlflow_fail(m, EAGAIN, "its answer is not MLflow's");
}

int pr_mlflow_ask(struct pr_mlflow *m, const char *path, struct pr_buf *body)
{
    pr_buf_reset(&m->url);
    pr_buf_printf(&m->url, "%s/api/2.0/mlflow/%s", m->outlet.url, path);
    bool is_run = strncmp(path, "runs/get?", 9) == 0 || strcmp(path, "runs/search") == 0;
    return call(m, body, NULL, is_run ? RUN_MOST : 0);
}

int pr_mlflow_put(struct pr_mlflow *m, const char *path, const char *type, struct pr_buf *body)
{
    pr_buf_reset(&m->url);
    pr_buf_printf(&m->url, "%s/api/2.0/mlflow-artifacts/artifacts/%s", m->outlet.url, path);
    return call(m, body, type, 0);
}

struct pr_json pr_mlflow_body(struct pr_mlflow *m)
{
    pr_buf_reset(&m->body);
    struct pr_json j = {.out = &m->body};
    pr_json_open(&j, '{');
    return j;
}

void pr_mlflow_member(struct pr_json *j, const char *key, const char *value)
{
    pr_json_key(j, key);
    pr_json_string(j, value);
}

void pr_mlflow_pair(struct pr_json *j, const char *key, const char *value, size_t most)
{
    struct pr_buf cut = {0};
    pr_text_line(&cut, value, most);
    pr_json_open(j, '{');
    pr_mlflow_member(j, "key", key);
    pr_mlflow_member(j, "value", pr_buf_text(&cut));
    pr_json_close(j, '}');
    pr_buf_done(&cut);
}
