/* SPDX-License-Identifier: Apache-2.0 */
/* The public API. */
#include "lib/monitor.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/command.h"
#include "core/space.h"
#include "core/tick.h"
#include "lib/own_sink.h"
#include "util/clock.h"

#define TIMER_SLACK 50000UL /* ns, the kernel's own: a service may have set more for all */

#ifndef PROCTOR_VERSION
#error "the build gives PROCTOR_VERSION"
#endif

const char *proctor_version(void)
{
    return PROCTOR_VERSION;
}

int pr_monitor_check_caller(const struct proctor_monitor *m, struct proctor_error *err)
{
    if (m->owner != getpid())
        return pr_error(err, ECHILD, "this monitor belongs to process %d", (int)m->owner);
    if (m->calling_back == gettid() || m->in_sink == gettid())
        return pr_error(err, EDEADLK, "a callback cannot call into its monitor");
    return 0;
}

int proctor_monitor_new(struct proctor_monitor **ret_monitor, struct proctor_error *err)
{
    struct proctor_monitor *m = calloc(1, sizeof *m); /* large: mapped as a rule, not cleared */
    if (!m || pr_config_init(&m->config) < 0) {
        free(m);
        return pr_error(err, ENOMEM, "out of memory");
    }
    m->owner = getpid();
    pr_handover_init(&m->handover);
    m->facts = (struct pr_facts){.way = WAY_ATTACH, .exit_code = -1, .exit_signal = -1};
    *ret_monitor = m;
    return 0;
}

void proctor_monitor_free(struct proctor_monitor *m)
{
    if (!m)
        return;
    if (m->owner != getpid()) {
        /* The thread that samples was copied in the middle of whatever it did: what is its own
         * cannot be freed. */
        if (m->prepared && !m->started)
            pr_session_abandon(&m->session);
        pr_own_sinks_done(m, true);
    } else {
        proctor_monitor_stop(m, NULL);
        if (m->prepared)
            pr_session_done(&m->session);
        pr_handover_done(&m->handover);
        if (m->session.stuck)
            return; /* its writer may still come back */
        pr_own_sinks_done(m, false);
    }
    pr_config_done(&m->config);
    pr_buf_done(&m->summary);
    pr_buf_done(&m->run_members);
    pr_buf_done(&m->summary_members);
    free(m);
}

/* Whom it is about; said at once where there is no such thing. */
static int watch(struct proctor_monitor *m, const struct pr_target_setting *setting,
                 struct proctor_error *err)
{
    struct pr_host host;
    struct pr_target *target;
    int r = pr_monitor_check_caller(m, err);
    if (r == 0 && m->prepared)
        r = pr_error(err, EBUSY, "the monitor has begun already");
    if (r == 0)
        r = pr_host_open(&host, m->config.root, err);
    if (r < 0)
        return r;
    r = pr_target_new(setting, &host, &target, err);
    if (r == 0)
        target->ops->free(target, true);
    pr_host_close(&host);
    if (r < 0)
        return r;
    m->target = *setting;
    m->config.machine = setting->kind == TARGET_SYSTEM;
    m->watching = true;
    return 0;
}

int proctor_monitor_watch_pid(struct proctor_monitor *m, pid_t pid, unsigned flags,
                              struct proctor_error *err)
{
    struct pr_target_setting setting = {.kind = TARGET_TREE, .root = pid};
    int r = watch(m, &setting, err);
    if (r == 0)
        m->config.no_children |= (flags & PROCTOR_NO_CHILDREN) != 0;
    return r;
}

int proctor_monitor_watch_group(struct proctor_monitor *m, pid_t pgid, struct proctor_error *err)
{
    struct pr_target_setting setting = {.kind = TARGET_GROUP, .root = pgid};
    return watch(m, &setting, err);
}

int proctor_monitor_watch_cgroup(struct proctor_monitor *m, const char *path,
                                 struct proctor_error *err)
{
    struct pr_target_setting setting = {.kind = TARGET_CGROUP, .cgroup = path};
    int r = *path ? watch(m, &setting, err) : pr_error(err, EINVAL, "the cgroup has no name");
    if (r < 0)
        return r;
    m->watching = false; /* until its name is kept, too */
    r = pr_config_set(&m->config, OPTION_CGROUP, path, ORIGIN_OPTION, "cgroup", err);
    m->target.cgroup = m->config.cgroup;
    m->watching = r == 0;
    return r;
}

