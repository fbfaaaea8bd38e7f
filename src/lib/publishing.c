/* SPDX-License-Identifier: Apache-2.0 */
/* A monitor that is published while it records, to a server of each kind. In a process that watches
 * itself the threads, their descriptors and CPU time are taken out of the measurement. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/monitor.h"
#include "publish/mlflow.h"
#include "publish/otlp.h"
#include "publish/publisher.h"
#include "report/model.h"
#include "util/clock.h"

#define PLACE_WAIT   2.0    /* seconds that a job waits for a server, at the most */
#define CALLED_OFF   2.0    /* seconds to say so */
#define WITHOUT_NAME "true" /* an option without its value */

static const char *value_of(const char *option)
{
    return strcmp(option, WITHOUT_NAME) == 0 ? NULL : option;
}

/* Who counts what is ours in this process; NULL where it is not watched. */
static struct pr_sink_served *served_by(struct proctor_monitor *m)
{
    return m->outside ? NULL : &m->session.served;
}

static _Atomic int *files_of(struct proctor_monitor *m)
{
    return m->outside ? NULL : &m->session.served.files;
}

/* --- the kinds -------------------------------------------------------------------------------- */

static int open_mlflow(struct proctor_monitor *m, struct pr_outlet **ret, struct proctor_error *err)
{
    struct pr_mlflow_setting s;
    const struct pr_config *c = &m->config;
    const char *uri = value_of(c->mlflow);
    struct pr_mlflow_run run = {.id = m->session.run_id,
                                .name = c->name,
                                .command = m->facts.argv ? m->facts.argv[0] : NULL,
                                .started = pr_clock_wall(),
                                .shared = c->origin[OPTION_RUN_ID] != ORIGIN_DEFAULT,
                                .page = pr_model_page};
    int code = pr_mlflow_read(&s, uri, c->node, c->prefix, err);
    s.files = files_of(m);
    if (code == 0)
        code = pr_mlflow_open(&s, &run, ret, err);
    if (code == 0) {
        m->mlflow.given = s.run != NULL;
        m->mlflow.uri = uri && strncasecmp(uri, "http", 4) == 0 ? strdup(s.url) : NULL;
    }
    explicit_bzero(s.password, sizeof s.password);
    explicit_bzero(s.token, sizeof s.token);
    return code;
}

/* The job is told what its run is called there. */
static void await_mlflow(struct proctor_monitor *m, struct pr_publisher *p)
{
    bool later;
    const char *remote = pr_publisher_await(p, PLACE_WAIT, &later);
    m->mlflow.run = remote ? strdup(remote) : NULL;
    if (later)
        pr_event_problem(&m->session.events, 0,
                         "mlflow: the server has no run for it yet: the job starts without, and "
                         "the run is made later");
}

static int open_otlp(struct proctor_monitor *m, struct pr_outlet **ret, struct proctor_error *err)
{
    struct pr_otlp_setting s;
    int code = pr_otlp_read(&s, value_of(m->config.otlp), err);
    if (code == 0 && s.disabled)
        code = pr_error(err, ECANCELED, "OTEL_SDK_DISABLED is set");
    s.command = m->config.otlp_command;
    s.files = files_of(m);
    if (code == 0)
        code = pr_otlp_open(&s, ret, err);
    pr_otlp_forget(&s);
    return code;
}

static const struct kind {
    const char *name;
    size_t option; /* offset of its text in the settings */
    /* -EINVAL where it was asked for wrongly, -ECANCELED where it is not wanted after all. */
    int (*open)(struct proctor_monitor *m, struct pr_outlet **ret, struct proctor_error *err);
    /* The job waits for this; NULL where it need not. */
    void (*await)(struct proctor_monitor *m, struct pr_publisher *p);
} kinds[PUBLISH_KINDS] = {
    {"mlflow", offsetof(struct pr_config, mlflow), open_mlflow, await_mlflow},
    {"otlp", offsetof(struct pr_config, otlp), open_otlp, NULL},
};

static bool is_asked_for(const struct proctor_monitor *m, const struct kind *k)
{
    const char *text;
    memcpy(&text, (const char *)&m->config + k->option, sizeof text);
    return text != NULL;
}

/* --- all of them ------------------------------------------------------------------------------ */

/* What is asked for wrongly is an error; what is missing here is only said. */
static int start(struct proctor_monitor *m, size_t at, struct proctor_error *err)
{
    struct pr_session *s = &m->session;
    struct pr_outlet *outlet = NULL;
    struct proctor_error why = {.message = "there is no record to send"};
    int code = kinds[at].open(m, &outlet, &why);
    if (code == -EINVAL)
        return pr_error(err, EINVAL, "%s", why.message);
    if (code == 0 && !s->file) {
        outlet->ops->free(outlet);
        code = pr_error(&why, ENOENT, "there is no record to send");
    }
    if (code == 0)
        code =
            pr_publisher_start(&m->publishers[at], outlet, s->file, &s->events, served_by(m), &why);
    if (code == -ECANCELED)
        pr_event_note(&s->events, 0, "%s: nothing is published: %s", kinds[at].name, why.message);
    else if (code < 0)
        pr_event_problem(&s->events, 0, "%s: nothing is published: %s", kinds[at].name,
                         why.message);
    return 0;
}

int pr_monitor_publish(struct proctor_monitor *m, struct proctor_error *err)
{
    int code = 0;
    const struct pr_config *c = &m->config;
    if (c->mlflow_join && !c->mlflow && c->origin[OPTION_MLFLOW_JOIN] == ORIGIN_OPTION)
        pr_event_note(&m->session.events, 0, "--mlflow-join does nothing without --mlflow");
    for (size_t i = 0; i < PUBLISH_KINDS && code == 0; i++)
        if (is_asked_for(m, &kinds[i]))
            code = start(m, i, err);
    for (size_t i = 0; i < PUBLISH_KINDS && code == 0; i++)
        if (m->publishers[i] && kinds[i].await)
            kinds[i].await(m, m->publishers[i]);
    return code;
}

/* All at once: together they take no longer than one. */
void pr_monitor_publish_end(struct proctor_monitor *m)
{
    bool called_off = !m->session.begun;
    double seconds = called_off ? CALLED_OFF : m->config.flush_timeout;
    for (size_t i = 0; i < PUBLISH_KINDS; i++)
        if (m->publishers[i])
            pr_publisher_hurry(m->publishers[i], seconds, called_off);
    for (size_t i = 0; i < PUBLISH_KINDS; i++) {
        if (!m->publishers[i])
            continue;
        if (!pr_publisher_finish(m->publishers[i], &m->published[m->facts.published_count++]))
            m->session.stuck = true;
        m->publishers[i] = NULL;
    }
    m->facts.published = m->published;
    free(m->mlflow.run);
    free(m->mlflow.uri);
    m->mlflow.run = m->mlflow.uri = NULL;
}
