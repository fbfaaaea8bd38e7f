/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "util/clock.h"

#define CHEAP         100000 /* ns of CPU: such a call is always made */
#define LONGEST_PAUSE (10 * NS_PER_S)
#define BUDGET_PART   0.8 /* of the budget is for what is dear here */

static void account(struct pr_gpu_reader *r, struct pr_gpu_cost *c, struct pr_gpu_call_state *s,
                    int result, int64_t wall, int64_t cpu)
{
    c->calls++;
    c->failed += result < 0 && result != -EAGAIN;
    c->cpu += cpu;
    c->wall += wall;
    c->wall_most = wall > c->wall_most ? wall : c->wall_most;
    s->cost = s->at ? s->cost * 0.7 + (double)cpu * 0.3 : (double)cpu;
    r->allowance -= (double)cpu;
    r->cpu += cpu;
}

static int make_call(struct pr_gpu_reader *r, const struct pr_gpu_opened *o, size_t call,
                     unsigned card, struct pr_gpu_call_state *s)
{
    const struct pr_gpu_call *c = &o->vendor->calls[call];
    int64_t wall = pr_clock_boot(), cpu = pr_clock_thread_cpu();
    atomic_store(&r->call_name, c->name);
    atomic_store(&r->call_began, wall);
    int result = c->read(o->state, &r->work, card);
    atomic_store(&r->call_began, 0);
    account(r, &r->cost[o->cost + call], s, result, pr_clock_boot() - wall,
            pr_clock_thread_cpu() - cpu);
    s->at = wall;
    s->never = result == -ENOTSUP;
    return result;
}

/* Is it time, and is there budget? */
static bool is_due(const struct pr_gpu_reader *r, const struct pr_gpu_call *c,
                   const struct pr_gpu_call_state *s, bool last)
{
    int64_t since = r->began - s->at;
    if (s->never || (last && !c->last))
        return false;
    if (!s->at || last)
        return true;
    if ((double)since < c->period * 0.9e9)
        return false;
    return s->cost < CHEAP || r->allowance >= 0 || since >= LONGEST_PAUSE;
}

static void read_card(struct pr_gpu_reader *r, const struct pr_gpu_opened *o, unsigned card,
                      bool last)
{
    struct pr_gpu_card *c = &r->round.card[card];
    for (size_t i = 0; o->vendor->calls[i].name && !c->lost; i++) {
        struct pr_gpu_call_state *s = &r->state[card][i];
        if (o->vendor->calls[i].of_all || !is_due(r, &o->vendor->calls[i], s, last) ||
            make_call(r, o, i, card, s) != -ENODEV)
            continue;
        c->lost = true;
        pr_values_none(c->value, DEVICE_VALUES);
        pr_gpu_say(&r->work, "%s (%s) does not answer any more: it is off the bus, or was reset",
                   c->name, c->model);
    }
}

/* Whether there is anything to know of processes, and whether all of it is known now. */
struct known {
    bool any, all;
};

static void read_uses(struct pr_gpu_reader *r, struct pr_gpu_opened *o, bool last,
                      struct known *memory, struct known *usage)
{
    for (size_t i = 0; o->vendor->calls[i].name; i++) {
        const struct pr_gpu_call *c = &o->vendor->calls[i];
        struct known *k = c->of_memory ? memory : usage;
        if (!c->of_all || o->all[i].never)
            continue;
        bool told = is_due(r, c, &o->all[i], last) && make_call(r, o, i, o->first, &o->all[i]) == 0;
        k->any |= told;
        k->all &= told || o->all[i].never;
    }
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
    double second = r->budget * 1e7 * BUDGET_PART;
    int64_t now = pr_clock_boot();
    if (r->began)
        r->allowance += second * pr_seconds(now - r->began);
    r->allowance = fmax(-10 * second, fmin(second, r->allowance));
    r->began = now;
    r->round.use_count = 0;
    r->round.memory_whole = r->round.usage_whole = false;
    for (size_t i = 0; i < r->round.card_count; i++)
        pr_values_none(r->round.card[i].value, DEVICE_VALUES);
}

void pr_gpu_reader_read(struct pr_gpu_reader *r, bool last)
{
    struct known memory = {false, true}, usage = {false, true};
    size_t count = r->round.card_count;
    begin(r);
    for (size_t i = 0; i < count; i++) {
        unsigned card = (unsigned)((r->turn + i) % count);
        for (size_t v = 0; v < r->opened_count; v++)
            if (card - r->opened[v].first < r->opened[v].count)
                read_card(r, &r->opened[v], card, last);
        integrate(r, card);
    }
    /* After the devices: where processes cannot be told apart, their values stand in. */
    for (size_t v = 0; v < r->opened_count; v++)
        read_uses(r, &r->opened[v], last, &memory, &usage);
    r->turn = count ? (r->turn + 1) % count : 0;
    r->round.memory_known = memory.any && memory.all;
    r->round.usage_known = usage.any && usage.all;
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
    r->start_cpu = pr_clock_thread_cpu() - cpu;
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