int pr_monitor_watch_matches(struct proctor_monitor *m, struct proctor_error *err)
{
    struct pr_target_setting setting = {.kind = TARGET_MATCH};
    return watch(m, &setting, err);
}

int proctor_monitor_watch_match(struct proctor_monitor *m, const char *rule,
                                struct proctor_error *err)
{
    int r = proctor_monitor_set(m, "match", rule, err);
    return r < 0 ? r : pr_monitor_watch_matches(m, err);
}

int proctor_monitor_watch_system(struct proctor_monitor *m, struct proctor_error *err)
{
    struct pr_target_setting setting = {.kind = TARGET_SYSTEM};
    return watch(m, &setting, err);
}

int proctor_monitor_set(struct proctor_monitor *m, const char *option, const char *value,
                        struct proctor_error *err)
{
    int r = pr_monitor_check_caller(m, err);
    if (r < 0)
        return r;
    if (m->prepared)
        return pr_error(err, EBUSY, "'%s' cannot be set any more: the monitor has begun", option);
    enum pr_option_id id = pr_option_find(option);
    if (id == OPTION_COUNT || !(pr_options[id].commands & CMD_ATTACH))
        return pr_error(err, EINVAL, "there is no option '%s'", option);
    if (id == OPTION_GROUP || id == OPTION_CGROUP)
        return pr_error(err, EINVAL, "'%s' is no setting: call proctor_monitor_watch_%s", option,
                        option);
    return pr_config_set(&m->config, id, value, ORIGIN_OPTION, option, err);
}

int proctor_monitor_on_sample(struct proctor_monitor *m, proctor_sample_fn *fn, void *data)
{
    int r = pr_monitor_check_caller(m, NULL);
    if (r < 0 || m->prepared)
        return r < 0 ? r : -EBUSY;
    m->on_sample = fn;
    m->on_sample_data = data;
    return 0;
}

/* Whoever samples: a call from here would begin another sample in this one, or wait for itself. */
static void call_back(const struct proctor_snapshot *s, void *data)
{
    struct proctor_monitor *m = data;
    m->calling_back = gettid();
    m->on_sample(s, m->on_sample_data);
    m->calling_back = 0;
}

static const char *introduction(void *data)
{
    struct proctor_monitor *m = data;
    pr_summary_run_members(&m->run_members, &m->session, &m->facts);
    return pr_buf_text(&m->run_members);
}

static const char *summarize(void *data)
{
    struct proctor_monitor *m = data;
    m->session.job.exit_code = m->facts.exit_code;
    m->session.job.exit_signal = m->facts.exit_signal;
    pr_summary_members(&m->summary_members, &m->session, &m->facts);
    return pr_buf_text(&m->summary_members);
}

static enum pr_way way_of(const struct pr_target_setting *target)
{
    static const enum pr_way ways[] = {[TARGET_TREE] = WAY_ATTACH,
                                       [TARGET_GROUP] = WAY_ATTACH,
                                       [TARGET_CGROUP] = WAY_ATTACH,
                                       [TARGET_MATCH] = WAY_MATCH,
                                       [TARGET_SYSTEM] = WAY_SYSTEM};
    if (target->kind == TARGET_SYSTEM && target->everybody)
        return WAY_EVERYBODY;
    return target->alone ? WAY_ATTACH_ALONE : ways[target->kind];
}

/* What is watched, in words; a tree has a command. */
static void describe(struct proctor_monitor *m)
{
    char *text = m->facts.target;
    const size_t size = sizeof m->facts.target;
    const struct pr_target_setting *target = &m->target;
    if (target->kind == TARGET_GROUP)
        snprintf(text, size, "group %d", (int)target->root);
    else if (target->kind == TARGET_CGROUP)
        snprintf(text, size, "cgroup %s", target->cgroup);
    else if (target->kind == TARGET_MATCH)
        snprintf(text, size, "match %s", m->config.text[OPTION_MATCH]);
    else if (target->kind == TARGET_SYSTEM)
        snprintf(text, size, "machine");
}

