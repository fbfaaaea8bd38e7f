/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a tick that is about GPUs: what the thread has read becomes values of members, of the
 * job and of devices. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/gpu.h"
#include "core/tick.h"
#include "util/clock.h"

#define PATIENCE        100 /* milliseconds at the end, for the last counters */
#define PART_LEAST      0.6 /* of the budget: PSS gives way */
#define PART_MOST       0.75
#define LATEST          (10 * NS_PER_S) /* with many devices one is asked that seldom */
#define OWN_FILES       2               /* its own root and proc */
#define PATIENCE_INSIDE 1000 /* in a process that goes on: rather than to leave a thread in it */

bool pr_tick_gpu_none(struct pr_session *s)
{
    char *why = s->machine.gpu_reason;
    if (!(s->select.reads & READ_GPU))
        return false;
    if (!*why && pr_gpu_expected(&s->host, why, sizeof s->machine.gpu_reason))
        *why = '\0';
    return *why;
}

void pr_tick_gpu_start(struct pr_session *s)
{
    struct pr_machine *m = &s->machine;
    struct pr_gpu_setting setting = {&s->host, s->config->budget * PART_LEAST,
                                     s->inside ? PATIENCE_INSIDE : PATIENCE, s->inside};
    if (!(s->select.reads & READ_GPU) || pr_tick_gpu_none(s))
        return;
    m->gpus = calloc(1, sizeof *m->gpus);
    int r = m->gpus ? pr_gpu_start(&m->gpu, &setting) : -ENOMEM;
    if (r < 0) {
        snprintf(m->gpu_reason, sizeof m->gpu_reason, "no thread for the GPUs: %s", strerror(-r));
        return;
    }
    s->own_threads++;
    s->own_fds += OWN_FILES;
}

void pr_tick_gpu_finish(struct pr_session *s)
{
    if (!s->machine.gpu || s->ended || !pr_gpu_finish(s->machine.gpu))
        return;
    s->own_threads--;
    s->own_fds -= OWN_FILES;
}

/* --- devices ---------------------------------------------------------------------------------- */

static void add_card(struct pr_gpu_account *a, const struct pr_gpu_card *from, size_t i, int64_t at,
                     const struct pr_session *s)
{
    struct pr_gpu_card *to = &a->card[i];
    if (i >= a->count) {
        *to = *from;
        a->sketches[i] = pr_sketches_new(DEVICE_VALUES);
        for (int slot = 0; slot < DEVICE_VALUES; slot++) {
            a->stat[i][slot] = STAT_NONE;
            a->read_at[i][slot] = s->start_boot;
        }
    }
    to->lost = from->lost;
    to->sure_energy = from->sure_energy;
    memcpy(to->reason, from->reason, sizeof to->reason);
    memcpy(to->value, from->value, sizeof to->value);
    for (int slot = 0; slot < DEVICE_VALUES; slot++) {
        double v = from->value[slot];
        if (isnan(v))
            continue;
        double lasted = pr_seconds(at - a->read_at[i][slot]);
        pr_stat_add(&a->stat[i][slot], v, pr_seconds(at - s->start_boot), lasted);
        if (a->sketches[i])
            pr_sketch_add(a->sketches[i], slot, v, lasted);
        a->read_at[i][slot] = at;
    }
}

static double *slot(struct pr_gpu_card *c, enum pr_metric_id id)
{
    return &c->value[pr_device_slot(DEVICE_GPU, id)];
}

/* The latest value of a device, where it is of a moment ago: dear ones are not read each time. */
static double latest(const struct pr_gpu_account *a, size_t i, enum pr_metric_id id, int64_t now)
{
    int k = pr_device_slot(DEVICE_GPU, id);
    return now - a->read_at[i][k] <= LATEST ? a->stat[i][k].last : NAN;
}

