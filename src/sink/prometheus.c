/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics for Prometheus while the job runs. The writer's thread leaves the sample here; the
 * server's thread makes a page of it when somebody asks, once for each sample and form. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sink/exposition.h"
#include "sink/latest.h"
#include "util/clock.h"
#include "util/httpd.h"
#include "util/listen.h"

#define OWN_FILES 3 /* of a server, besides its clients and the listening socket */

#define OLD (5 * NS_PER_S) /* beyond three intervals: then the last sample is not shown */

struct prometheus {
    struct pr_sink sink;
    struct pr_exposition exposition;
    struct pr_events *events;
    struct pr_sink_served *served; /* NULL where nobody counts them */
    int threads, files;            /* of ours that are in there */
    int64_t cpu;
    int fd; /* the listening socket until there is a server, else -1 */
    struct pr_httpd *server;
    pthread_mutex_t lock; /* guards the next three */
    struct pr_latest latest;
    unsigned long number; /* of the sample in it, from 1 */
    int64_t at;           /* boot time at which that came */
    /* The server's thread has these. */
    struct proctor_snapshot sample;
    struct pr_page *page[EXPOSITION_FORMS], *elsewhere, *too_old;
    unsigned long page_number[EXPOSITION_FORMS];
    struct pr_buf text;
};

/* --- the server's thread ---------------------------------------------------------------------- */

static struct pr_page *words(struct prometheus *p, struct pr_page **page, const char *text)
{
    if (*page)
        return *page;
    pr_buf_reset(&p->text);
    pr_buf_str(&p->text, text);
    return *page = pr_page_new("text/plain", &p->text);
}

static void make_page(struct prometheus *p, enum pr_exposition_form form)
{
    pr_buf_reset(&p->text);
    pr_exposition_write(&p->text, &p->exposition, form, &p->sample);
    struct pr_page *page = pr_page_new(pr_exposition_type(form), &p->text);
    pr_page_free(p->page[form]);
    p->page[form] = page;
}

static bool is_old(struct prometheus *p)
{
    pthread_mutex_lock(&p->lock);
    bool old = pr_clock_boot() - p->at > OLD + 3 * p->latest.now.interval;
    pthread_mutex_unlock(&p->lock);
    return old;
}

/* Makes the page of the sample that there is, unless it is there. */
static bool look(struct prometheus *p, enum pr_exposition_form form)
{
    pthread_mutex_lock(&p->lock);
    bool news = p->number != p->page_number[form];
    int r = news ? pr_snapshot_copy(&p->sample, &p->latest.now) : 0;
    p->page_number[form] = r == 0 ? p->number : 0;
    pthread_mutex_unlock(&p->lock);
    if (r == 0 && news)
        make_page(p, form);
    return r == 0;
}

static struct pr_page *answer(void *of, const char *path, const char *accept, unsigned *ret_status)
{
    struct prometheus *p = of;
    enum pr_exposition_form form = pr_exposition_choose(accept);
    bool here = strcmp(path, "/metrics") == 0, old = here && is_old(p);
    *ret_status = !here ? 404 : old ? 503 : 200;
    if (!here)
        return words(p, &p->elsewhere, "there is only /metrics\n");
    if (old) /* another output holds up the writer: these are not the values of now */
        return words(p, &p->too_old, "there has been no sample for a while\n");
    if (!look(p, form))
        return NULL;
    return p->page[form];
}

/* --- the writer's thread ---------------------------------------------------------------------- */

/* The library comes with others, and takes its time: no job waits for it. */
static void start(struct prometheus *p, double at)
{
    char why[200];
    int fd = p->fd;
    if (fd < 0 || p->server)
        return;
    p->fd = -1;
    p->server = pr_httpd_start(fd, answer, p, why, sizeof why);
    if (!p->server)
        pr_event_problem(p->events, at,
                         "--prometheus: nothing is served: %s (libmicrohttpd is in the package "
                         "libmicrohttpd12 of Debian)",
                         why);
}

/* What is ours in a process that is watched from inside. */
static void count(struct prometheus *p)
{
    int threads = p->server != NULL;
    int files = p->server ? OWN_FILES + pr_httpd_clients(p->server) : -1; /* not even a socket */
    int64_t cpu = p->server ? pr_httpd_cpu(p->server) : 0;
    if (p->served) {
        p->served->threads += threads - p->threads;
        p->served->files += files - p->files;
        p->served->cpu += cpu - p->cpu;
    }
    p->threads = threads;
    p->files = files;
    p->cpu = cpu;
}

static void prometheus_write(struct pr_sink *sink, const struct proctor_snapshot *s)
{
    struct prometheus *p = (struct prometheus *)sink;
    pthread_mutex_lock(&p->lock);
    if (pr_latest_take(&p->latest, s) == 0)
        p->number++;
    p->at = pr_clock_boot();
    pthread_mutex_unlock(&p->lock);
    start(p, pr_seconds(s->elapsed));
    count(p);
}

static void prometheus_close(struct pr_sink *sink)
{
    struct prometheus *p = (struct prometheus *)sink;
    pr_httpd_stop(p->server);
    for (int form = 0; form < EXPOSITION_FORMS; form++)
        pr_page_free(p->page[form]);
    pr_page_free(p->elsewhere);
    pr_page_free(p->too_old);
    if (p->fd >= 0)
        close(p->fd);
    pr_snapshot_done(&p->sample);
    pr_latest_done(&p->latest);
    pr_exposition_done(&p->exposition);
    pr_buf_done(&p->text);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static const struct pr_sink_ops ops = {
    .write = prometheus_write, .close = prometheus_close, .devices = true, .matches = true};

/* A port that others have is no reason to keep a job from running. */
static int listen_there(struct prometheus *p, const char *address, struct proctor_error *err)
{
    p->fd = pr_listen(address);
    if (p->fd == -EINVAL)
        return pr_error(err, EINVAL,
                        "--prometheus: '%.80s' is no address; write it as 127.0.0.1:9464, "
                        "[::1]:9464 or 9464",
                        address);
    if (p->fd < 0)
        pr_event_problem(
            p->events, 0,
            "--prometheus: %s: '%.80s'; nothing is served; --prometheus=PORT takes another",
            strerror(-p->fd), address);
    return 0;
}

int pr_prometheus_open(const struct pr_sink_setting *setting, struct pr_sink **ret_sink,
                       struct proctor_error *err)
{
    struct prometheus *p = calloc(1, sizeof *p);
    if (!p)
        return pr_error(err, ENOMEM, "out of memory");
    p->sink.ops = &ops;
    p->fd = -1;
    p->events = setting->events;
    p->served = setting->served;
    pthread_mutex_init(&p->lock, NULL);
    int r = pr_exposition_init(&p->exposition, setting) < 0 ? pr_error(err, ENOMEM, "out of memory")
                                                            : listen_there(p, setting->path, err);
    if (r < 0) {
        prometheus_close(&p->sink);
        return r;
    }
    *ret_sink = &p->sink;
    return 0;
}
