/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor run`: a wrapper that the job does not notice.
 *
 * The job is forked first and held, while we are small and before anything is loaded; it is let go
 * when all outputs are open. We become its subreaper, so that whoever it orphans comes to us and
 * their account with them. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/outside.h"
#include "cli/scope.h"
#include "cli/server.h"
#include "core/exact.h"
#include "core/job.h"
#include "core/self.h"
#include "publish/address.h"
#include "target/spawn.h"
#include "util/clock.h"
#include "util/text.h"

struct run {
    struct proctor_monitor *monitor;
    struct pr_summary_file summary;
    struct pr_spawn spawn;
    struct pr_host host; /* the machine that we are on */
    struct pr_exact exact;
    struct pr_outside outside;
    struct pr_server server;
    sigset_t watched; /* signals that we read instead of obeying */
    int signals;
    bool ended;         /* the job itself */
    bool childless;     /* nobody is left to wait for */
    bool enough;        /* the job has ended, and somebody wants us to end, too */
    int64_t stopped_at; /* boot time, 0 while it runs */
    int stop_signal;
};

/* --- what became of children ------------------------------------------------------------------ */

static double time_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static void account(struct run *r, pid_t pid, const struct rusage *u, int status)
{
    double usage[PROC_METRICS];
    for (int id = 0; id < PROC_METRICS; id++)
        usage[id] = NAN;
    usage[METRIC_CPU_USER] = time_of(u->ru_utime);
    usage[METRIC_CPU_SYSTEM] = time_of(u->ru_stime);
    usage[METRIC_CPU_TIME] = usage[METRIC_CPU_USER] + usage[METRIC_CPU_SYSTEM];
    usage[METRIC_FAULTS_MINOR] = (double)u->ru_minflt;
    usage[METRIC_FAULTS_MAJOR] = (double)u->ru_majflt;
    usage[METRIC_CTX_VOLUNTARY] = (double)u->ru_nvcsw;
    usage[METRIC_CTX_INVOLUNTARY] = (double)u->ru_nivcsw;
    pr_session_reaped(&r->monitor->session, pid, usage, (double)u->ru_maxrss * 1024, status);
}

/* A child that we had before the job; it is gone now. */
static bool forget_stranger(struct run *r, pid_t pid)
{
    for (size_t i = 0; i < r->outside.child_count; i++) {
        if (r->outside.children[i] != pid)
            continue;
        r->outside.children[i] = 0;
        r->monitor->session.reaped_lately = true; /* its I/O has come with it */
        return true;
    }
    return false;
}

static void note_gap(struct run *r)
{
    struct pr_session *s = &r->monitor->session;
    int64_t now = pr_clock_boot();
    char name[32];
    if (!r->stopped_at)
        return;
    pr_event_add(&s->events, EVENT_GAP, pr_session_elapsed(s, r->stopped_at),
                 pr_seconds(now - r->stopped_at), "the job was stopped by %s",
                 pr_text_signal(r->stop_signal, name, sizeof name));
    r->stopped_at = 0;
}

/* The terminal stopped the job: whoever waits for us must see us stopped, too. */
static void stop_too(int sig)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, sig);
    kill(getpid(), sig);
    sigprocmask(SIG_UNBLOCK, &one, NULL); /* here we stop, until SIGCONT */
    sigprocmask(SIG_BLOCK, &one, NULL);
}

static void job_changed(struct run *r, int status)
{
    if (WIFSTOPPED(status)) {
        note_gap(r); /* that it went on in between we may not have been told */
        int sig = r->stop_signal = WSTOPSIG(status);
        r->stopped_at = pr_clock_boot();
        if (sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU)
            stop_too(sig);
        return;
    }
    note_gap(r);
    if (WIFCONTINUED(status))
        return;
    r->ended = true;
    struct pr_facts *facts = &r->monitor->facts;
    if (WIFSIGNALED(status))
        facts->exit_signal = WTERMSIG(status);
    else
        facts->exit_code = WEXITSTATUS(status);
}

/* Before children are waited for that we had before the job: what they will bring with them. */
static void look_at_strangers(struct run *r)
{
    siginfo_t info = {0};
    for (size_t i = 0; i < r->outside.child_count; i++) {
        pid_t pid = r->outside.children[i];
        info.si_pid = 0;
        if (pid && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid)
            pr_self_expect_io(pid, r->monitor->session.strange_io);
    }
}

static bool is_stranger(const struct run *r, pid_t pid)
{
    for (size_t i = 0; i < r->outside.child_count; i++)
        if (r->outside.children[i] == pid)
            return true;
    return false;
}

/* Has a child ended, stopped or gone on? Who has ended is not waited for yet: a zombie still has
 * its files. False for nobody. */
static bool next_change(struct run *r, int options, siginfo_t *ret)
{
    int code;
    *ret = (siginfo_t){0};
    do
        code = waitid(P_ALL, 0, ret, options | WNOHANG | __WALL);
    while (code < 0 && errno == EINTR);
    r->childless = code < 0;
    return code == 0 && ret->si_pid;
}

static void bury(struct run *r, pid_t pid)
{
    struct rusage usage;
    int status;
    if (!is_stranger(r, pid))
        pr_session_look(&r->monitor->session, pid);
    if (wait4(pid, &status, WNOHANG | __WALL, &usage) != pid)
        return;
    if (pid == r->spawn.pid)
        job_changed(r, status);
    if (!forget_stranger(r, pid))
        account(r, pid, &usage, status);
}

static void reap(struct run *r)
{
    siginfo_t info;
    look_at_strangers(r);
    while (next_change(r, WEXITED | WNOWAIT, &info))
        bury(r, info.si_pid);
    while (next_change(r, WSTOPPED | WCONTINUED, &info))
        if (info.si_pid == r->spawn.pid)
            job_changed(r,
                        info.si_code == CLD_CONTINUED ? __W_CONTINUED : W_STOPCODE(info.si_status));
}

/* --- signals ---------------------------------------------------------------------------------- */

static void watch_signals(struct run *r)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                 SIGTRAP, SIGSYS, SIGKILL, SIGSTOP};
    struct sigaction action;
    sigfillset(&r->watched);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&r->watched, faults[i]);
    sigprocmask(SIG_BLOCK, &r->watched, &r->spawn.mask);
    sigaction(SIGCHLD, NULL, &action);
    r->spawn.chld_ignored = action.sa_handler == SIG_IGN;
    /* Ignored, it would make the kernel reap in our place and throw the account away. */
    signal(SIGCHLD, SIG_DFL);
}

/* Has what the kernel sent to us reached the job as well, or does it concern us alone? The terminal
 * sends to the whole process group, but a hangup to the leader of the session alone. */
static bool reached_the_job(int sig)
{
    switch (sig) {
    case SIGINT:
    case SIGQUIT:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGWINCH:
    case SIGXCPU:
    case SIGXFSZ:
        return true;
    case SIGHUP:
    case SIGCONT:
        return getsid(0) != getpid();
    default:
        return false;
    }
}

static void hand_on(struct run *r)
{
    struct signalfd_siginfo info;
    while (read(r->signals, &info, sizeof info) == sizeof info) {
        int sig = (int)info.ssi_signo;
        if (sig == SIGCHLD || (pid_t)info.ssi_pid == getpid())
            continue;   /* our own: SIGPIPE of an output that was closed */
        if (r->ended) { /* --wait-tree, and nobody to hand it on to */
            r->enough |= sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;
            continue;
        }
        if (info.ssi_code != SI_KERNEL || !reached_the_job(sig))
            kill(r->spawn.pid, sig);
    }
}

/* --- the run ---------------------------------------------------------------------------------- */

/* As subreaper we inherit whoever is orphaned: without a child there is no tree any more. */
static bool tree_is_gone(const struct run *r)
{
    bool telling = r->monitor->facts.way == WAY_RUN && r->outside.child_count == 0;
    return telling ? r->childless : pr_session_over(&r->monitor->session);
}

static bool is_over(const struct run *r)
{
    return r->ended && (!r->monitor->config.wait_tree || r->enough || tree_is_gone(r));
}

static void watch(struct run *r)
{
    struct pr_session *s = &r->monitor->session;
    struct pollfd wait[] = {{.fd = r->signals, .events = POLLIN},
                            {.fd = s->timer, .events = POLLIN},
                            {.events = POLLIN}};
    reap(r);
    pr_session_tick(s);
    while (!is_over(r)) {
        wait[2].fd = pr_server_fd(&r->server);
        if (poll(wait, 3, -1) < 0 && errno != EINTR)
            break;
        if (wait[0].revents) {
            hand_on(r);
            reap(r);
        }
        if (!is_over(r) && wait[1].revents) {
            pr_session_due(s);
            pr_session_tick(s);
        }
        if (!is_over(r) && wait[2].revents)
            pr_server_serve(&r->server, s);
    }
    note_gap(r);
    s->gone = true;
    pr_server_drain(&r->server, s);
    pr_server_close(&r->server);
}

static const char *exec_reason(const char *command, int code)
{
    struct stat st;
    if (code == ENOENT && !strchr(command, '/'))
        return "not found in PATH";
    if (code == EACCES && stat(command, &st) == 0 && S_ISDIR(st.st_mode))
        return "is a directory";
    return strerror(code);
}

static int exec_failed(struct run *r, int code)
{
    pr_summary_file_cancel(&r->summary);
    pr_session_call_off(&r->monitor->session);
    pr_complain("run: cannot start '%.300s': %s", r->spawn.argv[0],
                exec_reason(r->spawn.argv[0], code));
    return code == ENOENT || code == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static int prepare(struct run *r, struct proctor_error *err)
{
    struct proctor_monitor *m = r->monitor;
    bool subreaper = strcmp(m->config.exact, "none") != 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
    m->facts.way = subreaper ? WAY_RUN : WAY_RUN_NO_SUBREAPER;
    m->target = (struct pr_target_setting){.root = r->spawn.pid,
                                           .fresh = true,
                                           .held = true,
                                           .empty_handed = !r->outside.has_sockets,
                                           .self = getpid(),
                                           .adopter = getpid(),
                                           .all_come = subreaper,
                                           .strangers = r->outside.children,
                                           .stranger_count = r->outside.child_count};
    m->watching = true;
    m->hold_limit = pr_outside_raise_limit();
    int code = pr_summary_file_open(&r->summary, m->config.summary, err);
    if (code == 0)
        code = pr_monitor_prepare(m, err);
    m->session.exact = &r->exact;
    r->exact.roll = &m->session.roll;
    if (code == 0)
        code = pr_outside_check_root(&m->session.host, r->spawn.pid, err);
    if (code == 0 && (r->signals = pr_signals_open(&r->watched)) < 0)
        code = pr_error(err, -r->signals, "cannot read signals: %s", strerror(-r->signals));
    if (code == 0 && (code = pr_session_begin(&m->session)) < 0)
        code = pr_error(err, -code, "cannot make a timer: %s", strerror(-code));
    if (code == 0)
        pr_session_meet(&m->session); /* it may be gone before the first sample */
    return code;
}

static int finish(struct run *r)
{
    struct proctor_monitor *m = r->monitor;
    proctor_monitor_stop(m, NULL);
    int code = pr_exact_finish(&r->exact); /* the last sample has been taken from it */
    if (code < 0 && code != -EBUSY) /* the job's own groups are in it: the next start removes it */
        pr_complain("run: %s", r->exact.why);
    pr_finish(m, &r->summary);
    pr_server_tidy(&r->server, &m->session);
    if (m->config.strict && m->session.events.problems)
        return EXIT_OWN_FAILURE;
    if (m->facts.exit_signal > 0)
        pr_outside_die_of(m->facts.exit_signal);
    return m->facts.exit_signal > 0 ? 128 + m->facts.exit_signal : m->facts.exit_code;
}

/* Forks the job, held, into what will account for it. */
static int hold(struct run *r, struct proctor_error *err)
{
    int code = pr_host_open(&r->host, "/", err);
    r->monitor->host = code < 0 ? NULL : &r->host;
    code = pr_exact_prepare(&r->exact, r->monitor->config.exact, r->monitor->host, err);
    if (code < 0)
        return code;
    r->spawn.cgroup = r->exact.clone_fd;
    code = r->spawn.envp ? pr_spawn_hold(&r->spawn) : -ENOMEM;
    if (code < 0)
        return pr_error(err, -code, "cannot fork: %s", strerror(-code));
    code = pr_exact_enter(&r->exact, r->spawn.pid, r->spawn.in_cgroup, err);
    if (code < 0)
        pr_spawn_cancel(&r->spawn);
    return code;
}

/* Where it is published. Where both write into one run, only one of them writes what the machine
 * does. */
static void tell_the_job(struct run *r)
{
    const struct proctor_monitor *m = r->monitor;
    bool join = m->config.mlflow_join;
    if (!m->mlflow.run)
        return;
    pr_spawn_add(&r->spawn, "PROCTOR_MLFLOW_RUN_ID", m->mlflow.run);
    if (join)
        pr_spawn_add(&r->spawn, "MLFLOW_RUN_ID", m->mlflow.run);
    if (join && m->mlflow.uri)
        pr_spawn_add(&r->spawn, "MLFLOW_TRACKING_URI", m->mlflow.uri);
    if (join || m->mlflow.given)
        pr_spawn_add(&r->spawn, "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "false");
}

static int start(struct run *r, char **argv)
{
    struct proctor_error err;
    struct proctor_monitor *m = r->monitor;
    char id[64];
    watch_signals(r);
    pr_outside_look(&r->outside);
    if (!m->config.run_id) {
        pr_session_name(id, sizeof id);
        pr_config_set(&m->config, OPTION_RUN_ID, id, ORIGIN_DEFAULT, "--run-id", NULL);
    }
    r->spawn.argv = argv;
    pr_server_open(&r->server, m->config.run_id);
    if (m->config.mlflow)
        pr_spawn_expect(&r->spawn);
    r->spawn.envp = pr_outside_environment(m->config.run_id, r->server.path, SPAWN_LATE_MOST);
    if (hold(r, &err) < 0) {
        pr_complain("run: %s", err.message);
        return EXIT_OWN_FAILURE;
    }
    if (prepare(r, &err) < 0) {
        pr_spawn_cancel(&r->spawn);
        pr_summary_file_cancel(&r->summary);
        pr_session_call_off(&r->monitor->session);
        pr_complain("run: %s", err.message);
        return EXIT_OWN_FAILURE;
    }
    tell_the_job(r);
    pr_server_excuse(&r->server, &m->session);
    m->session.rss_floor = pr_self_copy_peak(r->spawn.pid);
    pr_outside_let_go(&r->outside);
    int code = pr_spawn_release(&r->spawn);
    if (code < 0)
        return exec_failed(r, -code);
    watch(r);
    return finish(r);
}

/* A password that was typed is taken out of what `ps` shows; the settings have a copy. */
static void hide_secrets(char **argv, char *const *end)
{
    for (; argv < end; argv++) {
        char *equals = strchr(*argv, '=');
        for (int id = 0; id < OPTION_COUNT && equals; id++) {
            size_t n = strlen(pr_options[id].name);
            if (pr_options[id].secret && equals == *argv + 2 + n &&
                strncmp(*argv + 2, pr_options[id].name, n) == 0)
                pr_address_hide(equals + 1);
        }
    }
}

int pr_main_run(int argc, char **argv)
{
    struct run r = {.signals = -1,
                    .host = {.root = -1, .proc = -1},
                    .summary.fd = -1,
                    .spawn.cgroup = -1,
                    .server = PR_SERVER_NONE};
    int first, status;
    pr_outside_plug_holes();
    r.monitor = pr_recording_new("run", argc, argv, &first, &status);
    if (!r.monitor)
        return status;
    if (first >= argc) {
        pr_complain("run: a command is missing: proctor run [OPTIONS] [--] COMMAND [ARG...]");
        status = EXIT_OWN_FAILURE;
    } else {
        if (strcmp(r.monitor->config.exact, "cgroup") == 0)
            pr_scope_enter(argv - 1); /* main's: the program's name comes first */
        hide_secrets(argv, argv + first);
        r.monitor->facts.argv = argv + first;
        status = start(&r, argv + first);
    }
    proctor_monitor_free(r.monitor);
    pr_exact_finish(&r.exact);
    pr_host_close(&r.host);
    if (r.signals >= 0)
        close(r.signals);
    pr_server_close(&r.server);
    pr_outside_done(&r.outside, r.spawn.envp);
    return status;
}
