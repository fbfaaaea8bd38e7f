/* SPDX-License-Identifier: Apache-2.0 */
/* MLflow's REST calls (mlflow/protos/service.proto). A server refuses more than 1,000 metrics in a
 * request and, if it is a hosted one, more than a megabyte. What it has already of a batch it takes
 * again without a second point: key, time, step and value are its primary key. */
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "publish/mlflow_parts.h"
#include "store/job.h"
#include "util/clock.h"

#define METRICS_MOST 980 /* of 1,000 entries in all: what the run is goes with the first */
#define BYTES_MOST   (800 * 1024)
#define PARAM_MOST   6000
#define TAG_MOST     5000
#define RUN_TAG      "proctor.run"

/* --- a place for the run ---------------------------------------------------------------------- */

static int find_experiment(struct pr_mlflow *m)
{
    if (*m->experiment)
        return 0;
    if (m->setting.experiment_id || !m->setting.experiment) {
        const char *id = m->setting.experiment_id ? m->setting.experiment_id : "0";
        snprintf(m->experiment, sizeof m->experiment, "%s", id);
        return 0;
    }
    pr_buf_reset(&m->text);
    pr_buf_str(&m->text, "experiments/get-by-name?experiment_name=");
    pr_http_escape(&m->text, m->setting.experiment);
    int code = pr_mlflow_ask(m, pr_buf_text(&m->text), NULL);
    if (code == 0 &&
        pr_mlflow_answered(m, "$.experiment.experiment_id", m->experiment, sizeof m->experiment))
        return 0;
    char error[64] = "";
    pr_mlflow_answered(m, "$.error_code", error, sizeof error);
    if (code == 0 || strcmp(error, "RESOURCE_DOES_NOT_EXIST") != 0)
        return code == 0 ? pr_mlflow_fail(m, EAGAIN, "its answer is not MLflow's") : code;
    struct pr_json j = pr_mlflow_body(m);
    pr_mlflow_member(&j, "name", m->setting.experiment);
    pr_json_close(&j, '}');
    code = pr_mlflow_ask(m, "experiments/create", &m->body);
    if (code == 0 && !pr_mlflow_answered(m, "$.experiment_id", m->experiment, sizeof m->experiment))
        code = pr_mlflow_fail(m, EAGAIN, "its answer is not MLflow's");
    return code;
}

/* By which it is found again, into m->text; without what would end a text in a filter. */
static const char *tag_of(struct pr_mlflow *m)
{
    pr_buf_reset(&m->text);
    pr_buf_printf(&m->text, "%.*s%s%s", (int)strcspn(m->id, "'\"\\`"), m->id,
                  *m->outlet.node ? " " : "", m->outlet.node);
    return pr_buf_text(&m->text);
}

/* What the run is called there, from the answer. False where that is no name. */
static bool take_name(struct pr_mlflow *m, const char *path)
{
    struct pr_outlet *o = &m->outlet;
    bool good = pr_mlflow_answered(m, path, o->remote, sizeof o->remote) && *o->remote;
    for (const char *p = o->remote; *p && good; p++)
        good = isalnum((unsigned char)*p) || *p == '-' || *p == '_';
    if (!good)
        o->remote[0] = '\0';
    return good;
}

/* Was it made by whoever did not hear the answer? */
static int find_run(struct pr_mlflow *m)
{
    struct pr_outlet *o = &m->outlet;
    struct pr_json j = pr_mlflow_body(m);
    pr_json_key(&j, "experiment_ids");
    pr_json_open(&j, '[');
    pr_json_string(&j, m->experiment);
    pr_json_close(&j, ']');
    pr_buf_reset(&m->url);
    pr_buf_printf(&m->url, "tags.`" RUN_TAG "` = '%s'", tag_of(m));
    pr_mlflow_member(&j, "filter", pr_buf_text(&m->url));
    pr_json_key(&j, "max_results");
    pr_json_int(&j, 1);
    pr_json_close(&j, '}');
    int code = pr_mlflow_ask(m, "runs/search", &m->body);
    if (code == 0)
        o->owned = take_name(m, "$.runs[0].info.run_id");
    return code;
}

