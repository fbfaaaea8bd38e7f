/* SPDX-License-Identifier: Apache-2.0 */
/* What MLflow is told of a run besides its samples: what it is, how it ended, its report. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "publish/mlflow_parts.h"
#include "store/job.h"
#include "util/clock.h"

#define PARAM_MOST  6000
#define LABELS_MOST 64 /* a request has 100 at the most */

/* --- what it is ------------------------------------------------------------------------------- */

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

/* proctor.label.KEY for each that the server can name; one that it cannot would cost all the others
 * of the request. */
static void add_labels(struct pr_mlflow *m, struct pr_json *j, const struct pr_stored *r,
                       size_t most)
{
    static const char sql[] = "SELECT key || '=' || value FROM json_each(?1, '$.labels')"
                              " WHERE key NOT GLOB '*[^A-Za-z0-9_.-]*' AND length(key) <= 100";
    size_t count = 0;
    char key[300], **labels = pr_stored_texts(r, sql, &count);
    for (size_t i = 0; labels && i < count && i < LABELS_MOST; i++) {
        const char *equals = strchr(labels[i], '=');
        snprintf(key, sizeof key, "proctor.%s%slabel.%.*s", m->outlet.node,
                 *m->outlet.node ? "." : "", (int)(equals - labels[i]), labels[i]);
        pr_mlflow_pair(j, key, equals + 1, most);
    }
    pr_stored_texts_free(labels);
}

/* Parameters cannot be changed: of a run that is not ours they are tags, which can. */
void pr_mlflow_describe(struct pr_outlet *o, const struct pr_stored *r)
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
    bool ours = o->owned || m->of_all;
    pr_buf_reset(&m->about);
    pr_json_key(&j, ours ? "params" : "tags");
    pr_json_open(&j, '[');
    snprintf(key, sizeof key, "proctor.%s%scommand", m->outlet.node, *m->outlet.node ? "." : "");
    if (command)
        pr_mlflow_pair(&j, key, command, ours ? PARAM_MOST : MLFLOW_TAG_MOST);
    add_facts(m, &j, r, r->about, facts, sizeof facts / sizeof *facts, MLFLOW_TAG_MOST);
    add_labels(m, &j, r, MLFLOW_TAG_MOST);
    pr_json_close(&j, ']');
    free(command);
}

/* --- how it ended ----------------------------------------------------------------------------- */

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
        add_facts(m, &j, r, pr_buf_text(&summary), facts, sizeof facts / sizeof *facts,
                  MLFLOW_TAG_MOST);
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

static int ask_for_run(struct pr_mlflow *m)
{
    pr_buf_reset(&m->text);
    pr_buf_str(&m->text, "runs/get?run_id=");
    pr_http_escape(&m->text, m->outlet.remote);
    int code = pr_mlflow_ask(m, pr_buf_text(&m->text), NULL);
    if (code == 0 &&
        !pr_mlflow_answered(m, "$.run.info.artifact_uri", m->artifacts, sizeof m->artifacts))
        m->artifacts[0] = '\0';
    return code;
}

/* Is it the run of all nodes? Not one that somebody has named to us, which is not ours to close. */
static bool is_of_all(struct pr_mlflow *m)
{
    pr_mlflow_tag(m, false, &m->text);
    return !m->setting.run && pr_mlflow_tagged(m, MLFLOW_RUN_TAG, pr_buf_text(&m->text));
}

/* Who has closed it already knows better how it ended. Of several nodes the first closes it, or
 * whichever has failed. The run was asked for. */
static int close_run(struct pr_mlflow *m, const struct pr_stored *r)
{
    char now[32] = "";
    pr_mlflow_answered(m, "$.run.info.status", now, sizeof now);
    bool done = strcmp(now, "FAILED") == 0 || strcmp(now, "KILLED") == 0;
    if (m->outlet.owned ? strcmp(now, "RUNNING") != 0 : done || !is_of_all(m))
        return 0;
    struct pr_json j = pr_mlflow_body(m);
    pr_mlflow_member(&j, "run_id", m->outlet.remote);
    pr_mlflow_member(&j, "status", status_of(r));
    pr_json_key(&j, "end_time");
    pr_json_int(&j, (r && r->ended ? r->ended : pr_clock_wall()) / 1000000);
    pr_json_close(&j, '}');
    return pr_mlflow_ask(m, "runs/update", &m->body);
}

/* --- the report ------------------------------------------------------------------------------- */

static int no_report(struct pr_mlflow *m, const char *why)
{
    pr_mlflow_remark(m, "the report is not there", why);
    return 0;
}

/* Where it goes, below what the server said of its artifacts; it takes those of runs whose
 * artifacts are its own business. */
static void write_place(struct pr_mlflow *m, const char *artifacts, struct pr_buf *out)
{
    const char *const parts[] = {artifacts, "/proctor/", m->outlet.node, *m->outlet.node ? "/" : "",
                                 "report.html"};
    pr_buf_reset(out);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *p = parts[i]; *p; p++) {
            const char one[2] = {*p, '\0'};
            if (*p == '/')
                pr_buf_char(out, '/');
            else
                pr_http_escape(out, one);
        }
}

/* At the end, when the server has all else. What cannot be sent for good is said, and done with. */
static int send_report(struct pr_mlflow *m, const struct pr_stored *r)
{
    static const char proxied[] = "mlflow-artifacts:/";
    struct proctor_error err = {0};
    struct pr_buf place = {0};
    if (!m->make_page)
        return 0;
    const char *path = m->artifacts + sizeof proxied - 1;
    if (strncmp(m->artifacts, proxied, sizeof proxied - 1) != 0 || *path == '/')
        return no_report(m, "artifacts of this run do not go through the server");
    if (!m->page.len && m->make_page(&m->page, r, &err) < 0) {
        pr_buf_reset(&m->page);
        return no_report(m, err.message);
    }
    write_place(m, path, &place);
    int code = pr_mlflow_put(m, pr_buf_text(&place), "text/html", &m->page);
    pr_buf_done(&place);
    if (code < 0 && code != -EAGAIN)
        return no_report(m, m->outlet.why);
    if (code < 0) {
        char why[sizeof m->outlet.why];
        snprintf(why, sizeof why, "the report: %.280s", m->outlet.why);
        memcpy(m->outlet.why, why, sizeof why);
    }
    return code;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* A run of many nodes is long to read: who needs not know how it stands does not ask. */
int pr_mlflow_end(struct pr_outlet *o, const struct pr_stored *r)
{
    struct pr_mlflow *m = (struct pr_mlflow *)o;
    bool failed = strcmp(status_of(r), "FINISHED") != 0,
         closes = o->owned || (failed && pr_mlflow_follows(m));
    int code = r ? send_verdict(m, r) : 0;
    if (code == 0 && (closes || !*m->artifacts))
        code = ask_for_run(m);
    if (code == 0 && closes)
        code = close_run(m, r);
    return code == 0 && r ? send_report(m, r) : code;
}
