/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that asks the drivers. It reads just before the next tick is due; the tick takes what
 * is there. At the end a thread that does not come back is left behind, and frees everything when
 * it does. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/reader.h"
#include "util/clock.h"
#include "util/wait.h"

#define MS          (NS_PER_S / 1000)
#define READ_LEAST  (90 * MS) /* between two readings: at most about ten a second */
#define LEAD_LEAST  (2 * MS)
#define START_DELAY (20 * MS)  /* a job of a moment does not pay for the loading of a driver */
#define DEMAND      (100 * MS) /* that somebody who asks waits */
#define DEADLINE    NS_PER_S   /* an older reading is none; a call that takes longer is a stall */

struct pr_gpu {
    pthread_t thread;
    struct pr_gpu_setting setting;
    atomic_int refs;      /* the session's and the thread's; whoever is last frees */
    pthread_mutex_t lock; /* guards what follows, and is held for no more than a copy */
    pthread_cond_t changed;
    bool ending, ready, ended, has_out; /* ready: there has been a reading */
    bool told_cut;                      /* there are more members than told */
    int64_t read_began;                 /* boot time, of the last reading */
    int64_t wanted;                     /* boot time at which a reading should be there */
    double budget;
    pid_t told[GPU_MEMBERS];
    size_t told_count, note_count, cost_count;
    struct pr_gpu_round out;
    struct pr_gpu_note note[GPU_NOTES];
    struct pr_gpu_cost cost[GPU_READINGS];
    char reason[160];
    /* The session's own. */
    struct pr_gpu_round taken;
    unsigned long stalls;
    int64_t stalled_call;
    bool stall_said, finished;
    char taken_reason[160];
    /* The thread's own. */
    struct pr_host host;
    struct pr_gpu_reader reader;
    pid_t members[GPU_MEMBERS];
};

static atomic_bool left_behind;

/* --- the thread ------------------------------------------------------------------------------- */

static void publish(struct pr_gpu *g)
{
    struct pr_gpu_reader *r = &g->reader;
    pthread_mutex_lock(&g->lock);
    if (g->has_out)
        pr_gpu_round_merge(&g->out, &r->round);
    else
        pr_gpu_round_copy(&g->out, &r->round);
    g->has_out = g->ready = true;
    g->read_began = r->began;
    pthread_cond_broadcast(&g->changed); /* somebody may have asked for it */
    for (size_t i = 0; i < r->work.note_count && g->note_count < GPU_NOTES; i++)
        g->note[g->note_count++] = r->work.note[i];
    r->work.note_count = 0;
    g->cost_count = r->cost_count;
    memcpy(g->cost, r->cost, sizeof g->cost);
    if (!r->round.card_count)
        memcpy(g->reason, r->work.why, sizeof g->reason);
    pthread_mutex_unlock(&g->lock);
}

static void wait_until(struct pr_gpu *g, int64_t boot)
{
    struct timespec t = pr_wait_until(boot - pr_clock_boot());
    pthread_cond_timedwait(&g->changed, &g->lock, &t);
}

/* Sleeps until it is time to read for the next tick, which *served is to be. False where it is the
 * last time. */
static bool wait_for_turn(struct pr_gpu *g, int64_t *served)
{
    const struct pr_gpu_reader *r = &g->reader;
    pthread_mutex_lock(&g->lock);
    while (!g->ending) {
        int64_t at = g->wanted - 2 * r->took - LEAD_LEAST, now = pr_clock_boot();
        at = at < r->began + READ_LEAST ? r->began + READ_LEAST : at;
        if (g->wanted <= *served || !r->round.card_count)
            pthread_cond_wait(&g->changed, &g->lock);
        else if (at > now)
            wait_until(g, at);
        else
            break;
    }
    bool ending = g->ending;
    *served = g->wanted;
    g->reader.budget = g->budget;
    g->reader.work.member_count = g->told_count;
    g->reader.work.members_cut = g->told_cut;
    memcpy(g->members, g->told, g->told_count * sizeof *g->members);
    pthread_mutex_unlock(&g->lock);
    return !ending;
}

