/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "util/clock.h"

#define CHEAP         150000 /* ns of CPU: such a call is always made */
#define LONGEST_PAUSE (30 * NS_PER_S)
#define DEBT_MOST     2 /* seconds of allowance: one long call is no reason to be silent for long */

/* First calls cost many times what later ones do, and the last ones come once: they are apart. */
static void account(struct pr_gpu_reader *r, struct pr_gpu_cost *c, struct pr_gpu_call_state *s,
                    int result, int64_t wall, int64_t cpu)
{
    double now = (double)cpu;
    c->calls++;
    c->failed += result < 0 && result != -EAGAIN;
    c->cpu += cpu;
    c->wall += wall;
    c->wall_most = wall > c->wall_most ? wall : c->wall_most;
    if (s->calls++ == 0 || r->closing) {
        r->start_cpu += cpu;
        s->cost = now / 2; /* until it is known better */
        return;
    }
    /* What is seldom long is not dear. */
    s->cost = s->calls == 2 ? now : s->cost + (now - s->cost) * (now < s->cost ? 0.5 : 0.1);
    r->allowance -= now;
    r->cpu += cpu;
}

static int make_call(struct pr_gpu_reader *r, const struct pr_gpu_opened *o, size_t call,
                     unsigned card, struct pr_gpu_call_state *s)
{
    const struct pr_gpu_call *c = &o->vendor->calls[call];
    int64_t wall = pr_clock_boot(), cpu = pr_clock_thread_cpu();
    atomic_store(&r->call_name, c->name);
    atomic_store(&r->call_began, wall);
    s->result = c->read(o->state, &r->work, card);
    atomic_store(&r->call_began, 0);
    account(r, &r->cost[o->cost + call], s, s->result, pr_clock_boot() - wall,
            pr_clock_thread_cpu() - cpu);
    s->at = wall;
    s->round = r->rounds;
    s->never = s->result == -ENOTSUP;
    return s->result;
}

/* Is it time, whatever it costs? */
static bool is_due(const struct pr_gpu_reader *r, const struct pr_gpu_call *c,
                   const struct pr_gpu_call_state *s, bool last)
{
    if (c->follows || s->never || s->round == r->rounds || (last && !c->last))
        return false;
    return !s->at || last || (double)(r->began - s->at) >= c->period * 0.9e9;
}

static bool is_cheap(const struct pr_gpu_reader *r, const struct pr_gpu_call_state *s, bool last)
{
    return last || !s->calls || s->cost < CHEAP || r->began - s->at >= LONGEST_PAUSE;
}

/* Makes a call for a device, or of processes for all devices of a vendor. */
static void make(struct pr_gpu_reader *r, struct pr_gpu_opened *o, size_t call, unsigned card,
                 struct pr_gpu_call_state *s)
{
    struct pr_gpu_card *c = &r->round.card[card];
    int result = make_call(r, o, call, card, s);
    if (o->vendor->calls[call + 1].follows)
        make_call(r, o, call + 1, card, &o->all[call + 1]);
    if (result != -ENODEV || o->vendor->calls[call].of_all)
        return;
    c->lost = true;
    pr_values_none(c->value, DEVICE_VALUES);
    pr_gpu_say(&r->work, "%s (%s) does not answer any more: it is off the bus, or was reset",
               c->name, c->model);
}

/* The calls there are: of each device, or of processes. */
struct place {
    struct pr_gpu_opened *o;
    struct pr_gpu_call_state *s;
    size_t call;
    unsigned card;
};

/* Goes through all; `each` says whether to go on. */
static void for_each_call(struct pr_gpu_reader *r, bool (*each)(void *, struct place), void *of)
{
    for (size_t v = 0; v < r->opened_count; v++) {
        struct pr_gpu_opened *o = &r->opened[v];
        for (size_t i = 0; o->vendor->calls[i].name; i++) {
            unsigned count = o->vendor->calls[i].of_all ? 1 : o->count;
            for (unsigned k = 0; k < count; k++) {
                unsigned card = o->first + k;
                struct pr_gpu_call_state *s =
                    o->vendor->calls[i].of_all ? &o->all[i] : &r->state[card][i];
                if (!each(of, (struct place){o, s, i, card}))
                    return;
            }
        }
    }
}