static void write_creation(struct pr_mlflow *m)
{
    struct passwd entry, *found = NULL;
    char room[4096];
    struct pr_json j = pr_mlflow_body(m);
    getpwuid_r(getuid(), &entry, room, sizeof room, &found);
    pr_mlflow_member(&j, "experiment_id", m->experiment);
    pr_mlflow_member(&j, "run_name", m->name ? m->name : m->id);
    pr_json_key(&j, "start_time");
    pr_json_int(&j, m->started / 1000000);
    pr_json_key(&j, "tags");
    pr_json_open(&j, '[');
    pr_mlflow_pair(&j, RUN_TAG, tag_of(m), TAG_MOST);
    pr_mlflow_pair(&j, "mlflow.source.type", "LOCAL", TAG_MOST);
    pr_mlflow_pair(&j, "mlflow.source.name", m->command ? m->command : "proctor", TAG_MOST);
    if (found)
        pr_mlflow_pair(&j, "mlflow.user", found->pw_name, TAG_MOST);
    pr_json_close(&j, ']');
    pr_json_close(&j, '}');
}

static int mlflow_begin(struct pr_outlet *o)
{
    struct pr_mlflow *m = (struct pr_mlflow *)o;
    int code = 0;
    if (*o->remote)
        return 0;
    code = find_experiment(m);
    if (code == 0 && o->maybe_there)
        code = find_run(m);
    if (code < 0 || *o->remote)
        return code;
    write_creation(m);
    code = pr_mlflow_ask(m, "runs/create", &m->body);
    if (code == 0 && !take_name(m, "$.run.info.run_id"))
        code = pr_mlflow_fail(m, EAGAIN, "its answer is not MLflow's");
    o->owned = code == 0;
    return code;
}

/* --- what is known of the run ----------------------------------------------------------------- */

/* Texts of JSON, under names of ours. With several nodes each has its own. */
struct fact {
    const char *name, *path;
};

static void add_facts(struct pr_mlflow *m, struct pr_json *j, const struct pr_stored *r,
                      const char *json, const struct fact *facts, size_t count, size_t most)
{
    char key[160];
    for (size_t i = 0; i < count; i++) {
        if (!pr_stored_text(r, json, facts[i].path, &m->text) || !m->text.len)
            continue;
        snprintf(key, sizeof key, "proctor.%s%s%s", m->outlet.node, *m->outlet.node ? "." : "",
                 facts[i].name);
        pr_mlflow_pair(j, key, pr_buf_text(&m->text), most);
    }
}

/* The words of the command with blanks between them. */
static char *command_of(const struct pr_stored *r)
{
    size_t count = 0;
    struct pr_buf line = {0};
    char **words = pr_stored_texts(r, "SELECT value FROM json_each(?1, '$.command')", &count);
    for (size_t i = 0; words && i < count; i++)
        pr_buf_printf(&line, "%s%s", i ? " " : "", words[i]);
    pr_stored_texts_free(words);
    char *text = count ? strdup(pr_buf_text(&line)) : NULL;
    pr_buf_done(&line);
    return text;
}

/* Parameters cannot be changed: of a run that is not ours they are tags, which can. */
static void mlflow_describe(struct pr_outlet *o, const struct pr_stored *r)
{
    static const struct fact facts[] = {{"host", "$.host"},
                                        {"target", "$.target"},
                                        {"interval_seconds", "$.interval"},
                                        {"limit.cpu_cores", "$.limits.cpu.cores"},
                                        {"limit.cpu_source", "$.limits.cpu.source"},
                                        {"limit.memory_bytes", "$.limits.memory.bytes"},
                                        {"limit.memory_source", "$.limits.memory.source"},
                                        {"version", "$.version"}};
    struct pr_mlflow *m = (struct pr_mlflow *)o;
    struct pr_json j = {.out = &m->about};
    char key[160], *command = command_of(r);
    pr_buf_reset(&m->about);
    pr_json_key(&j, o->owned ? "params" : "tags");
    pr_json_open(&j, '[');
    snprintf(key, sizeof key, "proctor.%s%scommand", m->outlet.node, *m->outlet.node ? "." : "");
    if (command)
        pr_mlflow_pair(&j, key, command, o->owned ? PARAM_MOST : TAG_MOST);
    add_facts(m, &j, r, r->about, facts, sizeof facts / sizeof *facts, TAG_MOST);
    pr_json_close(&j, ']');
    free(command);
}

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