static void release(struct pr_gpu *g)
{
    if (atomic_fetch_sub(&g->refs, 1) > 1)
        return;
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
    free(g);
}

/* False where it is over already. */
static bool wait_for_start(struct pr_gpu *g)
{
    int64_t until = pr_clock_boot() + START_DELAY;
    pthread_mutex_lock(&g->lock);
    while (!g->ending && pr_clock_boot() < until)
        wait_until(g, until);
    bool ending = g->ending;
    pthread_mutex_unlock(&g->lock);
    return !ending;
}

static void read_all(struct pr_gpu *g)
{
    int64_t served = 0;
    pr_gpu_reader_open(&g->reader, &g->host, g->members, g->setting.budget);
    do {
        pr_gpu_reader_read(&g->reader, false);
        publish(g);
    } while (wait_for_turn(g, &served));
    pr_gpu_reader_read(&g->reader, true); /* counters, for the total */
    publish(g);
    pr_gpu_reader_close(&g->reader);
}

static void *run(void *data)
{
    struct pr_gpu *g = data;
    if (wait_for_start(g))
        read_all(g);
    close(g->host.root);
    close(g->host.proc);
    pthread_mutex_lock(&g->lock);
    g->ended = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    release(g);
    return NULL;
}

/* --- the session's side ----------------------------------------------------------------------- */

static int start_thread(struct pr_gpu *g)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&g->thread, NULL, run, g);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -r;
}

int pr_gpu_start(struct pr_gpu **ret, const struct pr_gpu_setting *setting)
{
    struct pr_gpu *g = calloc(1, sizeof *g);
    if (!g)
        return -ENOMEM;
    g->setting = *setting;
    g->host = *setting->host;
    g->host.root = fcntl(setting->host->root, F_DUPFD_CLOEXEC, 0);
    g->host.proc = fcntl(setting->host->proc, F_DUPFD_CLOEXEC, 0);
    atomic_init(&g->refs, 2);
    pr_wait_init(&g->lock, &g->changed);
    int r = g->host.root < 0 || g->host.proc < 0 ? -EMFILE : start_thread(g);
    if (r < 0) {
        close(g->host.root);
        close(g->host.proc);
        free(g);
        return r;
    }
    *ret = g;
    return 0;
}

static void want(struct pr_gpu *g, const struct pr_entities *set, int64_t next)
{
    size_t count = 0;
    g->wanted = next;
    for (size_t k = 0; k < set->count; k++)
        if (pr_entity_is_here(set->items[k]) && count++ < GPU_MEMBERS)
            g->told[count - 1] = set->items[k]->pid;
    g->told_cut = count > GPU_MEMBERS;
    g->told_count = g->told_cut ? GPU_MEMBERS : count;
    pthread_cond_signal(&g->changed);
}

void pr_gpu_tell(struct pr_gpu *g, const struct pr_entities *set, int64_t next, double budget)
{
    if (!g || pthread_mutex_trylock(&g->lock) != 0)
        return;
    g->budget = budget;
    want(g, set, next);
    pthread_mutex_unlock(&g->lock);
}

void pr_gpu_ask(struct pr_gpu *g, const struct pr_entities *set)
{
    int64_t began = g ? atomic_load(&g->reader.call_began) : 0, now = pr_clock_boot();
    if (!g || (began && now - began > DEMAND)) /* it hangs, or is still loading */
        return;
    pthread_mutex_lock(&g->lock);
    if (g->out.card_count && !g->ended && now - g->read_began >= READ_LEAST) {
        want(g, set, now);
        while (g->read_began < now && !g->ended && pr_clock_boot() < now + DEMAND)
            wait_until(g, now + DEMAND);
    }
    pthread_mutex_unlock(&g->lock);
}

