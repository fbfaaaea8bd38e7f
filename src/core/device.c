/* SPDX-License-Identifier: Apache-2.0 */
#include "core/device.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MISSED_MOST 100 /* readings after which a device is forgotten */

/* Which metrics each kind has, in the order of their rows, and where. */
static enum pr_metric_id metric_in[DEVICE_KINDS][DEVICE_VALUES];
static signed char slot_of[DEVICE_KINDS][METRIC_COUNT];
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (int kind = 0; kind < DEVICE_KINDS; kind++) {
        int used = 0;
        for (int slot = 0; slot < DEVICE_VALUES; slot++)
            metric_in[kind][slot] = METRIC_NONE;
        for (int id = 0; id < METRIC_COUNT; id++) {
            bool has =
                (pr_metrics[id].scope & (unsigned)SCOPE_CORE << kind) && used < DEVICE_VALUES;
            slot_of[kind][id] = has ? (signed char)used : -1;
            if (has)
                metric_in[kind][used++] = (enum pr_metric_id)id;
        }
    }
}

const char *pr_device_kind_name(enum pr_device_kind kind)
{
    static const char *const names[] = {"core", "disk", "filesystem", "interface", "gpu"};
    return names[kind];
}

enum pr_metric_id pr_device_metric(enum pr_device_kind kind, int slot)
{
    pthread_once(&filled, fill);
    return slot < DEVICE_VALUES ? metric_in[kind][slot] : METRIC_NONE;
}

int pr_device_slot(enum pr_device_kind kind, enum pr_metric_id id)
{
    pthread_once(&filled, fill);
    return slot_of[kind][id];
}

static bool is_it(const struct pr_device_state *d, enum pr_device_kind kind, const char *name,
                  size_t len)
{
    return d->out.kind == kind && strncmp(d->out.name, name, len) == 0 && !d->out.name[len];
}

static struct pr_device_state *add(struct pr_devices *set, enum pr_device_kind kind,
                                   const char *name, size_t len)
{
    if (set->count == set->cap) {
        size_t cap = set->cap ? set->cap * 2 : 16;
        struct pr_device_state *items = realloc(set->items, cap * sizeof *items);
        if (!items)
            return NULL;
        set->items = items;
        set->cap = cap;
    }
    struct pr_device_state *d = &set->items[set->count++];
    *d = (struct pr_device_state){.out = {.kind = kind, .counted = true}};
    memcpy(d->out.name, name, len);
    for (int slot = 0; slot < DEVICE_VALUES; slot++)
        d->out.value[slot] = d->last[slot] = NAN;
    return d;
}

static struct pr_device_state *find(struct pr_devices *set, enum pr_device_kind kind,
                                    const char *name, size_t len)
{
    for (size_t i = 0; i < set->count; i++) {
        size_t at = (set->cursor + i) % set->count;
        if (!is_it(&set->items[at], kind, name, len))
            continue;
        set->cursor = at + 1;
        return &set->items[at];
    }
    return NULL;
}

struct pr_device_state *pr_devices_get(struct pr_devices *set, enum pr_device_kind kind,
                                       const char *name, size_t len)
{
    len = len < DEVICE_NAME ? len : DEVICE_NAME - 1;
    struct pr_device_state *d = find(set, kind, name, len);
    if (!d)
        d = add(set, kind, name, len);
    if (!d)
        return NULL;
    d->present = true;
    for (int slot = 0; slot < DEVICE_VALUES; slot++)
        d->raw[slot] = NAN;
    return d;
}

void pr_device_put(struct pr_device_state *d, enum pr_metric_id id, double raw)
{
    int slot = pr_device_slot(d->out.kind, id);
    if (slot >= 0)
        d->raw[slot] = raw;
}

/* A counter that falls belongs to another device of that name, or was reset: it begins anew. */
static double growth_of(const struct pr_device_state *d, int slot)
{
    double growth = d->raw[slot] - d->last[slot];
    return growth > 0 ? growth : 0;
}

/* Idle times of a core fall now and then; it has not been idle for any longer since. */
static bool fell_a_little(const struct pr_device_state *d, int slot)
{
    enum pr_metric_id id = pr_device_metric(d->out.kind, slot);
    return id != METRIC_NONE && pr_metrics[id].unit == UNIT_SECONDS && d->raw[slot] < d->last[slot];
}

static void settle_counter(struct pr_device_state *d, int slot, double *sum)
{
    double growth = growth_of(d, slot);
    if (isnan(d->raw[slot])) {
        d->out.value[slot] = NAN;
        return;
    }
    d->total[slot] += growth;
    d->out.value[slot] = d->total[slot];
    if (sum && d->out.counted)
        *sum = isnan(*sum) ? growth : *sum + growth;
}

/* Of what it grew by while it was away, nobody knows when. */
static double rate_of(const struct pr_device_state *d, const struct pr_metric *m, double dt)
{
    int of = pr_device_slot(d->out.kind, m->of);
    bool sound = !d->away && d->raw[of] - d->last[of] >= 0;
    return sound ? growth_of(d, of) / dt * m->scale : NAN;
}

static void settle_one(struct pr_device_state *d, double dt, double *sum)
{
    enum pr_metric_id id;
    for (int slot = 0; (id = pr_device_metric(d->out.kind, slot)) != METRIC_NONE; slot++) {
        const struct pr_metric *m = &pr_metrics[id];
        double *total = m->fold == FOLD_SUM ? &sum[id] : NULL;
        if (m->kind == KIND_COUNTER) {
            settle_counter(d, slot, total);
        } else if (m->kind == KIND_RATE) {
            d->out.value[slot] = rate_of(d, m, dt);
        } else {
            d->out.value[slot] = d->raw[slot];
            if (total && d->out.counted && !isnan(d->raw[slot]))
                *total = isnan(*total) ? d->raw[slot] : *total + d->raw[slot];
        }
    }
    for (int slot = 0; slot < DEVICE_VALUES; slot++)
        if (!isnan(d->raw[slot]) && !fell_a_little(d, slot))
            d->last[slot] = d->raw[slot];
}

void pr_devices_begin(struct pr_devices *set)
{
    size_t kept = 0;
    set->cursor = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct pr_device_state *d = &set->items[i];
        d->missed = d->present ? 0 : d->missed + 1;
        d->present = false;
        if (d->missed > MISSED_MOST) /* containers come and go, each with an interface */
            continue;
        if (kept < i)
            set->items[kept] = *d;
        kept++;
    }
    set->count = kept;
}

void pr_devices_settle(struct pr_devices *set, double dt, double *sum)
{
    for (int id = PROC_METRICS; id < METRIC_COUNT; id++)
        if (pr_metrics[id].kind == KIND_GAUGE)
            sum[id] = NAN; /* of those that are there now */
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i].present)
            settle_one(&set->items[i], dt, sum);
        set->items[i].away = !set->items[i].present;
    }
}

void pr_devices_done(struct pr_devices *set)
{
    free(set->items);
    *set = (struct pr_devices){0};
}
