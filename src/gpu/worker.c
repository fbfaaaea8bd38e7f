/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that asks the drivers. It reads just before the next tick is due; the tick takes what
 * is there. Calls that cost much are made only as often as a part of the budget allows. At the end
 * a thread that does not come back is left behind, and frees everything when it does. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "util/clock.h"

#define MS            (NS_PER_S / 1000)
#define READ_LEAST    (90 * MS) /* between two readings: at most about ten a second */
#define LEAD_LEAST    (2 * MS)
#define CHEAP         (100 * 1000) /* ns of CPU: such a call is always made */
#define LONGEST_PAUSE (10 * NS_PER_S)
#define DEADLINE      NS_PER_S /* a reading that is older is none, and a call that lasts longer hangs \
                                */
#define BUDGET_PART 0.8
#define CALLS_MOST  16

struct call_state {
    int64_t at;
    double cost; /* ns of CPU, a running mean */
    bool never;  /* there is no use in asking again */
};

struct opened {
    const struct pr_gpu_vendor *vendor;
    void *state;
    unsigned first, count; /* its cards */
    size_t cost;           /* where its rows of costs begin */
};

struct pr_gpu {
    pthread_t thread;
    struct pr_gpu_setting setting;
    atomic_int refs; /* the session's and the thread's; whoever is last frees */
    /* What both threads see is guarded by the lock, or atomic. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ending, ended, has_out;
    int64_t wanted; /* boot time at which a reading should be there */
    size_t told_count;
    pid_t told[GPU_MEMBERS];
    struct pr_gpu_round out;
    struct pr_gpu_note note[GPU_NOTES];
    size_t note_count;
    struct pr_gpu_cost cost_out[GPU_READINGS];
    size_t cost_count;
    char reason[160];
    _Atomic int64_t call_began; /* boot time, 0 while no call is under way */
    _Atomic(const char *) call_name;
    _Atomic int64_t cpu, start_cpu;
    /* The session's. */
    struct pr_gpu_round taken;
    unsigned long stalls;
    int64_t stalled_call;
    bool stall_said, finished;
    /* The thread's. */
    struct pr_host host;
    struct pr_gpu_work work;
    struct pr_gpu_round round;
    pid_t members[GPU_MEMBERS];
    struct opened opened[GPU_VENDORS];
    size_t opened_count;
    struct pr_gpu_cost cost[GPU_READINGS];
    struct call_state state[GPU_DEVICES + GPU_VENDORS][CALLS_MOST];
    size_t turn;         /* whose turn it is with what is dear */
    int64_t began, lead; /* of the round; how long one takes */
    double allowance;    /* ns of CPU */
    double joules[GPU_DEVICES], watts[GPU_DEVICES];
    int64_t watts_at[GPU_DEVICES];
};

static atomic_bool left_behind;

/* --- the thread: calls ------------------------------------------------------------------------ */

static void account(struct pr_gpu *g, struct pr_gpu_cost *c, struct call_state *s, int r,
                    int64_t wall, int64_t cpu)
{
    c->calls++;
    c->failed += r < 0 && r != -EAGAIN;
    c->cpu += cpu;
    c->wall += wall;
    c->wall_most = wall > c->wall_most ? wall : c->wall_most;
    s->cost = s->at ? s->cost * 0.7 + (double)cpu * 0.3 : (double)cpu;
    g->allowance -= (double)cpu;
    g->cpu += cpu;
}

static int make_call(struct pr_gpu *g, const struct opened *o, size_t call, unsigned card,
                     struct call_state *s)
{
    const struct pr_gpu_call *c = &o->vendor->calls[call];
    int64_t wall = pr_clock_boot(), cpu = pr_clock_thread_cpu();
    atomic_store(&g->call_name, c->name);
    atomic_store(&g->call_began, wall);
    int r = c->read(o->state, &g->work, card);
    atomic_store(&g->call_began, 0);
    account(g, &g->cost[o->cost + call], s, r, pr_clock_boot() - wall, pr_clock_thread_cpu() - cpu);
    s->at = wall;
    s->never = r == -ENOTSUP;
    return r;
}