/* A call that lasts and lasts: counted each time, said once. */
static void watch_call(struct pr_gpu *g, int64_t now, struct pr_events *events, double at)
{
    int64_t began = atomic_load(&g->reader.call_began);
    if (!began || now - began < DEADLINE || began == g->stalled_call)
        return;
    g->stalled_call = began;
    g->stalls++;
    if (!g->stall_said)
        pr_event_problem(events, at,
                         "the GPU driver has not answered for %.1f s (%s): until it does, values "
                         "of GPUs are absent",
                         pr_seconds(now - began), atomic_load(&g->reader.call_name));
    g->stall_said = true;
}

struct pr_gpu_round *pr_gpu_take(struct pr_gpu *g, int64_t now, struct pr_events *events,
                                 int64_t start)
{
    if (!g)
        return NULL;
    watch_call(g, now, events, pr_seconds(now - start));
    if (pthread_mutex_trylock(&g->lock) != 0)
        return NULL;
    bool fresh = g->has_out;
    if (fresh)
        pr_gpu_round_copy(&g->taken, &g->out);
    g->has_out = false;
    memcpy(g->taken_reason, g->reason, sizeof g->reason);
    for (size_t i = 0; i < g->note_count; i++)
        pr_event_add(events, EVENT_GPU, pr_seconds(g->note[i].at - start), 0, "%s",
                     g->note[i].text);
    g->note_count = 0;
    pthread_mutex_unlock(&g->lock);
    return fresh && now - g->taken.at < DEADLINE ? &g->taken : NULL;
}

/* Until it has ended, as long as there is hope, and anything to gain: where it is still loading,
 * only a process that goes on waits for it. */
static bool wait_for_end(struct pr_gpu *g)
{
    int64_t began = atomic_load(&g->reader.call_began), patience = g->setting.patience * MS;
    int64_t now = pr_clock_boot(), until = began && now - began > patience ? now : now + patience;
    pthread_mutex_lock(&g->lock);
    g->ending = true;
    pthread_cond_broadcast(&g->changed);
    if (began && !g->ready && !g->setting.stays)
        until = now;
    while (!g->ended && pr_clock_boot() < until)
        wait_until(g, until);
    bool ended = g->ended;
    pthread_mutex_unlock(&g->lock);
    return ended;
}

bool pr_gpu_finish(struct pr_gpu *g)
{
    if (!g || g->finished)
        return true;
    g->finished = true;
    if (wait_for_end(g)) {
        pthread_join(g->thread, NULL);
        return true;
    }
    pthread_detach(g->thread);
    atomic_store(&left_behind, true);
    return false;
}

void pr_gpu_free(struct pr_gpu *g, bool forked)
{
    if (!g)
        return;
    if (forked)
        free(g);
    else
        release(g);
}

bool pr_gpu_left_behind(void)
{
    return atomic_load(&left_behind);
}

int pr_gpu_descriptors(const struct pr_gpu *g)
{
    return g ? atomic_load(&g->reader.descriptors) : 0;
}

int64_t pr_gpu_start_cpu(const struct pr_gpu *g)
{
    return g ? atomic_load(&g->reader.start_cpu) : 0;
}

int64_t pr_gpu_cpu(const struct pr_gpu *g)
{
    return g ? atomic_load(&g->reader.cpu) : 0;
}

const char *pr_gpu_reason(const struct pr_gpu *g)
{
    return g && *g->taken_reason ? g->taken_reason : NULL;
}

unsigned long pr_gpu_stalls(const struct pr_gpu *g)
{
    return g ? g->stalls : 0;
}

size_t pr_gpu_costs(struct pr_gpu *g, struct pr_gpu_cost *rows)
{
    if (!g)
        return 0;
    pthread_mutex_lock(&g->lock);
    size_t count = g->cost_count;
    memcpy(rows, g->cost, count * sizeof *rows);
    pthread_mutex_unlock(&g->lock);
    return count;
}
