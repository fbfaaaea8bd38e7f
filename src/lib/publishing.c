/* SPDX-License-Identifier: Apache-2.0 */
/* A monitor that is published while it records. For the command alone: in somebody else's process
 * there would be a thread more, and descriptors, that are not ours to take out of the measurement.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/monitor.h"
#include "publish/mlflow.h"
#include "publish/publisher.h"
#include "report/model.h"
#include "util/clock.h"

#define PLACE_WAIT   2.0    /* seconds that a job waits for a server, at the most */
#define CALLED_OFF   2.0    /* seconds to say so */
#define WITHOUT_NAME "true" /* --mlflow without a value */

static const char *uri_of(const struct pr_config *c)
{
    return strcmp(c->mlflow, WITHOUT_NAME) == 0 ? NULL : c->mlflow;
}

static void keep_names(struct proctor_monitor *m, const struct pr_mlflow_setting *s,
                       const char *remote)
{
    const char *uri = uri_of(&m->config);
    m->mlflow.given = s->run != NULL;
    m->mlflow.run = remote ? strdup(remote) : NULL;
    m->mlflow.uri = uri && strncasecmp(uri, "http", 4) == 0 ? strdup(s->url) : NULL;
}

static int start(struct proctor_monitor *m, const struct pr_mlflow_setting *s,
                 struct proctor_error *err)
{
    struct pr_session *session = &m->session;
    struct pr_outlet *outlet;
    struct pr_mlflow_run run = {.id = session->run_id,
                                .name = m->config.name,
                                .command = m->facts.argv ? m->facts.argv[0] : NULL,
                                .started = pr_clock_wall(),
                                .shared = m->config.origin[OPTION_RUN_ID] != ORIGIN_DEFAULT,
                                .page = pr_model_page};
    int code = pr_mlflow_open(s, &run, &outlet, err);
    return code < 0
               ? code
               : pr_publisher_start(&m->publisher, outlet, session->file, &session->events, err);
}

/* What is asked for wrongly is an error; what is missing here is only said. */
int pr_monitor_publish(struct proctor_monitor *m, struct proctor_error *err)
{
    struct proctor_error why = {.message = "there is no record to send"};
    struct pr_mlflow_setting setting;
    const struct pr_config *c = &m->config;
    if (!c->mlflow)
        return 0;
    if (!m->outside)
        return pr_error(err, ENOTSUP, "mlflow: publishing is for the command alone");
    int code = pr_mlflow_read(&setting, uri_of(c), c->node, c->prefix, err);
    if (code < 0)
        return code;
    code = m->session.file ? start(m, &setting, &why) : -ENOENT;
    explicit_bzero(setting.password, sizeof setting.password);
    explicit_bzero(setting.token, sizeof setting.token);
    if (code < 0) {
        pr_event_problem(&m->session.events, 0, "nothing is published: %.150s", why.message);
        return 0;
    }
    const char *remote = pr_publisher_await(m->publisher, PLACE_WAIT);
    keep_names(m, &setting, remote);
    if (!remote)
        pr_event_problem(
            &m->session.events, 0,
            "mlflow: %.100s has no run for it yet: the job starts without, and the run "
            "is made later",
            setting.url);
    return 0;
}

void pr_monitor_publish_end(struct proctor_monitor *m)
{
    bool called_off = !m->session.begun;
    pr_publisher_finish(m->publisher, called_off ? CALLED_OFF : m->config.flush_timeout,
                        called_off);
    m->publisher = NULL;
    free(m->mlflow.run);
    free(m->mlflow.uri);
    m->mlflow.run = m->mlflow.uri = NULL;
}
