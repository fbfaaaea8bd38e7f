/* SPDX-License-Identifier: Apache-2.0 */
/* A place for a run at MLflow's server. Nodes that have been given one run id share one run there:
 * the first makes it, the others look for it by its tag. */
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "publish/mlflow_parts.h"
#include "util/clock.h"

#define LOOK_FOR   10     /* seconds from our start, for the run that another node makes */
#define APART_MOST 600000 /* ms between the starts of two nodes */

static bool failed_with(struct pr_mlflow *m, const char *code)
{
    char error[64] = "";
    return pr_mlflow_answered(m, "$.error_code", error, sizeof error) && strcmp(error, code) == 0;
}

/* 0 with its id, -ENODATA where there is none of this name. */
static int look_up_experiment(struct pr_mlflow *m)
{
    pr_buf_reset(&m->text);
    pr_buf_str(&m->text, "experiments/get-by-name?experiment_name=");
    pr_http_escape(&m->text, m->setting.experiment);
    int code = pr_mlflow_ask(m, pr_buf_text(&m->text), NULL);
    if (code < 0)
        return failed_with(m, "RESOURCE_DOES_NOT_EXIST") ? -ENODATA : code;
    return pr_mlflow_answered(m, "$.experiment.experiment_id", m->experiment, sizeof m->experiment)
               ? 0
               : pr_mlflow_fail(m, EAGAIN, "its answer is not MLflow's");
}

static int make_experiment(struct pr_mlflow *m)
{
    struct pr_json j = pr_mlflow_body(m);
    pr_mlflow_member(&j, "name", m->setting.experiment);
    pr_json_close(&j, '}');
    int code = pr_mlflow_ask(m, "experiments/create", &m->body);
    if (code < 0) /* another node was faster */
        return failed_with(m, "RESOURCE_ALREADY_EXISTS") ? look_up_experiment(m) : code;
    return pr_mlflow_answered(m, "$.experiment_id", m->experiment, sizeof m->experiment)
               ? 0
               : pr_mlflow_fail(m, EAGAIN, "its answer is not MLflow's");
}

static int find_experiment(struct pr_mlflow *m)
{
    if (*m->experiment)
        return 0;
    if (!m->setting.experiment_id && m->setting.experiment) {
        int code = look_up_experiment(m);
        return code == -ENODATA ? make_experiment(m) : code;
    }
    snprintf(m->experiment, sizeof m->experiment, "%s",
             m->setting.experiment_id ? m->setting.experiment_id : "0");
    return 0;
}

bool pr_mlflow_follows(const struct pr_mlflow *m)
{
    return *m->outlet.node && strcmp(m->outlet.node, "node_0") != 0;
}

void pr_mlflow_tag(const struct pr_mlflow *m, bool own, struct pr_buf *out)
{
    bool named = own && pr_mlflow_follows(m);
    pr_buf_reset(out);
    pr_buf_printf(out, "%.*s%s%s", (int)strcspn(m->id, "'\"\\`"), m->id, named ? " " : "",
                  named ? m->outlet.node : "");
}

/* What the run is called there, from what the answer says of it at `info`. False where that is no
 * name. */
static bool take_run(struct pr_mlflow *m, const char *info)
{
    struct pr_outlet *o = &m->outlet;
    char path[64];
    snprintf(path, sizeof path, "%s.run_id", info);
    bool good = pr_mlflow_answered(m, path, o->remote, sizeof o->remote) && *o->remote;
    for (const char *p = o->remote; *p && good; p++)
        good = isalnum((unsigned char)*p) || *p == '-' || *p == '_';
    if (!good)
        o->remote[0] = '\0';
    snprintf(path, sizeof path, "%s.artifact_uri", info);
    if (good && !pr_mlflow_answered(m, path, m->artifacts, sizeof m->artifacts))
        m->artifacts[0] = '\0';
    return good;
}

/* Other nodes may not have begun yet. */
static bool is_early(const struct pr_mlflow *m)
{
    return pr_clock_wall() < m->started + LOOK_FOR * NS_PER_S;
}

