/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/exact.h"
#include "core/limits.h"
#include "core/net.h"
#include "core/self.h"
#include "core/space.h"
#include "core/tick.h"
#include "util/clock.h"
#include "util/httpd.h"

#define STRETCH_AFTER 4 /* samples, between two looks at the budget */
#define STRETCH_MOST  (60 * NS_PER_S)
#define HELPER_AGAIN  (5 * NS_PER_S)
#define RECORD_FDS    4   /* of a run file, at the most */
#define PUBLISHER_FDS 8   /* of one that sends it to a server */
#define HELPER_WAIT   500 /* milliseconds: nobody likes to wait for a summary */
#define OUTPUTS_LEAST 1.0 /* seconds for what is written on this machine */

/* --- setting up ------------------------------------------------------------------------------- */

void pr_session_name(char *text, size_t size)
{
    char when[32];
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
        random = (uint32_t)pr_clock_boot() ^ (uint32_t)getpid() << 16;
    pr_clock_compact(pr_clock_wall(), when, sizeof when);
    snprintf(text, size, "%s-%08x", when, random);
}

/* *s is all zero, but for a host that was lent: its pages are touched as they are used. */
int pr_session_init(struct pr_session *s, const struct pr_config *config, struct proctor_error *err)
{
    s->config = config;
    s->timer = -1;
    if (!s->host.lent || strcmp(config->root, "/") != 0)
        s->host = (struct pr_host){.root = -1, .proc = -1};
    s->select = pr_select_of(config);
    pr_events_init(&s->events);
    pr_stats_init(&s->stats);
    if (pr_config_is_told(config)) /* the lines at the end have none */
        pr_stats_want_quantiles(&s->stats, METRIC_COUNT);
    s->stats.machine = config->machine;
    pr_phases_init(&s->phases, &s->select, &s->limits, config->machine);
    pr_values_none(s->totals_before, PROC_METRICS);
    pr_values_none(s->high, METRIC_COUNT);
    pr_session_name(s->own_id, sizeof s->own_id);
    s->run_id = config->run_id ? config->run_id : s->own_id;
    const char *parent = getenv("PROCTOR_RUN_ID");
    snprintf(s->parent, sizeof s->parent, "%s", parent ? parent : "");
    pr_machine_init(&s->machine, &s->host, s->select.reads);
    int r = pr_matches_init(&s->matches, &config->match, err);
    s->set.with_mean = config->average > 1;
    s->set.with_names = s->matches.count > 0;
    return r < 0 || s->host.lent ? r : pr_host_open(&s->host, config->root, err);
}

/* Of the cgroup that is watched, or that the job's first process is in. Programs by name are
 * anywhere: what we may use ourselves is what can be known. */
static void read_limits(struct pr_session *s)
{
    bool by_name = s->watched.kind == TARGET_MATCH && !s->host.foreign;
    if (s->watched.cgroup)
        pr_limits_read_cgroup(&s->host, s->watched.cgroup, &s->limits);
    else
        pr_limits_read(&s->host, by_name ? getpid() : s->machine.of, &s->limits);
}

static void set_limits(struct pr_session *s)
{
    const double option[LIMIT_COUNT] = {
        [LIMIT_CPU] = s->config->cpu_total, [LIMIT_MEMORY] = s->config->memory_total};
    static const char *const names[LIMIT_COUNT] = {"--cpu-total", "--memory-total"};
    read_limits(s);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (option[i] <= 0)
            continue;
        s->limits.total[i] = option[i];
        snprintf(s->limits.source[i], sizeof s->limits.source[i], "%s", names[i]);
    }
    s->stats.limits = &s->limits;
    for (size_t i = 0; i < s->matches.count; i++)
        s->matches.items[i].stats.limits = &s->limits;
}

int pr_session_watch(struct pr_session *s, const struct pr_target_setting *setting,
                     struct proctor_error *err)
{
    struct pr_target *target;
    s->watched = *setting;
    s->watched.matches = &s->matches;
    int r = pr_target_new(&s->watched, &s->host, &target, err);
    if (r < 0)
        return r;
    if (s->target)
        s->target->ops->free(s->target, true);
    s->target = target;
    s->reaping = setting->adopter != 0;
    pr_ledger_init(&s->ledger, setting->adopter);
    s->ledger.own_only = target->ops->own_only || setting->alone;
    s->machine.of = setting->kind == TARGET_TREE ? setting->root : 0;
    s->machine.cgroup = setting->cgroup;
    set_limits(s);
    return 0;
}