/* Is it time, and is there budget? */
static bool is_due(const struct pr_gpu *g, const struct pr_gpu_call *c, const struct call_state *s)
{
    int64_t since = g->began - s->at;
    if (s->never || (g->ending && !c->last && s->at))
        return false;
    if (!s->at || g->ending)
        return true;
    if ((double)since < c->period * 0.9e9)
        return false;
    return s->cost < CHEAP || g->allowance >= 0 || since >= LONGEST_PAUSE;
}

static void lose(struct pr_gpu *g, struct pr_gpu_card *c)
{
    c->lost = true;
    pr_gpu_say(&g->work,
               "%s (%s) does not answer any more: it has fallen off the bus, or was reset", c->name,
               c->model);
}

static void read_card(struct pr_gpu *g, const struct opened *o, unsigned card)
{
    for (size_t i = 0; o->vendor->calls[i].name; i++) {
        struct pr_gpu_card *c = &g->round.card[card];
        struct call_state *s = &g->state[card][i];
        if (o->vendor->calls[i].of_all || c->lost || !is_due(g, &o->vendor->calls[i], s))
            continue;
        if (make_call(g, o, i, card, s) == -ENODEV)
            lose(g, c);
    }
}

/* What members use is known only where every vendor has told it in this round. */
static void read_uses(struct pr_gpu *g, const struct opened *o, bool *known)
{
    for (size_t i = 0; o->vendor->calls[i].name; i++) {
        const struct pr_gpu_call *c = &o->vendor->calls[i];
        struct call_state *s = &g->state[GPU_DEVICES + (size_t)(o - g->opened)][i];
        if (!c->of_all || !o->count || s->never)
            continue;
        if (!is_due(g, c, s) || make_call(g, o, i, o->first, s) < 0)
            known[c->of_memory] = false;
        else
            known[c->of_memory + 2] = true;
    }
}

/* Without a counter of its own: power over time, and said so. */
static void integrate(struct pr_gpu *g, unsigned card)
{
    struct pr_gpu_card *c = &g->round.card[card];
    double watts = c->value[pr_device_slot(DEVICE_GPU, METRIC_GPU_POWER)];
    int64_t now = g->began;
    if (c->sure_energy || isnan(watts))
        return;
    if (g->watts_at[card])
        g->joules[card] += (watts + g->watts[card]) / 2 * pr_seconds(now - g->watts_at[card]);
    g->watts[card] = watts;
    g->watts_at[card] = now;
    pr_gpu_put(c, METRIC_GPU_ENERGY, g->joules[card]);
}

static void blank(struct pr_gpu_round *r)
{
    r->use_count = 0;
    r->memory_known = r->usage_known = r->whole = false;
    for (size_t i = 0; i < r->card_count; i++)
        pr_values_none(r->card[i].value, DEVICE_VALUES);
}

static void read_round(struct pr_gpu *g)
{
    bool known[4] = {true, true, false, false}; /* nothing is missing; anything was told */
    int64_t before = g->began;
    g->began = pr_clock_boot();
    double second = g->setting.budget * 1e7 * BUDGET_PART;
    if (before)
        g->allowance += second * pr_seconds(g->began - before);
    g->allowance = fmax(-10 * second, fmin(second, g->allowance));
    blank(&g->round);
    size_t count = g->round.card_count;
    for (size_t i = 0; i < count; i++) {
        unsigned card = (unsigned)((g->turn + i) % count);
        for (size_t v = 0; v < g->opened_count; v++)
            if (card - g->opened[v].first < g->opened[v].count)
                read_card(g, &g->opened[v], card);
        integrate(g, card);
    }
    for (size_t v = 0; v < g->opened_count; v++)
        read_uses(g, &g->opened[v], known);
    g->turn = count ? (g->turn + 1) % count : 0;
    g->round.usage_known = known[0] && known[2];
    g->round.memory_known = known[1] && known[3];
    g->round.at = pr_clock_boot();
    int64_t took = g->round.at - g->began;
    g->lead = g->lead ? (g->lead * 3 + took * 2) / 4 : took * 2;
}

