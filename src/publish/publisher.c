/* SPDX-License-Identifier: Apache-2.0 */
#include "publish/publisher.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/error.h"
#include "publish/sending.h"
#include "util/clock.h"
#include "util/wait.h"

#define BETWEEN      2.0  /* seconds between two requests, while all is well */
#define BETWEEN_MOST 30.0 /* of a server that is slow */
#define BETWEEN_TIMES                                                                              \
    10 /* as long as a request took: it is busy with us for a tenth of its time                    \
        */
#define BACKOFF_MOST 60.0
#define BACKOFF_END  1.0 /* when somebody waits for us */
#define SAY_AFTER    3   /* failures in a row */
#define SAY_WAIT     2   /* to whoever waits for a push */
#define GRACE        0.5 /* seconds for the thread to come back when its time is over */

struct pr_publisher {
    struct pr_sending sending;
    unsigned failures; /* in a row */
    bool told_to_wait; /* by the server */
    int final;         /* why it was given up, 0 for not */
    int64_t started;   /* boot time */
    bool said, remarked;
    struct pr_sink_served *served; /* NULL where nobody counts us */
    int64_t cpu;                   /* ns, as far as it is counted there */
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest; placed is also read by whoever waits */
    pthread_cond_t changed;
    bool tried, placed, ending, called_off, over; /* tried: the server was asked for a place */
    bool hopeless;                                /* it will never give one */
    int64_t deadline;                             /* boot time, once it is ending */
    struct pr_events *events; /* NULL for push, and when nobody listens any more */
};

static atomic_bool left_behind;

bool pr_publisher_left_behind(void)
{
    return left_behind;
}

double pr_publisher_backoff(unsigned failures, double random)
{
    double seconds = failures > 6 ? BACKOFF_MOST : fmin(BACKOFF_MOST, (double)(1U << failures) / 2);
    return seconds * (0.5 + random);
}

static double chance(void)
{
    uint32_t v = 0;
    if (getrandom(&v, sizeof v, GRND_NONBLOCK) != sizeof v)
        v = (uint32_t)pr_clock_boot();
    return (double)v / UINT32_MAX;
}

static double elapsed(const struct pr_publisher *p)
{
    return pr_seconds(pr_clock_boot() - p->started);
}

static const char *kind_of(const struct pr_publisher *p)
{
    return p->sending.outlet->ops->kind;
}

/* All that there is, or the place for it. */
static int go_on(struct pr_publisher *p, bool ending, bool called_off)
{
    struct pr_sending *s = &p->sending;
    if (called_off)
        return pr_sending_call_off(s);
    int code = pr_sending_begin(s);
    pthread_mutex_lock(&p->lock);
    p->tried = true;
    p->placed = s->begun;
    p->hopeless = code < 0 && code != -EAGAIN;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return code < 0 ? code : pr_sending_step(s, ending);
}

/* --- time ------------------------------------------------------------------------------------- */

static void say_failure(struct pr_publisher *p)
{
    if (p->said || (p->failures < SAY_AFTER && !p->final))
        return;
    p->said = true;
    pthread_mutex_lock(&p->lock);
    if (p->events)
        pr_event_problem(p->events, elapsed(p), "%s: %s; %s", kind_of(p), p->sending.why,
                         p->final ? "the rest is left for `proctor push`" : "it is tried again");
    pthread_mutex_unlock(&p->lock);
}

/* What the server would not have, once: how much it was in the end is in the summary. */
static void say_remark(struct pr_publisher *p)
{
    struct pr_outlet *o = p->sending.outlet;
    pthread_mutex_lock(&p->lock);
    if (*o->remark && o->ops->mild && p->events) {
        pr_event_note(p->events, elapsed(p), "%s: %s", kind_of(p), o->remark);
        *o->remark = '\0';
    } else if (*o->remark && !p->remarked && p->events) {
        pr_event_problem(p->events, elapsed(p), "%s: %s", kind_of(p), o->remark);
        p->remarked = true;
    }
    pthread_mutex_unlock(&p->lock);
}