static int arm(struct pr_session *s, int64_t from)
{
    s->next = from + s->step;
    if (s->timer < 0)
        return 0;
    struct itimerspec when = {.it_interval = {s->step / NS_PER_S, s->step % NS_PER_S},
                              .it_value = {s->next / NS_PER_S, s->next % NS_PER_S}};
    return timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &when, NULL) < 0 ? -errno : 0;
}

int pr_session_arm(struct pr_session *s)
{
    return arm(s, pr_clock_boot());
}

/* Inside somebody else's process all that we hold is at most a quarter of what it may. */
static void share_descriptors(struct pr_session *s)
{
    s->own_fds += 2 + s->target->files + s->energy.zones; /* root, proc */
    s->own_fds += s->net ? pr_net_descriptors(s->net) : 0;
    int record = s->record_fds ? RECORD_FDS : 0;
    record += (int)s->config->prometheus.count * HTTPD_FILES;
    record += ((s->config->mlflow != NULL) + (s->config->otlp != NULL)) * PUBLISHER_FDS;
    int left = s->host.hold_limit - s->own_fds - record - 1; /* open just now */
    if (s->inside)
        s->host.hold_limit = left > 0 ? left : 0;
}

int pr_session_begin(struct pr_session *s)
{
    s->step = llround(s->config->interval * 1e9);
    s->start_boot = s->stretched = pr_clock_boot();
    s->start_wall = pr_clock_wall();
    s->begun = true;
    if (s->reaping) /* children of whoever we were before we became proctor */
        pr_self_absorbed_io(s->strange_io);
    if (s->exact &&
        s->exact->ops == &pr_exact_cgroup) /* made for the run: all in it is the run's */
        s->machine.base[METRIC_CPU_CGROUP] = 0;
    pr_oom_open(&s->oom, &s->host, s->machine.of, s->machine.cgroup);
    pr_tick_gpu_start(s);
    share_descriptors(s);
    bool forks = s->select.reads & READ_CPUS;
    s->roll.forks = forks ? -pr_machine_forks(&s->host, s->text, SESSION_TEXT) : NAN;
    if (!s->inside && (s->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) < 0)
        return -errno;
    return arm(s, s->start_boot);
}

/* --- ticking ---------------------------------------------------------------------------------- */

/* How many ticks have become due. */
static uint64_t count_due(const struct pr_session *s, int64_t now)
{
    uint64_t times = 0;
    if (s->timer < 0)
        return now < s->next ? 0 : 1 + (uint64_t)((now - s->next) / s->step);
    return read(s->timer, &times, sizeof times) == sizeof times ? times : 0;
}

bool pr_session_due(struct pr_session *s)
{
    int64_t step = s->step, now = pr_clock_boot();
    uint64_t times = count_due(s, now);
    if (times == 0)
        return false;
    s->missed += times - 1;
    s->next += (int64_t)(times - 1) * step;
    if (now - s->next > step / 10 && now - s->next > NS_PER_MS)
        s->late++;
    s->next += step;
    return true;
}

/* A rate over a sliver of time is noise: CPU times in /proc are up to some tens of milliseconds
 * behind. */
static double rate_time(const struct pr_session *s)
{
    double dt = pr_seconds(s->now.interval);
    /* What the kernel says at the end catches up with all of that at once. */
    bool closing = s->now.last && s->gone;
    return s->now.first || closing || dt < fmin(s->config->interval, 0.1) / 2 ? NAN : dt;
}

static void watch_clock(struct pr_session *s, int64_t now)
{
    int64_t step = (pr_clock_wall() - s->start_wall) - (now - s->start_boot);
    bool stepped = llabs(step) > NS_PER_S / 4;
    if (stepped && !s->clock_stepped)
        pr_event_add(&s->events, EVENT_CLOCK, pr_session_elapsed(s, now), 0,
                     "the wall clock was set by %.3f s; timestamps go on from the start's",
                     pr_seconds(step));
    s->clock_stepped = stepped;
}

static void deliver(struct pr_session *s)
{
    pr_stats_add(&s->stats, &s->now);
    pr_phases_add(&s->phases, &s->now);
    const struct proctor_snapshot *out =
        pr_average_add(&s->average, (int)s->config->average, &s->now, &s->set);
    if (!out)
        return;
    if (s->queue)
        pr_queue_push(s->queue, out);
    if (s->on_sample)
        s->on_sample(out, s->on_sample_data);
}

/* A group has no process that could be asked before it is looked at, and a job may move to another
 * cgroup: the limits are those of where it is. */