static int mlflow_send(struct pr_outlet *o)
{
    struct pr_mlflow *m = (struct pr_mlflow *)o;
    struct pr_json j = pr_mlflow_body(m);
    pr_mlflow_member(&j, "run_id", o->remote);
    if (m->metric_count || m->about.len) {
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
        int code = pr_mlflow_ask(m, "runs/log-batch", &m->body);
        if (code < 0)
            return code;
    }
    pr_buf_reset(&m->metrics);
    pr_buf_reset(&m->about);
    m->metric_count = m->sample_count = 0;
    return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

static const char *status_of(const struct pr_stored *r)
{
    if (!r)
        return "FAILED"; /* it could not be started */
    if (r->exit_signal > 0 || r->state == RUN_DIED)
        return "KILLED";
    return r->exit_code > 0 ? "FAILED" : "FINISHED";
}

static int send_verdict(struct pr_mlflow *m, const struct pr_stored *r)
{
    static const struct fact facts[] = {{"verdict", "$.findings[0]"},
                                        {"exit_code", "$.exit.code"},
                                        {"exit_signal", "$.exit.signal"},
                                        {"duration_seconds", "$.run.duration"},
                                        {"cpu_time_seconds", "$.metrics.\"cpu.time\".total"},
                                        {"mem_rss_peak_bytes", "$.metrics.\"mem.rss.peak\".peak"},
                                        {"mem_pss_peak_bytes", "$.metrics.\"mem.pss\".peak"},
                                        {"processes", "$.processes.seen"}};
    struct pr_buf summary = {0};
    struct proctor_error err;
    int code = pr_stored_summary(r, &summary, &err);
    if (code == 0) {
        struct pr_json j = pr_mlflow_body(m);
        pr_mlflow_member(&j, "run_id", m->outlet.remote);
        pr_json_key(&j, "tags");
        pr_json_open(&j, '[');
        add_facts(m, &j, r, pr_buf_text(&summary), facts, sizeof facts / sizeof *facts, TAG_MOST);
        pr_json_close(&j, ']');
        pr_json_close(&j, '}');
        code = pr_mlflow_ask(m, "runs/log-batch", &m->body);
    } else if (code == -ENODATA) { /* its recorder died */
        code = 0;
    } else {
        pr_mlflow_fail(m, -code, err.message);
    }
    pr_buf_done(&summary);
    return code;
}

/* Who has closed it already knows better how it ended. */
static int close_run(struct pr_mlflow *m, const struct pr_stored *r)
{
    char status[32] = "";
    pr_buf_reset(&m->text);
    pr_buf_str(&m->text, "runs/get?run_id=");
    pr_http_escape(&m->text, m->outlet.remote);
    int code = pr_mlflow_ask(m, pr_buf_text(&m->text), NULL);
    if (code < 0)
        return code;
    pr_mlflow_answered(m, "$.run.info.status", status, sizeof status);
    if (strcmp(status, "RUNNING") != 0)
        return 0;
    struct pr_json j = pr_mlflow_body(m);
    pr_mlflow_member(&j, "run_id", m->outlet.remote);
    pr_mlflow_member(&j, "status", status_of(r));
    pr_json_key(&j, "end_time");
    pr_json_int(&j, (r && r->ended ? r->ended : pr_clock_wall()) / 1000000);
    pr_json_close(&j, '}');
    return pr_mlflow_ask(m, "runs/update", &m->body);
}

static int mlflow_end(struct pr_outlet *o, const struct pr_stored *r)
{
    struct pr_mlflow *m = (struct pr_mlflow *)o;
    int code = r ? send_verdict(m, r) : 0;
    return code == 0 && o->owned ? close_run(m, r) : code;
}

/* --- */

static void mlflow_free(struct pr_outlet *o)
{
    struct pr_mlflow *m = (struct pr_mlflow *)o;
    struct pr_buf *const bufs[] = {&m->metrics, &m->about, &m->body,
                                   &m->url,     &m->text,  &o->answer.body};
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
                                         .begin = mlflow_begin,
                                         .describe = mlflow_describe,
                                         .add = mlflow_add,
                                         .send = mlflow_send,
                                         .end = mlflow_end,
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