/* For sinks that say more of a job than its values. A job that we start stays in our group. */
static void introduce(struct proctor_monitor *m)
{
    const struct pr_target_setting *target = &m->target;
    bool tree = target->kind == TARGET_TREE, group = target->kind == TARGET_GROUP;
    pid_t pgid = group ? target->root : !tree ? getpgrp() : 0;
    struct pr_session *s = &m->session;
    if (tree && pr_config_is_told(&m->config))
        pr_directory_read(&s->host, target->root, m->facts.cwd, sizeof m->facts.cwd);
    if (tree && !s->host.foreign)
        pgid = getpgid(target->root);
    s->job = (struct pr_sink_job){.argv = m->facts.argv,
                                  .pid = tree ? target->root : 0,
                                  .group = pgid,
                                  .recorder = getpid(),
                                  .no_gpu = pr_tick_gpu_none(s),
                                  .exit_code = -1,
                                  .exit_signal = -1};
}

static int prepare(struct proctor_monitor *m, struct proctor_error *err)
{
    if (!m->watching)
        return pr_error(err, EINVAL, "the monitor watches nothing: name a process first");
    if (m->facts.way >= WAY_ATTACH && m->config.origin[OPTION_EXACT] == ORIGIN_OPTION &&
        strcmp(m->config.exact, "auto") != 0 && strcmp(m->config.exact, "none") != 0)
        return pr_error(err, EINVAL,
                        "exact: '%s' has to be there before the job: it is for `proctor run` alone",
                        m->config.exact);
    m->target.alone = m->config.no_children && m->target.kind == TARGET_TREE;
    m->target.wait_tree = m->config.wait_tree;
    m->target.everybody = m->config.processes;
    if (m->facts.way >= WAY_ATTACH)
        m->facts.way = way_of(&m->target);
    describe(m);
    m->prepared = true;
    if (m->host) {
        m->session.host = *m->host;
        m->session.host.lent = true;
    }
    int r = pr_session_init(&m->session, &m->config, err);
    m->session.inside = m->outside ? 0 : m->owner;
    m->session.events.say = m->say;
    if (m->hold_limit)
        m->session.host.hold_limit = m->hold_limit;
    m->session.on_sample = m->on_sample ? call_back : NULL;
    m->session.on_sample_data = m;
    /* Before any thread starts, and of a machine that is real. */
    if (r == 0 && m->outside && m->session.host.held && (m->session.select.reads & READ_SPACE))
        m->session.machine.space_helper = pr_space_helper_start(&m->session.host);
    if (r == 0)
        r = pr_session_watch(&m->session, &m->target, err);
    if (r == 0) {
        introduce(m);
        m->session.introduce = introduction;
        m->session.summarize = summarize;
        m->session.words_data = m;
        pr_own_sinks_lend(m);
        r = pr_session_open(&m->session, err);
    }
    return r < 0 ? r : pr_monitor_publish(m, err);
}

int pr_monitor_prepare(struct proctor_monitor *m, struct proctor_error *err)
{
    struct proctor_error ignored;
    if (m->failure.code) /* it will not be better the second time */
        return pr_error(err, m->failure.code, "%s", m->failure.message);
    err = err ? err : &ignored;
    int r = prepare(m, err);
    if (r < 0 && m->prepared)
        m->failure = *err;
    return r;
}

/* --- the sampling thread ---------------------------------------------------------------------- */

int pr_monitor_time_left(const struct proctor_monitor *m)
{
    if (m->config.duration <= 0)
        return -1;
    double left = m->config.duration - pr_session_elapsed(&m->session, pr_clock_boot());
    return left <= 0 ? 0 : left > 1e6 ? 1000000000 : (int)(left * 1000) + 1;
}

/* ns to the next tick, or to the end where that comes first. */
static int64_t wait_for(const struct proctor_monitor *m)
{
    int64_t tick = m->session.next - pr_clock_boot();
    int left = pr_monitor_time_left(m);
    return left >= 0 && left * NS_PER_MS < tick ? left * NS_PER_MS : tick;
}

/* Until the target or the time is over, or stop() wants it; false for the last. */
static bool sample_until_over(struct proctor_monitor *m)
{
    struct pr_session *s = &m->session;
    pr_session_tick(s);
    while (!pr_session_over(s) && pr_monitor_time_left(m) != 0) {
        bool asked = pr_handover_wait(&m->handover, wait_for(m));
        if (pr_session_due(s))
            pr_session_tick(s);
        if (asked && !pr_handover_serve(&m->handover, s))
            return false;
    }
    return true;
}

