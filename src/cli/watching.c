/* SPDX-License-Identifier: Apache-2.0 */
/* Recording what runs already, for attach and system: until the target or the time is over, or a
 * signal says so. Nothing is touched. */
#include "cli/watching.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/outside.h"

static void watch_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGTERM);
    if (signal(SIGHUP, SIG_DFL) != SIG_IGN)
        sigaddset(ret_set, SIGHUP);
    else
        signal(SIGHUP, SIG_IGN); /* nohup */
    sigprocmask(SIG_BLOCK, ret_set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int prepare(struct pr_watching *w, struct proctor_error *err)
{
    sigset_t set;
    struct proctor_monitor *m = w->monitor;
    watch_signals(&set);
    m->hold_limit = pr_outside_raise_limit();
    m->target.self = getpid();
    int r = pr_summary_file_open(&w->summary, m->config.summary, err);
    if (r == 0)
        r = pr_monitor_prepare(m, err);
    if (r == 0 && (w->signals = pr_signals_open(&set)) < 0)
        r = pr_error(err, -w->signals, "cannot read signals: %s", strerror(-w->signals));
    if (r == 0 && (r = pr_session_begin(&m->session)) < 0)
        r = pr_error(err, -r, "cannot make a timer: %s", strerror(-r));
    if (r == 0) {
        pr_server_open(&w->server, m->session.run_id);
        pr_server_excuse(&w->server, &m->session);
    }
    return r;
}

static void watch(struct pr_watching *w)
{
    struct pr_session *s = &w->monitor->session;
    struct pollfd wait[] = {{.fd = w->signals, .events = POLLIN},
                            {.fd = s->timer, .events = POLLIN},
                            {.fd = w->ended, .events = POLLIN},
                            {.events = POLLIN}};
    pr_session_tick(s);
    if (s->now.value[METRIC_PROCS] == 0 && !w->monitor->config.machine && !w->monitor->config.quiet)
        pr_complain("%s: nobody is there yet; waiting", w->command);
    while (!pr_session_over(s)) {
        int left = pr_monitor_time_left(w->monitor);
        wait[3].fd = pr_server_fd(&w->server);
        int n = left ? poll(wait, 4, left) : 0;
        if ((n < 0 && errno != EINTR) || n == 0 || (n > 0 && wait[0].revents))
            return; /* a signal, or time is up */
        if (n > 0 && wait[2].revents) {
            wait[2].fd = -1; /* told once */
            if (!w->monitor->config.wait_tree) {
                s->gone = true;
                return;
            }
        }
        if (n > 0 && wait[1].revents) {
            pr_session_due(s);
            pr_session_tick(s);
        }
        if (n > 0 && wait[3].revents)
            pr_server_serve(&w->server, s);
    }
}

int pr_watching_record(struct pr_watching *w)
{
    struct proctor_error err;
    int r = prepare(w, &err);
    if (r < 0) {
        pr_summary_file_cancel(&w->summary);
        pr_complain("%s: %s", w->command, err.message);
        return pr_watching_status(r);
    }
    watch(w);
    pr_server_drain(&w->server, &w->monitor->session);
    pr_server_close(&w->server);
    proctor_monitor_stop(w->monitor, NULL);
    pr_finish(w->monitor, &w->summary);
    pr_server_tidy(&w->server, &w->monitor->session);
    return w->monitor->config.strict && w->monitor->session.events.problems ? EXIT_OWN_FAILURE : 0;
}

int pr_watching_status(int code)
{
    return code == -ESRCH ? EXIT_NO_TARGET : code == -EINVAL ? EXIT_USAGE : EXIT_OWN_FAILURE;
}

void pr_watching_done(struct pr_watching *w)
{
    proctor_monitor_free(w->monitor);
    pr_server_close(&w->server);
    if (w->signals >= 0)
        close(w->signals);
    if (w->ended >= 0)
        close(w->ended);
}