/* A run with this tag that was made about when ours began: an id may be used again later. */
static int find_run(struct pr_mlflow *m, bool own)
{
    struct pr_outlet *o = &m->outlet;
    const int64_t ms = m->started / 1000000;
    struct pr_json j = pr_mlflow_body(m);
    pr_json_key(&j, "experiment_ids");
    pr_json_open(&j, '[');
    pr_json_string(&j, m->experiment);
    pr_json_close(&j, ']');
    pr_mlflow_tag(m, own, &m->text);
    pr_buf_reset(&m->url);
    pr_buf_printf(&m->url,
                  "tags.`" MLFLOW_RUN_TAG "` = '%s' AND attributes.start_time >= %lld AND "
                  "attributes.start_time <= %lld",
                  pr_buf_text(&m->text), (long long)(ms - APART_MOST),
                  (long long)(ms + APART_MOST));
    pr_mlflow_member(&j, "filter", pr_buf_text(&m->url));
    pr_json_key(&j, "max_results");
    pr_json_int(&j, 1);
    pr_json_close(&j, '}');
    int code = pr_mlflow_ask(m, "runs/search", &m->body);
    bool found = code == 0 && take_run(m, "$.runs[0].info");
    o->owned = found && own;
    m->of_all = found && !own;
    return code;
}

/* Looks for the run of all nodes, now and a few times more: the job may be waiting for us. */
static int find_shared(struct pr_mlflow *m)
{
    static const double pauses[] = {0.2, 0.4, 0.7};
    int code = find_run(m, false);
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        if (code < 0 || *m->outlet.remote || !is_early(m) ||
            !pr_http_pause(m->outlet.http, pauses[i]))
            break;
        code = find_run(m, false);
    }
    if (code == 0 && !*m->outlet.remote && is_early(m))
        return pr_mlflow_fail(m, EAGAIN, "node_0 has made no run for it yet");
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
    pr_mlflow_tag(m, true, &m->text);
    pr_mlflow_pair(&j, MLFLOW_RUN_TAG, pr_buf_text(&m->text), MLFLOW_TAG_MOST);
    pr_mlflow_pair(&j, "mlflow.source.type", "LOCAL", MLFLOW_TAG_MOST);
    pr_mlflow_pair(&j, "mlflow.source.name", m->command ? m->command : "proctor", MLFLOW_TAG_MOST);
    if (found)
        pr_mlflow_pair(&j, "mlflow.user", found->pw_name, MLFLOW_TAG_MOST);
    pr_json_close(&j, ']');
    pr_json_close(&j, '}');
}

/* The run of all nodes, or one that was made for us before, of which we did not hear. */
static int find_any(struct pr_mlflow *m)
{
    struct pr_outlet *o = &m->outlet;
    int code = 0;
    if (m->shared && pr_mlflow_follows(m))
        code = find_shared(m);
    if (code == 0 && !*o->remote && o->maybe_there)
        code = find_run(m, true);
    return code;
}

int pr_mlflow_begin(struct pr_outlet *o)
{
    struct pr_mlflow *m = (struct pr_mlflow *)o;
    if (*o->remote)
        return 0;
    int code = find_experiment(m);
    if (code == 0)
        code = find_any(m);
    if (code < 0 || *o->remote)
        return code;
    write_creation(m);
    code = pr_mlflow_ask(m, "runs/create", &m->body);
    if (code == 0 && !take_run(m, "$.run.info"))
        code = pr_mlflow_fail(m, EAGAIN, "its answer is not MLflow's");
    o->owned = code == 0;
    if (code == 0 && m->shared && pr_mlflow_follows(m)) {
        char none[100], own[100];
        snprintf(none, sizeof none, "node_0 has made no run for %.60s", m->id);
        snprintf(own, sizeof own, "%.60s has its own", o->node);
        pr_mlflow_remark(m, none, own);
    }
    return code;
}