/* Ends the record by itself where the target or the time does, so that no idle time is in it. */
static void *sampler(void *data)
{
    struct proctor_monitor *m = data;
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK);
    m->session.own_thread = true;
    m->session.own_cpu_began = 0;
    bool over = sample_until_over(m);
    pr_handover_close(&m->handover);
    if (over) /* else stop() does it */
        pr_session_end(&m->session);
    else
        m->session.own_cpu += pr_clock_thread_cpu() - m->session.own_cpu_began;
    m->session.own_thread = false;
    return NULL;
}

int pr_monitor_begin(struct proctor_monitor *m, struct proctor_error *err)
{
    int r = m->prepared && !m->failure.code ? 0 : pr_monitor_prepare(m, err);
    if (r < 0 || m->session.begun)
        return r;
    r = pr_session_begin(&m->session);
    return r < 0 ? pr_error(err, -r, "cannot make a timer: %s", strerror(-r)) : 0;
}

int proctor_monitor_start(struct proctor_monitor *m, struct proctor_error *err)
{
    sigset_t all, old;
    int r = pr_monitor_check_caller(m, err);
    if (r < 0)
        return r;
    if (m->started || m->stopped)
        return pr_error(err, EBUSY, "the monitor has been started already");
    r = pr_monitor_begin(m, err);
    if (r < 0)
        return r;
    pr_handover_open(&m->handover); /* who calls before the thread is there waits for it */
    m->session.own_threads++;
    pr_session_arm(&m->session); /* after a collect the schedule counts from here */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&m->thread, NULL, sampler, m);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r != 0) {
        pr_handover_close(&m->handover);
        m->session.own_threads--;
        return pr_error(err, r, "cannot start a thread: %s", strerror(r));
    }
    m->started = true;
    return 0;
}

int proctor_monitor_collect(struct proctor_monitor *m, struct proctor_error *err)
{
    int r = pr_monitor_check_caller(m, err);
    if (r < 0)
        return r;
    if (m->started || m->stopped)
        return pr_error(err, EBUSY, "the monitor samples by itself, or has stopped");
    r = pr_monitor_begin(m, err);
    if (r == 0)
        pr_session_tick(&m->session);
    return r;
}

const struct proctor_snapshot *proctor_monitor_latest(struct proctor_monitor *m)
{
    bool mine = pr_monitor_check_caller(m, NULL) == 0 && !m->started;
    return mine && m->session.begun && m->session.now.time ? &m->session.now : NULL;
}

int proctor_monitor_stop(struct proctor_monitor *m, struct proctor_error *err)
{
    int r = pr_monitor_check_caller(m, err);
    if (r < 0 || m->stopped)
        return r;
    m->stopped = true;
    if (m->started) {
        pr_handover_stop(&m->handover);
        pthread_join(m->thread, NULL);
        m->session.own_threads--;
    }
    if (m->session.begun)
        pr_session_end(&m->session);
    pr_monitor_publish_end(m);
    return 0;
}

/* --- results ---------------------------------------------------------------------------------- */

static int result(struct proctor_monitor *m, const char *key, double *ret,
                  double (*get)(const struct pr_stats *, enum pr_metric_id))
{
    enum pr_metric_id id = pr_metric_find(key);
    if (m->owner != getpid())
        return -ECHILD;
    if (id == METRIC_NONE)
        return -ENOENT;
    double v = m->stopped && m->session.begun ? get(&m->session.stats, id) : NAN;
    if (isnan(v))
        return -ENODATA;
    *ret = v;
    return 0;
}

int proctor_monitor_total(struct proctor_monitor *m, const char *key, double *ret)
{
    return result(m, key, ret, pr_stats_total);
}

int proctor_monitor_peak(struct proctor_monitor *m, const char *key, double *ret)
{
    return result(m, key, ret, pr_stats_peak);
}

const char *proctor_monitor_summary_json(struct proctor_monitor *m)
{
    if (m->owner != getpid() || !m->stopped || !m->session.begun)
        return NULL;
    pr_buf_reset(&m->summary);
    pr_summary_json(&m->summary, &m->session, &m->facts);
    return m->summary.failed ? NULL : pr_buf_text(&m->summary);
}