struct choosing {
    struct pr_gpu_reader *r;
    bool last;
    struct place oldest; /* of what is due and dear */
};

static bool is_open(const struct choosing *c, struct place p)
{
    const struct pr_gpu_call *call = &p.o->vendor->calls[p.call];
    return (call->of_all || !c->r->round.card[p.card].lost) && is_due(c->r, call, p.s, c->last);
}

static bool make_cheap(void *of, struct place p)
{
    struct choosing *c = of;
    if (is_open(c, p) && is_cheap(c->r, p.s, c->last))
        make(c->r, p.o, p.call, p.card, p.s);
    return true;
}

static bool find_oldest(void *of, struct place p)
{
    struct choosing *c = of;
    if (is_open(c, p) && (!c->oldest.s || p.s->at < c->oldest.s->at))
        c->oldest = p;
    return true;
}

/* Those that have waited longest, as far as the allowance goes. */
static void make_dear(struct choosing *c)
{
    while (c->r->allowance >= 0) {
        c->oldest = (struct place){0};
        for_each_call(c->r, find_oldest, c);
        if (!c->oldest.s)
            return;
        make(c->r, c->oldest.o, c->oldest.call, c->oldest.card, c->oldest.s);
    }
}

/* What members use is known where every vendor that can tell has told it in this round. */
struct known {
    struct pr_gpu_reader *r;
    bool any[2], all[2]; /* usage, memory */
};

static bool note_known(void *of, struct place p)
{
    struct known *k = of;
    const struct pr_gpu_call *call = &p.o->vendor->calls[p.call];
    if (!call->of_all || p.s->never)
        return true;
    bool told = p.s->round == k->r->rounds && p.s->result == 0;
    k->any[call->of_memory] |= told;
    k->all[call->of_memory] &= told;
    return true;
}

/* Who is on a device that did not say so this time is who was there before: else a count of devices
 * would go up and down with what is read. */
static void carry(struct pr_gpu_reader *r)
{
    struct pr_gpu_round *round = &r->round;
    for (size_t i = 0; i < round->use_count; i++)
        round->use[i].on = round->use[i].memory > 0;
    for (size_t i = 0; i < r->on_count; i++) {
        const struct pr_gpu_card *c = &round->card[r->on[i].card];
        struct pr_gpu_use *use =
            c->listed || c->lost ? NULL : pr_gpu_use_of(round, r->on[i].pid, r->on[i].card);
        if (use)
            use->on = true;
    }
    r->on_count = 0;
    for (size_t i = 0; i < round->use_count; i++)
        if (round->use[i].on)
            r->on[r->on_count++] = (struct pr_gpu_on){round->use[i].pid, round->use[i].card};
}

static void conclude(struct pr_gpu_reader *r)
{
    static const char full[] = "more processes use GPUs than there is room for";
    struct pr_gpu_round *round = &r->round;
    struct known known = {.r = r, .all = {true, true}};
    for_each_call(r, note_known, &known);
    carry(r);
    round->usage_known = known.any[0] && known.all[0] && !round->cut;
    round->memory_known = known.any[1] && known.all[1] && !round->cut;
    const char **reasons[] = {&round->no_memory, &round->no_usage};
    for (size_t i = 0; i < 2; i++)
        if (round->cut || *reasons[i] == full)
            *reasons[i] = round->cut ? full : NULL;
}

