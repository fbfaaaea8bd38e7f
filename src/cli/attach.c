/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor attach`: record what is running already, and touch nothing. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/outside.h"
#include "util/fs.h"
#include "util/scan.h"

enum { EXIT_NO_TARGET = 1, ARGS_SHOWN = 256 };

struct attach {
    struct proctor_monitor *monitor;
    struct pr_summary_file summary;
    pid_t pid;
    int signals, ended; /* ended: readable when the process has; -1 where that cannot be had */
    char *cmdline, *argv[ARGS_SHOWN + 1], name[COMM_MAX + 2];
};

static bool parse_pid(const char *text, pid_t *ret)
{
    struct pr_scan s = pr_scan_of(text, strlen(text));
    uint64_t pid;
    if (!pr_scan_u64(&s, &pid) || s.p != s.end || pid == 0 || pid > INT32_MAX)
        return false;
    *ret = (pid_t)pid;
    return true;
}

/* A file of the process below the root, which nobody has opened yet. */
static char *read_whole(const struct attach *a, const char *file, size_t *ret_len)
{
    char path[4200], *text = NULL;
    snprintf(path, sizeof path, "%s/proc/%d/%s", a->monitor->config.root, (int)a->pid, file);
    *ret_len = 0;
    pr_fs_slurp(AT_FDCWD, path, &text, ret_len);
    return text;
}

/* The command line of the process, for the summary: arguments end in NUL. A kernel thread has none,
 * but a name. */
static void read_command(struct attach *a)
{
    size_t len, count = 0;
    a->cmdline = read_whole(a, "cmdline", &len);
    for (char *p = a->cmdline; p < a->cmdline + len && count < ARGS_SHOWN; p += strlen(p) + 1)
        a->argv[count++] = p;
    char *comm = count ? NULL : read_whole(a, "comm", &len);
    if (comm) {
        snprintf(a->name, sizeof a->name, "[%.*s]", (int)strcspn(comm, "\n"), comm);
        a->argv[0] = a->name;
    }
    free(comm);
    a->monitor->facts.argv = a->argv;
    a->monitor->facts.pid = a->pid;
}

static int prepare(struct attach *a, struct proctor_error *err)
{
    sigset_t set;
    struct proctor_monitor *m = a->monitor;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (signal(SIGHUP, SIG_DFL) != SIG_IGN)
        sigaddset(&set, SIGHUP);
    else
        signal(SIGHUP, SIG_IGN); /* nohup */
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    m->hold_limit = pr_outside_raise_limit();
    int r = proctor_monitor_watch_pid(m, a->pid, 0, err);
    m->tree.self = getpid();
    if (r == 0)
        read_command(a);
    if (r == 0)
        r = pr_summary_file_open(&a->summary, m->config.summary, err);
    if (r == 0)
        r = pr_monitor_prepare(m, err);
    if (r == 0 && (a->signals = pr_signals_open(&set)) < 0)
        r = pr_error(err, -a->signals, "cannot read signals: %s", strerror(-a->signals));
    if (r == 0 && (r = pr_session_begin(&m->session)) < 0)
        r = pr_error(err, -r, "cannot make a timer: %s", strerror(-r));
    if (r < 0)
        return r;
    if (!m->session.host.foreign)
        a->ended = (int)syscall(SYS_pidfd_open, a->pid, 0);
    return 0;
}

static void watch(struct attach *a)
{
    struct pr_session *s = &a->monitor->session;
    struct pollfd wait[] = {{.fd = a->signals, .events = POLLIN},
                            {.fd = s->timer, .events = POLLIN},
                            {.fd = a->ended, .events = POLLIN}};
    pr_session_tick(s);
    while (!pr_session_over(s)) {
        int left = pr_monitor_time_left(a->monitor);
        int n = left ? poll(wait, 3, left) : 0;
        if ((n < 0 && errno != EINTR) || n == 0 || (n > 0 && wait[0].revents))
            return; /* a signal, or time is up */
        if (n > 0 && wait[2].revents) {
            wait[2].fd = -1; /* told once */
            if (!a->monitor->config.wait_tree) {
                s->gone = true;
                return;
            }
        }
        if (n > 0 && wait[1].revents) {
            pr_session_due(s);
            pr_session_tick(s);
        }
    }
}

static int record(struct attach *a)
{
    struct proctor_error err;
    int r = prepare(a, &err);
    if (r < 0) {
        pr_summary_file_cancel(&a->summary);
        pr_complain("attach: %s", err.message);
        return r == -ESRCH ? EXIT_NO_TARGET : EXIT_OWN_FAILURE;
    }
    watch(a);
    proctor_monitor_stop(a->monitor, NULL);
    pr_finish(a->monitor, &a->summary);
    return a->monitor->config.strict && a->monitor->session.events.problems ? EXIT_OWN_FAILURE : 0;
}

int pr_main_attach(int argc, char **argv)
{
    struct attach a = {.signals = -1, .ended = -1, .summary.fd = -1};
    int first, status;
    pr_outside_plug_holes();
    a.monitor = pr_recording_new("attach", argc, argv, &first, &status);
    if (!a.monitor)
        return status;
    status = EXIT_USAGE;
    if (!argv[first])
        pr_complain("attach: a PID is missing: proctor attach [OPTIONS] PID");
    else if (argv[first + 1])
        pr_complain("attach: '%.80s' is too much: it takes one PID", argv[first + 1]);
    else if (!parse_pid(argv[first], &a.pid))
        pr_complain("attach: '%.80s' is not a process id; `pgrep -f` finds one", argv[first]);
    else
        status = record(&a);
    proctor_monitor_free(a.monitor);
    if (a.signals >= 0)
        close(a.signals);
    if (a.ended >= 0)
        close(a.ended);
    free(a.cmdline);
    return status;
}