/* How long until the next attempt; below 0 for none. */
static double delay(struct pr_publisher *p, int code, bool ending)
{
    double asked = p->sending.outlet->answer.retry_after;
    p->told_to_wait = false;
    say_remark(p);
    if (code == 0) {
        p->failures = 0;
        return ending ? -1 : fmin(BETWEEN_MOST, fmax(BETWEEN, p->sending.took * BETWEEN_TIMES));
    }
    p->failures++;
    if (code != -EAGAIN)
        p->final = code;
    say_failure(p);
    if (p->final)
        return -1;
    p->told_to_wait = asked > 0; /* "at once" is no answer to how long */
    double wait = pr_publisher_backoff(p->failures, chance());
    return p->told_to_wait ? asked + pr_publisher_backoff(0, chance())
           : ending        ? fmin(BACKOFF_END, wait)
                           : wait;
}

static struct timespec moment(double seconds)
{
    return pr_wait_until((int64_t)(seconds * (double)NS_PER_S));
}

/* Called with the lock held. False where the time is over before that. knew: whoever rests knows
 * already that it is ending; to the others that is urgent, also where it came before they rested.
 */
static bool rest(struct pr_publisher *p, double seconds, bool knew)
{
    struct timespec until = moment(seconds);
    int64_t at = pr_clock_boot() + (int64_t)(seconds * 1e9);
    if (seconds < 0)
        return false;
    do {
        if (p->ending && !knew && !p->told_to_wait)
            return true;
        if (p->ending && at >= p->deadline)
            return false;
    } while (pthread_cond_timedwait(&p->changed, &p->lock, &until) == 0);
    return !p->ending || pr_clock_boot() < p->deadline;
}

/* In a process that is watched from inside. */
static void count(struct pr_publisher *p)
{
    int64_t cpu = pr_clock_thread_cpu();
    if (p->served)
        p->served->cpu += cpu - p->cpu;
    p->cpu = cpu;
}

static void *work(void *data)
{
    struct pr_publisher *p = data;
    bool again = true;
    pthread_mutex_lock(&p->lock);
    while (again) {
        bool ending = p->ending, called_off = p->called_off;
        pthread_mutex_unlock(&p->lock);
        int code = go_on(p, ending, called_off);
        double seconds = delay(p, code, ending);
        count(p);
        pthread_mutex_lock(&p->lock);
        again = rest(p, seconds, ending);
    }
    pthread_mutex_unlock(&p->lock);
    if (!p->called_off)
        pr_sending_keep(&p->sending);
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* --- for the session -------------------------------------------------------------------------- */

static void publisher_free(struct pr_publisher *p)
{
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
    pr_sending_done(&p->sending);
    free(p);
}

static struct pr_publisher *publisher_new(struct pr_outlet *o, const char *path)
{
    struct pr_publisher *p = calloc(1, sizeof *p);
    if (!p)
        o->ops->free(o);
    if (!p || pr_sending_init(&p->sending, o, path) < 0) {
        free(p);
        return NULL;
    }
    p->started = pr_clock_boot();
    p->deadline = INT64_MAX;
    pr_wait_init(&p->lock, &p->changed);
    return p;
}

int pr_publisher_start(struct pr_publisher **ret, struct pr_outlet *o, const char *path,
                       struct pr_events *events, struct pr_sink_served *served,
                       struct proctor_error *err)
{
    sigset_t all, old;
    struct pr_publisher *p = publisher_new(o, path);
    if (!p)
        return pr_error(err, ENOMEM, "out of memory");
    p->events = events;
    p->sending.unsaved = true; /* names that were chosen hold also where nothing comes through */
    p->served = served;
    p->sending.files = served ? &served->files : NULL;
    if (served)
        served->threads += 1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&p->thread, NULL, work, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code) {
        if (served)
            served->threads -= 1;
        publisher_free(p);
        return pr_error(err, code, "cannot start a thread: %s", strerror(code));
    }
    *ret = p;
    return 0;
}

const char *pr_publisher_await(struct pr_publisher *p, double seconds, bool *ret_later)
{
    struct timespec until = moment(seconds);
    pthread_mutex_lock(&p->lock);
    while (!p->tried && pthread_cond_timedwait(&p->changed, &p->lock, &until) == 0)
        ;
    bool placed = p->placed;
    *ret_later = !placed && !p->hopeless;
    pthread_mutex_unlock(&p->lock);
    return placed ? p->sending.progress.remote : NULL;
}