static void find_place(struct pr_session *s)
{
    bool asked = s->watched.kind != TARGET_GROUP || s->machine.of;
    for (size_t k = 0; k < s->set.count && !s->machine.of && !asked; k++)
        if (pr_entity_is_here(s->set.items[k]))
            s->machine.of = s->set.items[k]->pid;
    if ((asked || !s->machine.of) && !s->machine.moved)
        return;
    s->oom.left |= s->machine.moved;
    s->machine.moved = false;
    set_limits(s);
}

/* What readings that can wait may use is what the budget leaves after all others: at most what
 * comes together in a second, and debts are forgotten after ten. */
static void earn(struct pr_session *s)
{
    int64_t *const accounts[] = {&s->allowance, &s->machine_allowance};
    double second = s->config->budget * 1e7;
    for (int i = 0; i < 2; i++) {
        double allowance = (double)*accounts[i] + second * pr_seconds(s->now.interval);
        *accounts[i] = llround(fmax(-10 * second, fmin(second, allowance)));
    }
}

/* What the writer has used since this was asked. Opening its outputs is of the start. */
static int64_t written(struct pr_session *s)
{
    int64_t opening = s->queue ? pr_queue_opening(s->queue) : 0, before = s->turns.written;
    s->turns.written = opening ? pr_queue_cpu(s->queue) - opening : 0;
    return s->turns.written - before;
}

static void sample(struct pr_session *s, int64_t now, bool last)
{
    if (!s->own_thread) /* else where the last one ended */
        s->own_cpu_began = pr_clock_thread_cpu();
    s->now.first = s->sampled == 0;
    s->now.last = last;
    s->now.enrolled = s->roll.count;
    s->now.elapsed = now - s->start_boot;
    s->now.time = s->start_wall + s->now.elapsed;
    s->now.interval = now - (s->sampled ? s->sampled : s->start_boot);
    earn(s);
    int64_t allowed = s->allowance;
    s->patient_cost = 0;
    pr_tick_read(s, now, false);
    if (pr_tick_reads_again(s))
        pr_tick_read(s, now, true);
    find_place(s);
    double dt = rate_time(s);
    pr_tick_job(s, dt, last);
    pr_tick_machine(s, now);
    memcpy(s->now.limit, s->limits.total, sizeof s->now.limit);
    if (s->matches.count)
        pr_tick_matches(s, now, dt);
    s->now.member_count = 0;
    if (s->want_members)
        pr_tick_members(s, dt);
    s->sampled = now;
    s->taken++;
    watch_clock(s, now);
    deliver(s);
    pr_tick_finish(s);
    int64_t ended = pr_clock_thread_cpu();
    int64_t cost = ended - s->own_cpu_began + pr_tick_gpu_next(s);
    s->own_cpu_began = ended;
    s->own_cpu += cost;
    if (s->now.first) { /* the first look at everybody is of the start */
        s->first_cpu = s->stretched_cpu = cost;
        cost = s->patient_cost = 0;
    }
    s->allowance = allowed - cost - written(s);
    s->machine_allowance -= cost - s->patient_cost; /* what can wait gives way to the machine */
}

/* Where nobody asked for an interval, it gets longer when the budget would not hold: by then PSS is
 * hardly read any more. */
static void stretch(struct pr_session *s)
{
    int64_t all = s->own_cpu + s->turns.written, cpu = all - s->stretched_cpu;
    int64_t time = s->sampled - s->stretched;
    if (s->config->origin[OPTION_INTERVAL] != ORIGIN_DEFAULT || time < STRETCH_AFTER * s->step)
        return;
    s->stretched = s->sampled;
    s->stretched_cpu = all;
    if ((double)cpu <= (double)time * s->config->budget / 100 || s->step >= STRETCH_MOST)
        return;
    s->step *= 2;
    pr_session_arm(s);
    pr_event_add(&s->events, EVENT_BUDGET, pr_seconds(s->now.elapsed), 0,
                 "the interval is now %.0f s, to keep to the budget of %s", pr_seconds(s->step),
                 s->config->text[OPTION_BUDGET]);
}

void pr_session_tick(struct pr_session *s)
{
    sample(s, pr_clock_boot(), false);
    stretch(s);
}

bool pr_session_over(const struct pr_session *s)
{
    return s->target->ops->over(s->target, &s->set);
}

/* --- ending ----------------------------------------------------------------------------------- */

