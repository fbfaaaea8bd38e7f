/* SPDX-License-Identifier: Apache-2.0 */
#include "core/queue.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "util/clock.h"
#include "util/wait.h"

#define RING       64
#define NOTES_WAIT (2 * NS_PER_S / 1000) /* so that notes that come fast go together */
#define RING_BYTES (32 * 1024 * 1024)    /* for members, at the most */

struct pr_queue {
    pthread_t thread;
    clockid_t cpu_clock;
    struct pr_events *events;
    struct pr_sink **sinks; /* the writer's */
    size_t sink_count;
    pthread_mutex_t lock; /* guards head, tail, ending, ended, nudged */
    pthread_cond_t changed;
    unsigned head, tail; /* pushed and written so far; slots in between belong to the writer */
    bool ending, ended, nudged;
    const char *summary;   /* borrowed; set before ending is, NULL for none */
    unsigned long dropped; /* this and the next are the sampler's */
    size_t room;           /* members that the slots have been made ready for; guarded as head is */
    size_t device_room;    /* the same of devices */
    size_t match_room;     /* and of names of --match */
    unsigned size;         /* slots in use; guarded as head is */
    int64_t opening;       /* guarded as head is */
    struct proctor_snapshot ring[RING];
};

static void write_one(struct pr_queue *q, const struct proctor_snapshot *snapshot)
{
    for (size_t i = 0; i < q->sink_count; i++)
        q->sinks[i]->ops->write(q->sinks[i], snapshot);
}

/* Called and returns with the lock held. */
static void write_notes(struct pr_queue *q)
{
    const struct timespec wait = {.tv_nsec = NOTES_WAIT};
    q->nudged = false;
    pthread_mutex_unlock(&q->lock);
    nanosleep(&wait, NULL);
    for (size_t i = 0; i < q->sink_count; i++)
        if (q->sinks[i]->ops->notes)
            q->sinks[i]->ops->notes(q->sinks[i]);
    pthread_mutex_lock(&q->lock);
}

static void *writer(void *data)
{
    struct pr_queue *q = data;
    pthread_mutex_lock(&q->lock);
    while (!q->ending || q->tail != q->head) {
        if (q->tail == q->head) {
            if (q->nudged)
                write_notes(q);
            else
                pthread_cond_wait(&q->changed, &q->lock);
            continue;
        }
        struct proctor_snapshot *snapshot = &q->ring[q->tail % q->size];
        pthread_mutex_unlock(&q->lock);
        write_one(q, snapshot);
        pthread_mutex_lock(&q->lock);
        if (snapshot->member_cap > q->room) /* grown on its own: it would not fit into all slots */
            pr_snapshot_done(snapshot);
        if (!q->opening)
            q->opening = pr_clock_thread_cpu();
        q->tail++;
    }
    pthread_mutex_unlock(&q->lock);
    for (size_t i = 0; i < q->sink_count; i++) {
        if (q->summary && q->sinks[i]->ops->summary)
            q->sinks[i]->ops->summary(q->sinks[i], q->summary);
        q->sinks[i]->ops->close(q->sinks[i]);
    }
    pthread_mutex_lock(&q->lock);
    q->ended = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* Signals are the business of whoever owns the process, never of this thread. */
static int start_thread(struct pr_queue *q)
{
    sigset_t all, old;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&q->thread, &attr, writer, q);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return -r;
}

struct pr_queue *pr_queue_new(struct pr_sink **sinks, size_t count, struct pr_events *events)
{
    struct pr_queue *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    pr_wait_init(&q->lock, &q->changed);
    q->sinks = sinks;
    q->sink_count = count;
    q->size = RING;
    q->events = events;
    if (start_thread(q) < 0) {
        free(q);
        return NULL;
    }
    pthread_getcpuclockid(q->thread, &q->cpu_clock);
    return q;
}