/* Without a counter of its own: power over time, and said so. */
static void integrate(struct pr_gpu_reader *r, unsigned card)
{
    struct pr_gpu_card *c = &r->round.card[card];
    struct pr_gpu_power *p = &r->power[card];
    double watts = c->value[pr_device_slot(DEVICE_GPU, METRIC_GPU_POWER)];
    bool needed = p->at || c->reason[pr_device_slot(DEVICE_GPU, METRIC_GPU_ENERGY)];
    if (!needed || isnan(watts))
        return;
    if (p->at)
        p->joules += (watts + p->watts) / 2 * pr_seconds(r->began - p->at);
    p->watts = watts;
    p->at = r->began;
    pr_gpu_put(c, METRIC_GPU_ENERGY, p->joules);
}

static void begin(struct pr_gpu_reader *r)
{
    double second = r->budget * 1e7;
    int64_t now = pr_clock_boot();
    if (r->began)
        r->allowance += second * pr_seconds(now - r->began);
    r->allowance = fmax(-DEBT_MOST * second, fmin(second, r->allowance));
    r->began = now;
    r->rounds++;
    r->round.use_count = 0;
    r->round.memory_whole = r->round.usage_whole = r->round.cut = false;
    for (size_t i = 0; i < r->round.card_count; i++) {
        pr_values_none(r->round.card[i].value, DEVICE_VALUES);
        r->round.card[i].listed = false;
    }
}

void pr_gpu_reader_read(struct pr_gpu_reader *r, bool last)
{
    struct choosing choosing = {.r = r, .last = last};
    begin(r);
    r->closing = last;
    for_each_call(r, make_cheap, &choosing);
    make_dear(&choosing);
    conclude(r);
    for (size_t i = 0; i < r->round.card_count; i++)
        integrate(r, (unsigned)i);
    r->round.at = pr_clock_boot();
    int64_t took = r->round.at - r->began;
    r->took = r->took ? (r->took * 3 + took) / 4 : took;
}

static void open_vendor(struct pr_gpu_reader *r, const struct pr_gpu_vendor *vendor)
{
    struct pr_gpu_opened *o = &r->opened[r->opened_count];
    *o = (struct pr_gpu_opened){
        .vendor = vendor, .first = (unsigned)r->round.card_count, .cost = r->cost_count};
    if (vendor->open(&o->state, &r->work) < 0)
        return;
    vendor->list(o->state, &r->work);
    o->count = (unsigned)r->round.card_count - o->first;
    if (!o->count) {
        vendor->close(o->state);
        return;
    }
    for (size_t c = 0; vendor->calls[c].name && r->cost_count < GPU_READINGS; c++)
        r->cost[r->cost_count++] = (struct pr_gpu_cost){.name = vendor->calls[c].name};
    r->opened_count++;
}

void pr_gpu_reader_open(struct pr_gpu_reader *r, const struct pr_host *host, const pid_t *members,
                        double budget)
{
    char why[160];
    int64_t cpu = pr_clock_thread_cpu();
    r->budget = budget;
    r->work = (struct pr_gpu_work){.host = host, .round = &r->round, .members = members};
    for (size_t i = 0; i < GPU_VENDORS; i++) {
        if (!pr_gpu_vendors[i]->expected(host, why, sizeof why))
            continue;
        atomic_store(&r->call_name, pr_gpu_vendors[i]->name);
        atomic_store(&r->call_began, pr_clock_boot());
        open_vendor(r, pr_gpu_vendors[i]);
        atomic_store(&r->call_began, 0);
    }
    r->start_cpu += pr_clock_thread_cpu() - cpu;
    r->descriptors = r->work.descriptors;
    if (!r->round.card_count && !*r->work.why)
        snprintf(r->work.why, sizeof r->work.why, "there is no GPU that can be read");
}

void pr_gpu_reader_close(struct pr_gpu_reader *r)
{
    for (size_t v = 0; v < r->opened_count; v++)
        r->opened[v].vendor->close(r->opened[v].state);
    r->opened_count = 0;
}