/* --- the thread: life ------------------------------------------------------------------------- */

static void open_vendors(struct pr_gpu *g)
{
    size_t costs = 0;
    char why[160];
    for (size_t i = 0; i < GPU_VENDORS; i++) {
        const struct pr_gpu_vendor *vendor = pr_gpu_vendors[i];
        struct opened *o = &g->opened[g->opened_count];
        if (!vendor->expected(&g->host, why, sizeof why))
            continue;
        atomic_store(&g->call_name, vendor->name);
        atomic_store(&g->call_began, pr_clock_boot());
        *o = (struct opened){
            .vendor = vendor, .first = (unsigned)g->round.card_count, .cost = costs};
        if (vendor->open(&o->state, &g->work) == 0) {
            vendor->list(o->state, &g->work);
            o->count = (unsigned)g->round.card_count - o->first;
            for (size_t c = 0; vendor->calls[c].name && costs < GPU_READINGS; c++)
                g->cost[costs++] = (struct pr_gpu_cost){.name = vendor->calls[c].name};
            g->opened_count++;
        }
        atomic_store(&g->call_began, 0);
    }
    g->cost_count = costs;
    g->start_cpu = pr_clock_thread_cpu();
}

static void merge_card(struct pr_gpu_card *to, const struct pr_gpu_card *from)
{
    double value[DEVICE_VALUES];
    memcpy(value, to->value, sizeof value);
    *to = *from;
    for (int slot = 0; slot < DEVICE_VALUES; slot++)
        if (isnan(to->value[slot]))
            to->value[slot] = value[slot];
}

static void copy_round(struct pr_gpu_round *to, const struct pr_gpu_round *from)
{
    memcpy(to, from, offsetof(struct pr_gpu_round, card));
    memcpy(to->card, from->card, from->card_count * sizeof *to->card);
    memcpy(to->use, from->use, from->use_count * sizeof *to->use);
}

/* What nobody has taken yet stays, where there is nothing newer. */
static void publish(struct pr_gpu *g)
{
    struct pr_gpu_work *w = &g->work;
    pthread_mutex_lock(&g->lock);
    if (g->has_out) {
        for (size_t i = 0; i < g->round.card_count; i++)
            merge_card(&g->out.card[i], &g->round.card[i]);
        if (g->round.memory_known || g->round.usage_known) {
            memcpy(&g->out, &g->round, offsetof(struct pr_gpu_round, card));
            memcpy(g->out.use, g->round.use, g->round.use_count * sizeof *g->out.use);
        }
        g->out.at = g->round.at;
    } else {
        copy_round(&g->out, &g->round);
    }
    g->has_out = true;
    for (size_t i = 0; i < w->note_count && g->note_count < GPU_NOTES; i++)
        g->note[g->note_count++] = w->note[i];
    w->note_count = 0;
    memcpy(g->cost_out, g->cost, sizeof g->cost_out);
    if (!g->round.card_count)
        snprintf(g->reason, sizeof g->reason, "%s", *w->why ? w->why : "there is no device");
    pthread_mutex_unlock(&g->lock);
}