/* A sum over all that can tell: with one of them missing there is none. */
static double sum_of(const struct pr_gpu_account *a, enum pr_metric_id id, int64_t now, bool count)
{
    double sum = NAN;
    for (size_t i = 0; i < a->count; i++) {
        const struct pr_gpu_card *c = &a->card[i];
        if (c->part || c->lost || c->reason[pr_device_slot(DEVICE_GPU, id)])
            continue; /* a part is in the whole that it is of */
        double v = latest(a, i, id, now);
        if (isnan(v))
            return NAN;
        sum = pr_value_known(sum) + (count ? v > 0 : v);
    }
    return sum;
}

static void sum_cards(const struct pr_gpu_account *a, int64_t now, double *value)
{
    value[METRIC_SYSTEM_GPU_USAGE] = sum_of(a, METRIC_GPU_UTIL, now, false);
    value[METRIC_SYSTEM_GPU_COUNT] = sum_of(a, METRIC_GPU_UTIL, now, true);
    value[METRIC_SYSTEM_GPU_MEM] = sum_of(a, METRIC_GPU_MEM_USED, now, false);
}

static bool has_any(const struct pr_gpu_card *c)
{
    for (int k = 0; k < DEVICE_VALUES; k++)
        if (!isnan(c->value[k]))
            return true;
    return false;
}

void pr_tick_gpu_devices(struct pr_session *s)
{
    struct pr_gpu_account *a = s->machine.gpus;
    for (size_t i = 0; a && i < a->count; i++) {
        struct pr_gpu_card *c = &a->card[i];
        if (!has_any(c) || !pr_snapshot_reserve(&s->now, 0, s->now.device_count + 1))
            continue;
        struct pr_device *d = &s->now.devices[s->now.device_count++];
        *d = (struct pr_device){
            .kind = DEVICE_GPU, .counted = !c->part, .model = c->model, .uuid = c->uuid};
        memcpy(d->name, c->name, sizeof c->name);
        memcpy(d->value, c->value, sizeof d->value);
        int energy = pr_device_slot(DEVICE_GPU, METRIC_GPU_ENERGY);
        d->value[energy] -= a->stat[i][energy].min; /* counters count from the first reading */
    }
}

/* --- members and the job ---------------------------------------------------------------------- */

static const enum pr_metric_id job_ids[] = {METRIC_GPU_USAGE, METRIC_GPU_MEM, METRIC_GPU_COUNT};

static void blank_members(struct pr_entities *set)
{
    for (size_t k = 0; k < set->count; k++)
        for (size_t i = 0; i < 3; i++)
            set->items[k]->value[job_ids[i]] = NAN;
}

/* Who has nothing uses nothing: where the drivers have told of everybody, that is known. */
static void begin_members(struct pr_entities *set, const struct pr_gpu_round *r)
{
    for (size_t k = 0; k < set->count; k++) {
        double *v = set->items[k]->value;
        v[METRIC_GPU_USAGE] = r->usage_known ? 0 : NAN;
        v[METRIC_GPU_MEM] = r->memory_known ? 0 : NAN;
        v[METRIC_GPU_COUNT] = r->memory_known || r->usage_known ? 0 : NAN;
    }
}

static void add_use(double *value, const struct pr_gpu_use *u)
{
    value[METRIC_GPU_USAGE] += pr_value_known(u->usage);
    value[METRIC_GPU_MEM] += pr_value_known(u->memory);
}