/* How many slots, so that members of all of them stay within RING_BYTES. */
static unsigned slots_for(size_t members, size_t devices)
{
    size_t each = members * sizeof(struct pr_member) + devices * sizeof(struct pr_device);
    size_t fit = RING_BYTES / (each + 1);
    return fit >= RING ? RING : fit < 4 ? 4 : (unsigned)fit;
}

/* Makes all slots ready for as many members as it has, so that the ring is warm at once; only while
 * the writer has nothing to do, for the slots are renumbered. */
static void make_room(struct pr_queue *q, const struct proctor_snapshot *snapshot)
{
    size_t members = snapshot->member_cap, devices = snapshot->device_cap;
    if (q->head != q->tail)
        return;
    for (unsigned i = 0; i < RING && snapshot->match_count > q->match_room; i++)
        pr_snapshot_reserve_matches(&q->ring[i], snapshot->match_count);
    q->match_room = snapshot->match_count;
    for (unsigned i = 0; i < RING && devices > q->device_room; i++)
        pr_snapshot_reserve(&q->ring[i], 0, devices);
    q->device_room = devices > q->device_room ? devices : q->device_room;
    if (members <= q->room)
        return;
    q->room = members;
    q->size = slots_for(members, q->device_room);
    q->head = q->tail = 0;
    for (unsigned i = 0; i < RING; i++) {
        if (i < q->size)
            pr_snapshot_reserve(&q->ring[i], members, q->device_room);
        else
            pr_snapshot_done(&q->ring[i]);
    }
}

void pr_queue_push(struct pr_queue *q, const struct proctor_snapshot *snapshot)
{
    pthread_mutex_lock(&q->lock);
    make_room(q, snapshot);
    unsigned slots = slots_for(snapshot->member_count, snapshot->device_count);
    bool full = q->head - q->tail >= (slots < q->size ? slots : q->size);
    pthread_mutex_unlock(&q->lock);
    if (full) {
        if (!q->dropped++)
            pr_event_problem(q->events, pr_seconds(snapshot->elapsed),
                             "an output is blocked: samples are not written until it moves again");
        return;
    }
    pr_snapshot_copy(&q->ring[q->head % q->size], snapshot);
    pthread_mutex_lock(&q->lock);
    q->head++;
    pthread_mutex_unlock(&q->lock);
    pthread_cond_broadcast(&q->changed); /* whom it wakes up finds the lock free */
}

void pr_queue_nudge(struct pr_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->nudged = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static bool wait_end(struct pr_queue *q, double seconds)
{
    struct timespec until = pr_wait_until((int64_t)(seconds * 1e9));
    pthread_mutex_lock(&q->lock);
    q->ending = true;
    pthread_cond_broadcast(&q->changed);
    int r = 0;
    while (!q->ended && r == 0)
        r = pthread_cond_timedwait(&q->changed, &q->lock, &until);
    bool ended = q->ended;
    pthread_mutex_unlock(&q->lock);
    return ended;
}

void pr_queue_abandon(struct pr_queue *q)
{
    for (size_t i = 0; i < RING; i++)
        pr_snapshot_done(&q->ring[i]);
    free(q->sinks);
    free(q);
}

bool pr_queue_finish(struct pr_queue *q, double seconds, double at)
{
    if (q->dropped)
        pr_event_problem(q->events, at, "%lu samples were not written: an output was blocked",
                         q->dropped);
    if (!wait_end(q, seconds)) {
        pr_event_problem(q->events, at, "an output is blocked: its last samples are lost");
        return false;
    }
    pthread_join(q->thread, NULL);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->changed);
    pr_queue_abandon(q);
    return true;
}

void pr_queue_summary(struct pr_queue *q, const char *members)
{
    q->summary = members;
}

int64_t pr_queue_cpu(struct pr_queue *q)
{
    struct timespec t = {0};
    clock_gettime(q->cpu_clock, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t pr_queue_opening(struct pr_queue *q)
{
    pthread_mutex_lock(&q->lock);
    int64_t opening = q->opening;
    pthread_mutex_unlock(&q->lock);
    return opening;
}