/* Sleeps until it is time to read for the next tick; false where it is the last time. */
static bool wait_for_turn(struct pr_gpu *g)
{
    int64_t served = g->wanted;
    bool ending;
    pthread_mutex_lock(&g->lock);
    for (;;) {
        int64_t lead = g->lead + LEAD_LEAST, now = pr_clock_boot();
        int64_t at = g->wanted - lead;
        at = at < g->began + READ_LEAST ? g->began + READ_LEAST : at;
        if (g->ending || (g->wanted > served && at <= now))
            break;
        if (g->wanted <= served) {
            pthread_cond_wait(&g->changed, &g->lock);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        int64_t ns = until.tv_sec * NS_PER_S + until.tv_nsec + (at - now);
        until = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
        pthread_cond_timedwait(&g->changed, &g->lock, &until);
    }
    ending = g->ending;
    g->work.member_count = g->told_count;
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

static void *run(void *data)
{
    struct pr_gpu *g = data;
    open_vendors(g);
    read_round(g);
    publish(g);
    while (g->round.card_count && wait_for_turn(g)) {
        read_round(g);
        publish(g);
    }
    if (g->round.card_count) { /* counters, for the total */
        read_round(g);
        publish(g);
    }
    for (size_t v = 0; v < g->opened_count; v++)
        g->opened[v].vendor->close(g->opened[v].state);
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
    pthread_condattr_t attr;
    struct pr_gpu *g = calloc(1, sizeof *g);
    if (!g)
        return -ENOMEM;
    g->setting = *setting;
    g->host = *setting->host;
    g->host.root = fcntl(setting->host->root, F_DUPFD_CLOEXEC, 0);
    g->host.proc = fcntl(setting->host->proc, F_DUPFD_CLOEXEC, 0);
    atomic_init(&g->refs, 2);
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&g->changed, &attr);
    pthread_condattr_destroy(&attr);
    g->work = (struct pr_gpu_work){.host = &g->host, .round = &g->round, .members = g->members};
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

void pr_gpu_tell(struct pr_gpu *g, const struct pr_entities *set, int64_t next)
{
    if (!g || pthread_mutex_trylock(&g->lock) != 0)
        return;
    g->wanted = next;
    g->told_count = 0;
    for (size_t k = 0; k < set->count && g->told_count < GPU_MEMBERS; k++)
        if (pr_entity_is_here(set->items[k]))
            g->told[g->told_count++] = set->items[k]->pid;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

/* A call that lasts and lasts: counted each time, said once. */
static void watch_call(struct pr_gpu *g, int64_t now, struct pr_events *events, double at)
{
    int64_t began = atomic_load(&g->call_began);
    if (!began || now - began < DEADLINE || began == g->stalled_call)
        return;
    g->stalled_call = began;
    g->stalls++;
    if (!g->stall_said)
        pr_event_problem(events, at,
                         "the GPU driver has not answered for %.1f s (%s): until it does, GPU "
                         "values are absent",
                         pr_seconds(now - began), atomic_load(&g->call_name));
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
        copy_round(&g->taken, &g->out);
    g->has_out = false;
    for (size_t i = 0; i < g->note_count; i++)
        pr_event_add(events, EVENT_GPU, pr_seconds(g->note[i].at - start), 0, "%s",
                     g->note[i].text);
    g->note_count = 0;
    pthread_mutex_unlock(&g->lock);
    return fresh && now - g->taken.at < DEADLINE ? &g->taken : NULL;
}

/* Until it has ended, as long as there is hope. */
static bool wait_for_end(struct pr_gpu *g)
{
    struct timespec until;
    int64_t began = atomic_load(&g->call_began), patience = g->setting.patience * MS;
    bool hangs = began && pr_clock_boot() - began > patience;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_sec * NS_PER_S + until.tv_nsec + (hangs ? 0 : patience);
    until = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
    pthread_mutex_lock(&g->lock);
    g->ending = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->ended && pthread_cond_timedwait(&g->changed, &g->lock, &until) == 0)
        ;
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

int64_t pr_gpu_start_cpu(const struct pr_gpu *g)
{
    return g ? atomic_load(&g->start_cpu) : 0;
}

int64_t pr_gpu_cpu(const struct pr_gpu *g)
{
    return g ? atomic_load(&g->cpu) : 0;
}

const char *pr_gpu_reason(const struct pr_gpu *g)
{
    return g && *g->reason ? g->reason : NULL;
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
    memcpy(rows, g->cost_out, count * sizeof *rows);
    pthread_mutex_unlock(&g->lock);
    return count;
}
