/* SPDX-License-Identifier: Apache-2.0 */
/* The file is open only while it is read or written, never during a request: its recorder can then
 * close it, and leave one file, whenever it wants. */
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
#include "store/published.h"
#include "store/tail.h"
#include "util/clock.h"

#define BETWEEN      2.0  /* seconds between two requests, while all is well */
#define BETWEEN_MOST 30.0 /* of a server that is slow */
#define BETWEEN_TIMES                                                                              \
    10 /* as long as a request took: it is busy with us for a tenth of its time                    \
        */
#define BACKOFF_MOST 60.0
#define BACKOFF_END  1.0 /* when somebody waits for us */
#define SAY_AFTER    3   /* failures in a row */
#define GRACE        0.5 /* seconds for the thread to come back when its time is over */

struct pr_publisher {
    struct pr_outlet *outlet;
    char *path;
    struct pr_published progress; /* as the file has it, or will: `unsaved` */
    struct pr_tail tail;
    bool begun, described, unsaved;
    bool pending, full;  /* samples are in the outlet; it had no room for all that there were */
    bool done;           /* all is there, and the end */
    unsigned failures;   /* in a row */
    bool told_to_wait;   /* by the server */
    double took;         /* seconds: the last request */
    int final;           /* why it was given up, 0 for not */
    int64_t started;     /* boot time */
    int64_t sent, batch; /* samples: all; in the outlet */
    char why[200];
    bool said;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest; placed is also read by whoever waits */
    pthread_cond_t changed;
    bool tried, placed, ending, called_off, over; /* tried: the server was asked for a place */
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

/* --- the file --------------------------------------------------------------------------------- */

static int open_file(struct pr_publisher *p, struct pr_stored **ret)
{
    struct proctor_error err = {0};
    int code = pr_stored_open(ret, p->path, STORED_CHANGE, &err);
    if (code < 0)
        snprintf(p->why, sizeof p->why, "%.190s", err.message);
    return code;
}

/* What cannot be written now is written the next time: a server that gets something again does not
 * notice. */
static void save(struct pr_publisher *p, const struct pr_stored *r)
{
    if (p->unsaved && pr_published_save(r, &p->progress) == 0)
        p->unsaved = false;
}

static bool take(void *of, int64_t sample, const struct proctor_snapshot *s)
{
    struct pr_publisher *p = of;
    p->full = !p->outlet->ops->add(p->outlet, sample, s);
    p->pending |= !p->full;
    p->batch += !p->full;
    return !p->full;
}

/* A file that cannot be read yet has nothing yet. */
static int read_more(struct pr_publisher *p, bool ending)
{
    struct proctor_error err = {0};
    struct pr_stored *r = NULL;
    int code = open_file(p, &r);
    p->full = false;
    if (code < 0)
        return ending ? code : 0;
    save(p, r);
    if (!p->described && p->progress.sample == 0)
        p->outlet->ops->describe(p->outlet, r);
    p->described = true;
    code = pr_tail_read(&p->tail, r, take, p, &err);
    if (code < 0)
        snprintf(p->why, sizeof p->why, "%.190s", err.message);
    pr_stored_close(r);
    return code == -EBUSY ? -EAGAIN : code;
}

/* --- the server ------------------------------------------------------------------------------- */

static int blame(struct pr_publisher *p, int code)
{
    if (code < 0)
        snprintf(p->why, sizeof p->why, "%s", p->outlet->why);
    return code;
}

static int begin(struct pr_publisher *p)
{
    struct pr_outlet *o = p->outlet;
    int code = blame(p, o->ops->begin(o));
    if (code < 0)
        o->maybe_there = true; /* an answer that we did not hear may have been yes */
    else
        snprintf(p->progress.remote, sizeof p->progress.remote, "%s", o->remote);
    p->progress.owned = o->owned;
    p->begun = p->unsaved = code == 0;
    pthread_mutex_lock(&p->lock);
    p->tried = true;
    p->placed = p->begun;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return code;
}

static int send_pending(struct pr_publisher *p)
{
    int64_t began = pr_clock_boot();
    int code = blame(p, p->outlet->ops->send(p->outlet));
    p->took = pr_seconds(pr_clock_boot() - began);
    if (code < 0)
        return code;
    p->pending = false;
    p->progress.sample = p->tail.sample;
    p->sent += p->batch;
    p->batch = 0;
    p->unsaved = true;
    return 0;
}

static int end(struct pr_publisher *p, bool called_off)
{
    struct pr_stored *r = NULL;
    if (called_off)
        return p->outlet->owned ? blame(p, p->outlet->ops->end(p->outlet, NULL)) : 0;
    int code = open_file(p, &r);
    if (code < 0)
        return code;
    save(p, r);
    bool over = r->state == RUN_ENDED || r->state == RUN_DIED;
    code = over && !p->progress.ended ? blame(p, p->outlet->ops->end(p->outlet, r)) : 0;
    if (code == 0) {
        p->unsaved |= p->progress.ended != over;
        p->progress.ended = over;
        p->done = true;
        save(p, r);
    }
    pr_stored_close(r);
    return code;
}

/* All that there is. ending: nothing more comes. */
static int step(struct pr_publisher *p, bool ending, bool called_off)
{
    int code = p->begun || called_off ? 0 : begin(p);
    while (code == 0 && !called_off) {
        if (!p->pending)
            code = read_more(p, ending);
        if (code < 0 || !p->pending)
            break;
        code = send_pending(p);
        if (code == 0 && !p->full && !ending)
            break;
    }
    return code == 0 && ending ? end(p, called_off) : code;
}

/* --- time ------------------------------------------------------------------------------------- */

static void say_failure(struct pr_publisher *p)
{
    if (p->said || (p->failures < SAY_AFTER && !p->final))
        return;
    p->said = true;
    pthread_mutex_lock(&p->lock);
    if (p->events)
        pr_event_problem(p->events, elapsed(p), "%s: %.120s; %s", p->outlet->ops->kind, p->why,
                         p->final ? "nothing more is sent" : "it is tried again");
    pthread_mutex_unlock(&p->lock);
}

static void say_note(struct pr_publisher *p)
{
    char *note = p->outlet->note;
    pthread_mutex_lock(&p->lock);
    if (p->events && *note) {
        pr_event_note(p->events, elapsed(p), "%s: %.180s", p->outlet->ops->kind, note);
        *note = '\0';
    }
    pthread_mutex_unlock(&p->lock);
}

/* How long until the next attempt; below 0 for none. */
static double delay(struct pr_publisher *p, int code, bool ending)
{
    double asked = p->outlet->answer.retry_after;
    p->told_to_wait = false;
    if (code == 0) {
        p->failures = 0;
        return ending ? -1 : fmin(BETWEEN_MOST, fmax(BETWEEN, p->took * BETWEEN_TIMES));
    }
    p->failures++;
    if (code != -EAGAIN)
        p->final = code;
    say_failure(p);
    if (p->final)
        return -1;
    p->told_to_wait = !isnan(asked);
    double wait = pr_publisher_backoff(p->failures, chance());
    return p->told_to_wait ? asked : ending ? fmin(BACKOFF_END, wait) : wait;
}

static struct timespec moment(double seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ns = now.tv_sec * NS_PER_S + now.tv_nsec + (int64_t)(seconds * (double)NS_PER_S);
    return (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
}

/* Called with the lock held. False where the time is over before that. */
static bool rest(struct pr_publisher *p, double seconds)
{
    struct timespec until = moment(seconds);
    bool ending = p->ending;
    if (seconds < 0 || (ending && pr_clock_boot() + (int64_t)(seconds * 1e9) >= p->deadline))
        return false;
    int64_t at = pr_clock_boot() + (int64_t)(seconds * 1e9);
    while (pthread_cond_timedwait(&p->changed, &p->lock, &until) == 0)
        if (p->ending && !ending && (!p->told_to_wait || at >= p->deadline))
            return !p->told_to_wait; /* now it is urgent */
    return !p->ending || pr_clock_boot() < p->deadline;
}

/* Who gives up still writes down how far he came. */
static void keep_progress(struct pr_publisher *p)
{
    struct pr_stored *r = NULL;
    if (!p->unsaved || p->called_off || open_file(p, &r) < 0)
        return;
    save(p, r);
    pr_stored_close(r);
}

static void *work(void *data)
{
    struct pr_publisher *p = data;
    bool again = true;
    pthread_mutex_lock(&p->lock);
    while (again) {
        bool ending = p->ending, called_off = p->called_off;
        pthread_mutex_unlock(&p->lock);
        int code = step(p, ending, called_off);
        say_note(p);
        double seconds = delay(p, code, ending);
        pthread_mutex_lock(&p->lock);
        again = rest(p, seconds);
    }
    pthread_mutex_unlock(&p->lock);
    keep_progress(p);
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
    pr_tail_done(&p->tail);
    p->outlet->ops->free(p->outlet);
    free(p->path);
    free(p);
}

static struct pr_publisher *publisher_new(struct pr_outlet *o, const char *path)
{
    pthread_condattr_t attributes;
    struct pr_publisher *p = calloc(1, sizeof *p);
    char *copy = strdup(path);
    if (!p || !copy) {
        free(p);
        free(copy);
        o->ops->free(o);
        return NULL;
    }
    p->outlet = o;
    p->path = copy;
    p->started = pr_clock_boot();
    p->deadline = INT64_MAX;
    p->progress = (struct pr_published){.kind = o->ops->kind, .url = o->url};
    snprintf(p->progress.remote, sizeof p->progress.remote, "%s", o->remote);
    snprintf(p->progress.prefix, sizeof p->progress.prefix, "%s", o->prefix);
    snprintf(p->progress.node, sizeof p->progress.node, "%s", o->node);
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return p;
}

int pr_publisher_start(struct pr_publisher **ret, struct pr_outlet *o, const char *path,
                       struct pr_events *events, struct proctor_error *err)
{
    sigset_t all, old;
    struct pr_publisher *p = publisher_new(o, path);
    if (!p)
        return pr_error(err, ENOMEM, "out of memory");
    p->events = events;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&p->thread, NULL, work, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code) {
        publisher_free(p);
        return pr_error(err, code, "cannot start a thread: %s", strerror(code));
    }
    *ret = p;
    return 0;
}

const char *pr_publisher_await(struct pr_publisher *p, double seconds)
{
    struct timespec until = moment(seconds);
    pthread_mutex_lock(&p->lock);
    while (!p->tried && pthread_cond_timedwait(&p->changed, &p->lock, &until) == 0)
        ;
    bool placed = p->placed;
    pthread_mutex_unlock(&p->lock);
    return placed ? p->progress.remote : NULL;
}

/* What the record has and the server has not. */
static int64_t count_left(struct pr_publisher *p)
{
    struct pr_stored *r = NULL;
    int64_t left = open_file(p, &r) < 0 ? -1 : pr_published_left(r, p->progress.sample);
    pr_stored_close(r);
    return left;
}

static void say_left(struct pr_publisher *p)
{
    char why[sizeof p->why];
    snprintf(why, sizeof why, "%.80s", p->why);
    int64_t left = count_left(p);
    if (left < 0)
        pr_event_problem(p->events, elapsed(p), "%s: nothing could be sent: %.120s",
                         p->outlet->ops->kind, p->why);
    else
        pr_event_problem(p->events, elapsed(p),
                         "%s: %lld samples%s are not sent: %s; `proctor push` sends them",
                         p->outlet->ops->kind, (long long)left, left ? "" : ", but the end,", why);
}

void pr_publisher_finish(struct pr_publisher *p, double seconds, bool called_off)
{
    if (!p)
        return;
    struct timespec until = moment(seconds + GRACE);
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    p->called_off = called_off;
    p->deadline = pr_clock_boot() + (int64_t)(seconds * 1e9);
    pr_http_until(p->outlet->http, p->deadline);
    pthread_cond_broadcast(&p->changed);
    while (!p->over && pthread_cond_timedwait(&p->changed, &p->lock, &until) == 0)
        ;
    bool over = p->over;
    if (!over) { /* it may still come back to what is here */
        pr_event_problem(p->events, elapsed(p),
                         "%s: it hangs; `proctor push` sends what is missing",
                         p->outlet->ops->kind);
        p->events = NULL;
        left_behind = true;
        pthread_detach(p->thread);
    }
    pthread_mutex_unlock(&p->lock);
    if (!over)
        return;
    pthread_join(p->thread, NULL);
    if (!p->done && !called_off)
        say_left(p);
    publisher_free(p);
}

/* --- afterwards ------------------------------------------------------------------------------- */

/* Where it was left off. */
static int resume(struct pr_publisher *p, struct proctor_error *err)
{
    struct pr_stored *r = NULL;
    int code = pr_stored_open(&r, p->path, STORED_CHANGE, err);
    if (code < 0)
        return code;
    code = pr_published_find(r, &p->progress);
    if (code < 0)
        pr_stored_failure(r, code, err);
    if (code == 1) {
        struct pr_outlet *o = p->outlet;
        snprintf(o->remote, sizeof o->remote, "%s", p->progress.remote);
        snprintf(o->prefix, sizeof o->prefix, "%s", p->progress.prefix);
        snprintf(o->node, sizeof o->node, "%s", p->progress.node);
        o->owned = p->progress.owned;
        p->tail.sample = p->progress.sample;
    }
    p->outlet->maybe_there = true;
    pr_stored_close(r);
    return code < 0 ? code : 0;
}

int pr_publisher_push(struct pr_outlet *o, const char *path, double patience, struct pr_push *ret,
                      struct proctor_error *err)
{
    struct pr_publisher *p = publisher_new(o, path);
    if (!p)
        return pr_error(err, ENOMEM, "out of memory");
    int code = resume(p, err);
    int64_t before = -1, until = 0;
    while (code == 0 && !p->done && !p->final) {
        if (p->sent > before)
            until = pr_clock_boot() + (int64_t)(patience * 1e9);
        before = p->sent;
        double seconds = delay(p, step(p, true, false), true);
        if (seconds < 0 || pr_clock_boot() + (int64_t)(seconds * 1e9) >= until)
            break;
        struct timespec pause = {(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)};
        nanosleep(&pause, NULL);
    }
    *ret = (struct pr_push){.samples = p->sent, .ended = p->progress.ended};
    snprintf(ret->remote, sizeof ret->remote, "%s", p->progress.remote);
    snprintf(ret->note, sizeof ret->note, "%s", o->note);
    if (code == 0) {
        keep_progress(p);
        bool done = p->done;
        code = done ? 0 : p->final ? p->final : -EAGAIN;
        if (code < 0)
            pr_error(err, -code, "%s: %s", p->outlet->ops->kind, p->why);
        ret->left = count_left(p);
    }
    publisher_free(p);
    return code;
}