static void take_uses(struct pr_session *s, struct pr_gpu_round *r, double *job)
{
    bool used[GPU_DEVICES] = {false};
    begin_members(&s->set, r);
    job[METRIC_GPU_USAGE] = r->usage_known ? 0 : NAN;
    job[METRIC_GPU_MEM] = r->memory_known ? 0 : NAN;
    for (size_t i = 0; i < r->card_count; i++) {
        if (r->card[i].lost)
            continue;
        *slot(&r->card[i], METRIC_GPU_JOB_USAGE) = job[METRIC_GPU_USAGE];
        *slot(&r->card[i], METRIC_GPU_JOB_MEM) = job[METRIC_GPU_MEM];
    }
    for (size_t i = 0; i < r->use_count; i++) {
        const struct pr_gpu_use *u = &r->use[i];
        struct pr_entity *e = pr_entities_find_any(&s->set, u->pid);
        if (!e || e->left)
            continue;
        add_use(e->value, u);
        add_use(job, u);
        bool some = u->usage > 0 || u->memory > 0 || u->on;
        e->value[METRIC_GPU_COUNT] += some;
        used[u->card] |= some;
        *slot(&r->card[u->card], METRIC_GPU_JOB_USAGE) += pr_value_known(u->usage);
        *slot(&r->card[u->card], METRIC_GPU_JOB_MEM) += pr_value_known(u->memory);
    }
    job[METRIC_GPU_COUNT] = r->memory_known || r->usage_known ? 0 : NAN;
    for (size_t i = 0; i < GPU_DEVICES; i++)
        job[METRIC_GPU_COUNT] += used[i];
    if (r->usage_whole)
        s->now.mark[METRIC_GPU_USAGE] = MARK_WHOLE_DEVICE;
    if (r->memory_whole)
        s->now.mark[METRIC_GPU_MEM] = s->now.mark[METRIC_GPU_COUNT] = MARK_WHOLE_DEVICE;
}

static void give_reason(struct pr_session *s, enum pr_metric_id id, const char *reason)
{
    if (reason && !s->reason[id][0])
        snprintf(s->reason[id], sizeof s->reason[id], "%s", reason);
}

void pr_tick_gpu(struct pr_session *s, double *value)
{
    struct pr_gpu_account *a = s->machine.gpus;
    int64_t now = s->start_boot + s->now.elapsed;
    if (!s->machine.gpu)
        return;
    blank_members(&s->set);
    for (size_t i = 0; i < 3; i++)
        value[job_ids[i]] = NAN;
    for (size_t i = 0; i < a->count; i++)
        pr_values_none(a->card[i].value, DEVICE_VALUES);
    if (s->next <= now) /* nobody was told of this one: it is a collect */
        pr_gpu_ask(s->machine.gpu, &s->set);
    struct pr_gpu_round *r = pr_gpu_take(s->machine.gpu, now, &s->events, s->start_boot);
    if (!r)
        return;
    if (!s->gone)
        take_uses(s, r, value);
    give_reason(s, METRIC_GPU_USAGE, r->no_usage);
    give_reason(s, METRIC_GPU_MEM, r->no_memory);
    for (size_t i = 0; i < r->card_count; i++) {
        r->card[i].reason[pr_device_slot(DEVICE_GPU, METRIC_GPU_JOB_USAGE)] = r->no_usage;
        r->card[i].reason[pr_device_slot(DEVICE_GPU, METRIC_GPU_JOB_MEM)] = r->no_memory;
        add_card(a, &r->card[i], i, r->at, s);
    }
    a->count = r->card_count > a->count ? r->card_count : a->count;
    sum_cards(a, now, value);
    const char *reason = pr_gpu_reason(s->machine.gpu);
    if (reason)
        snprintf(s->machine.gpu_reason, sizeof s->machine.gpu_reason, "%s", reason);
}

int64_t pr_tick_gpu_next(struct pr_session *s)
{
    struct pr_gpu_account *a = s->machine.gpus;
    if (!s->machine.gpu)
        return 0;
    int64_t cpu = pr_gpu_cpu(s->machine.gpu), since = cpu - a->cpu;
    /* What the ticks leave of the budget, a little less for the writer, and a part of it whatever
     * they use. */
    double ticks = (double)(s->own_cpu - a->cpu) / (double)(s->now.elapsed + NS_PER_S) * 100;
    double left = fmax(s->config->budget * PART_MOST - ticks, s->config->budget * PART_LEAST);
    a->cpu = cpu;
    pr_gpu_tell(s->machine.gpu, &s->set, s->next > pr_clock_boot() ? s->next : 0, left);
    return since;
}