static void name_left(struct pr_session *s)
{
    s->left = calloc(s->set.count + 1, sizeof *s->left);
    for (size_t k = 0; s->left && k < s->set.count; k++) {
        const struct pr_entity *e = s->set.items[k];
        if (!pr_entity_is_here(e))
            continue;
        struct pr_left *left = &s->left[s->left_count++];
        left->pid = e->pid;
        memcpy(left->comm, e->comm, sizeof left->comm);
    }
}

/* Of what sampling and writing took; starting costs some milliseconds whatever comes. */
static void check_budget(struct pr_session *s, int64_t cpu)
{
    int64_t start = s->first_cpu + (s->queue ? pr_queue_opening(s->queue) : 0);
    double percent = pr_seconds(cpu - start) / s->stats.seconds * 100;
    s->over_budget = s->stats.seconds >= 1 && percent > s->config->budget;
    if (s->over_budget)
        pr_event_add(&s->events, EVENT_BUDGET, s->stats.seconds, 0,
                     "sampling used %.2f %% of one core, more than the budget of %s", percent,
                     s->config->text[OPTION_BUDGET]);
}

/* The space of ZFS pools at the end, where what is known of it is not of a moment ago. */
static void ask_helper(const struct pr_session *s, int64_t now)
{
    int socket = s->machine.space_helper;
    if (socket < 0 || now - s->start_boot < HELPER_AGAIN)
        return;
    pr_space_helper_ask(socket);
    pr_space_helper_wait(socket, HELPER_WAIT);
}

/* Who does not want to wait for a server still wants the end of the record. */
static bool finish_outputs(const struct pr_session *s)
{
    return pr_queue_finish(s->queue, fmax(s->config->flush_timeout, OUTPUTS_LEAST),
                           s->stats.seconds);
}

void pr_session_end(struct pr_session *s)
{
    if (s->ended || !s->begun)
        return;
    s->gone |= pr_session_over(s);
    int64_t now = pr_clock_boot(); /* what we wait for is not of the run */
    ask_helper(s, now);
    pr_tick_gpu_finish(s);
    sample(s, now, true);
    pr_phases_finish(&s->phases, pr_session_elapsed(s, now));
    pr_tick_last(s);
    pr_tick_kills(s);
    s->roll.forks += s->machine.raw[METRIC_SYSTEM_FORKS];
    int64_t cpu = s->own_cpu + (s->queue ? pr_queue_cpu(s->queue) : 0) + s->served.cpu;
    s->self_cpu = s->inside ? cpu : pr_clock_process_cpu();
    s->self_cpu += llround(s->machine.space_cpu * 1e9);
    check_budget(s, cpu);
    if (s->gone)
        name_left(s);
    if (s->queue && s->summarize)
        pr_queue_summary(s->queue, s->summarize(s->words_data));
    if (s->queue) {
        s->stuck = !finish_outputs(s);
        s->queue = NULL;
    }
    s->ended = true;
}

static void free_memory(struct pr_session *s)
{
    pr_entities_done(&s->set);
    pr_snapshot_done(&s->now);
    pr_snapshot_done(&s->average.out);
    pr_snapshot_done(&s->average.kept);
    pr_stats_done(&s->stats);
    if (!s->stuck) { /* the writer may still come back to what is in there */
        pr_matches_done(&s->matches);
        pr_roll_done(&s->roll);
    }
    pr_phases_done(&s->phases, !s->stuck);
    pr_oom_done(&s->oom);
    free(s->left);
    free(s->file);
    s->left = NULL;
    s->file = NULL;
}

void pr_session_done(struct pr_session *s)
{
    for (size_t k = 0; k < s->set.count; k++)
        pr_source_release(&s->host, s->set.items[k]);
    if (s->queue)
        s->stuck = !finish_outputs(s);
    if (s->target)
        s->target->ops->free(s->target, true);
    if (s->timer >= 0)
        close(s->timer);
    pr_energy_close(&s->energy);
    pr_net_close(s->net, true);
    if (s->machine.space_helper >= 0)
        close(s->machine.space_helper);
    pr_gpu_finish(s->machine.gpu);
    if (s->stuck) /* the writer may still come back to the names in there */
        s->machine.gpus = NULL;
    pr_machine_done(&s->machine, true);
    pr_host_close(&s->host);
    free_memory(s);
}

void pr_session_abandon(struct pr_session *s)
{
    if (s->queue)
        pr_queue_abandon(s->queue);
    if (s->target)
        s->target->ops->free(s->target, false);
    pr_machine_done(&s->machine, false);
    pr_net_close(s->net, false);
    free_memory(s);
}