/* The reason, unless it was said already, and what to type. */
static void say_left(struct pr_publisher *p, const struct pr_publishing *at)
{
    bool said = p->said && p->final;
    char run[128];
    bool fits = snprintf(run, sizeof run, " %s", p->sending.path) < (int)sizeof run;
    if (at->left < 0)
        pr_event_problem(p->events, elapsed(p), "%s: nothing could be sent: %s", kind_of(p),
                         at->error);
    else
        pr_event_problem(p->events, elapsed(p),
                         "%s: %lld samples%s are not sent%s%s; `proctor push%s` sends them",
                         kind_of(p), (long long)at->left, at->left ? "" : ", but the end,",
                         said ? "" : ": ", said ? "" : at->error, fits ? run : "");
}

void pr_publisher_hurry(struct pr_publisher *p, double seconds, bool called_off)
{
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    p->called_off = called_off;
    p->deadline = pr_clock_boot() + (int64_t)(seconds * 1e9);
    pr_http_until(p->sending.outlet->http, p->deadline);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* It may still come back to what is here. Called with the lock held. */
static void leave_behind(struct pr_publisher *p, struct pr_publishing *ret)
{
    *ret = (struct pr_publishing){.kind = kind_of(p), .left = -1, .error = "it hangs"};
    snprintf(ret->url, sizeof ret->url, "%s", p->sending.outlet->url);
    pr_event_problem(p->events, elapsed(p), "%s: it hangs; `proctor push` sends what is missing",
                     kind_of(p));
    p->events = NULL;
    left_behind = true;
    pthread_detach(p->thread);
}

bool pr_publisher_finish(struct pr_publisher *p, struct pr_publishing *ret)
{
    pthread_mutex_lock(&p->lock);
    struct timespec until = moment(pr_seconds(p->deadline - pr_clock_boot()) + GRACE);
    while (!p->over && pthread_cond_timedwait(&p->changed, &p->lock, &until) == 0)
        ;
    bool over = p->over;
    if (!over)
        leave_behind(p, ret);
    pthread_mutex_unlock(&p->lock);
    if (!over)
        return false;
    pthread_join(p->thread, NULL);
    if (p->served)
        p->served->threads -= 1;
    pr_sending_tell(&p->sending, ret);
    if (!p->sending.done && !p->called_off)
        say_left(p, ret);
    publisher_free(p);
    return true;
}

/* --- afterwards ------------------------------------------------------------------------------- */

/* Until all is there, or nothing has got on for so long. */
static void push_on(struct pr_publisher *p, double patience, pr_push_wait_fn *waits)
{
    const struct pr_sending *s = &p->sending;
    int64_t before = -1, until = 0;
    while (!s->done && !p->final) {
        if (s->sent > before)
            until = pr_clock_boot() + (int64_t)(patience * 1e9);
        before = s->sent;
        double seconds = delay(p, go_on(p, true, false), true);
        if (seconds < 0 || pr_clock_boot() + (int64_t)(seconds * 1e9) >= until)
            break;
        if (p->failures == SAY_WAIT)
            waits(kind_of(p), s->why, patience);
        struct timespec pause = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
        nanosleep(&pause, NULL);
    }
}

int pr_publisher_push(struct pr_outlet *o, const char *path, double patience, struct pr_push *ret,
                      struct proctor_error *err)
{
    struct pr_publisher *p = publisher_new(o, path);
    if (!p)
        return pr_error(err, ENOMEM, "out of memory");
    int code = pr_sending_resume(&p->sending, err);
    if (code == 0) {
        push_on(p, patience, ret->waits);
        pr_sending_keep(&p->sending);
        code = p->sending.done ? 0 : p->final ? p->final : -EAGAIN;
        if (code < 0)
            pr_error(err, -code, "%s: %s", kind_of(p), p->sending.why);
    }
    pr_sending_tell(&p->sending, &ret->state);
    ret->ended = p->sending.progress.ended;
    snprintf(ret->remark, sizeof ret->remark, "%s", o->remark);
    publisher_free(p);
    return code;
}
