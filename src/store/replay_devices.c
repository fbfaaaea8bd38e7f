/* SPDX-License-Identifier: Apache-2.0 */
/* Devices from rows of what changed. A core has no row while its use stays as it is: its counters
 * are then on the line between two rows, for which rows are read ahead. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/machine.h"
#include "store/replay_parts.h"
#include "util/clock.h"

#define CORE_FAR (300 * NS_PER_S) /* several times what is between two rows of a core */

enum {
    ENTITY_ID,
    ENTITY_KIND,
    ENTITY_NAME,
    ENTITY_FIRST,
    ENTITY_LAST,
    ENTITY_MODEL,
    ENTITY_UUID,
    ENTITY_COUNTED
};

/* --- who there is ----------------------------------------------------------------------------- */

static int kind_of(const char *name)
{
    for (int kind = 0; kind < DEVICE_KINDS; kind++)
        if (name && strcmp(pr_device_kind_name((enum pr_device_kind)kind), name) == 0)
            return kind;
    return -1;
}

static void take_entity(struct pr_replayed_device *d, struct pr_query *q)
{
    const char *name = pr_query_get_text(q, ENTITY_NAME),
               *model = pr_query_get_text(q, ENTITY_MODEL),
               *uuid = pr_query_get_text(q, ENTITY_UUID);
    *d = (struct pr_replayed_device){
        .entity = pr_query_get_int(q, ENTITY_ID),
        .first = pr_query_get_int(q, ENTITY_FIRST),
        .last = pr_query_is_null(q, ENTITY_LAST) ? INT64_MAX : pr_query_get_int(q, ENTITY_LAST)};
    d->out.kind = (enum pr_device_kind)kind_of(pr_query_get_text(q, ENTITY_KIND));
    d->out.counted = pr_query_get_int(q, ENTITY_COUNTED) != 0;
    snprintf(d->out.name, sizeof d->out.name, "%s", name ? name : "");
    snprintf(d->model, sizeof d->model, "%s", model ? model : "");
    snprintf(d->uuid, sizeof d->uuid, "%s", uuid ? uuid : "");
    pr_values_none(d->out.value, DEVICE_VALUES);
    pr_values_none(d->previous, DEVICE_VALUES);
}

static int load(struct pr_replayed_devices *d, const struct pr_stored *r)
{
    struct pr_query *q = NULL;
    int code = pr_query_new(&q, r->db,
                            "SELECT id, kind, name, first, last, model, uuid, counted FROM entities"
                            " WHERE kind <> 'process' AND first IS NOT NULL ORDER BY id");
    size_t cap = 0;
    while (code == 0 && (code = pr_query_step(q)) == 1) {
        code = 0;
        if (kind_of(pr_query_get_text(q, ENTITY_KIND)) < 0)
            continue; /* of another version */
        if (d->count == cap) {
            cap = cap ? cap * 2 : 32;
            struct pr_replayed_device *items = realloc(d->items, cap * sizeof *items);
            if (!items) {
                code = -ENOMEM;
                break;
            }
            d->items = items;
        }
        take_entity(&d->items[d->count++], q);
    }
    pr_query_free(q);
    return code;
}

void pr_replayed_devices_open(struct pr_replayed_devices *d, const struct pr_stored *r)
{
    *d = (struct pr_replayed_devices){0};
    d->code = load(d, r);
    for (int kind = 0; kind < DEVICE_KINDS; kind++)
        pr_cursor_open(&d->rows[kind], r, (enum pr_run_table)(TABLE_DEVICE + kind));
}

static struct pr_replayed_device *find(struct pr_replayed_devices *d, int64_t entity)
{
    size_t low = 0, high = d->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->items[middle].entity < entity)
            low = middle + 1;
        else
            high = middle;
    }
    return low < d->count && d->items[low].entity == entity ? &d->items[low] : NULL;
}

/* --- cores ------------------------------------------------------------------------------------ */

/* Keeps the row that the cursor is on with its core, and goes on. */
static void read_ahead(struct pr_replayed_devices *d)
{
    struct pr_cursor *c = &d->rows[DEVICE_CORE];
    struct pr_replayed_device *core = find(d, pr_query_get_int(c->query, 1));
    if (core && core->ahead_count == core->ahead_cap) {
        size_t cap = core->ahead_cap ? core->ahead_cap * 2 : 4;
        struct pr_core_row *rows = realloc(core->ahead, cap * sizeof *rows);
        if (!rows) {
            d->code = -ENOMEM;
            return;
        }
        core->ahead = rows;
        core->ahead_cap = cap;
    }
    if (core) {
        struct pr_core_row *row = &core->ahead[core->ahead_count++];
        row->sample = c->sample;
        row->elapsed = pr_stored_time(c->query, pr_cursor_more(c));
        pr_values_none(row->value, DEVICE_VALUES);
        pr_cursor_values(c, row->value);
    }
    pr_cursor_next(c);
}

/* Those before the sample are not needed any more, but for the last one; and the one before that,
 * where there is none behind. */
static void drop_old(struct pr_replayed_device *core, int64_t sample)
{
    size_t old = 0;
    while (core->ahead_count - old > 2 && core->ahead[old + 1].sample < sample)
        old++;
    core->ahead_count -= old;
    if (old)
        memmove(core->ahead, core->ahead + old, core->ahead_count * sizeof *core->ahead);
}

/* No recorder leaves a core without a row for as long: this one has none, and the rows of others
 * need not be read for it. */
static bool is_far(const struct pr_cursor *c, int64_t sample, int64_t elapsed)
{
    return c->sample > sample + 1 &&
           pr_stored_time(c->query, pr_cursor_more(c)) - elapsed > CORE_FAR;
}

/* Reads as far as this core has a row at or behind the sample. Where there is none behind it goes
 * on as between the last two. */
static void catch_up(struct pr_replayed_devices *d, struct pr_replayed_device *core, int64_t sample,
                     int64_t elapsed)
{
    const struct pr_cursor *c = &d->rows[DEVICE_CORE];
    for (drop_old(core, sample);; drop_old(core, sample)) {
        bool enough = core->ahead_count && core->ahead[core->ahead_count - 1].sample >= sample;
        if (enough || !c->on || d->code < 0 || is_far(c, sample, elapsed))
            return;
        read_ahead(d);
    }
}

/* The counters at this moment; false where its rows do not tell. */
static bool place_core(struct pr_replayed_devices *d, struct pr_replayed_device *core,
                       int64_t sample, int64_t elapsed)
{
    catch_up(d, core, sample, elapsed);
    size_t at = 0;
    while (at < core->ahead_count && core->ahead[at].sample < sample)
        at++;
    bool exact = at < core->ahead_count && core->ahead[at].sample == sample;
    if (!exact && (at == 0 || core->ahead_count < 2))
        return false;
    const struct pr_core_row *to = &core->ahead[exact || at < core->ahead_count ? at : at - 1],
                             *from = exact ? to : to - 1;
    int64_t apart = to->elapsed - from->elapsed;
    double part = apart > 0 ? (double)(elapsed - from->elapsed) / (double)apart : 0;
    for (int slot = 0; slot < DEVICE_VALUES; slot++)
        core->out.value[slot] = from->value[slot] + (to->value[slot] - from->value[slot]) * part;
    return true;
}

/* --- the others ------------------------------------------------------------------------------- */

static void take_rows(struct pr_replayed_devices *d, int kind, int64_t sample)
{
    struct pr_cursor *c = &d->rows[kind];
    for (; c->on && c->sample <= sample; pr_cursor_next(c)) {
        struct pr_replayed_device *one = find(d, pr_query_get_int(c->query, 1));
        if (!one || (int)one->out.kind != kind)
            continue;
        pr_cursor_values(c, one->out.value);
        one->known = true;
    }
}

static bool has_any(const struct pr_replayed_device *d)
{
    for (int slot = 0; slot < DEVICE_VALUES; slot++)
        if (!isnan(d->out.value[slot]))
            return true;
    return false;
}

static void derive(struct pr_replayed_device *d, double dt)
{
    enum pr_metric_id id;
    for (int slot = 0; (id = pr_device_metric(d->out.kind, slot)) != METRIC_NONE; slot++) {
        const struct pr_metric *m = &pr_metrics[id];
        if (m->kind != KIND_RATE)
            continue;
        int of = pr_device_slot(d->out.kind, m->of);
        double growth = of < 0 ? NAN : d->out.value[of] - d->previous[of];
        d->out.value[slot] = (growth < 0 ? 0 : growth) / dt * m->scale;
    }
}

static bool is_there(struct pr_replayed_devices *d, struct pr_replayed_device *one, int64_t sample,
                     bool machine, int64_t elapsed)
{
    if (one->first > sample || one->last < sample)
        return false;
    if (one->out.kind == DEVICE_GPU) /* without a reading it has a row without values */
        return one->known && has_any(one);
    if (!machine)
        return false;
    return one->out.kind == DEVICE_CORE ? place_core(d, one, sample, elapsed) : one->known;
}

void pr_replayed_devices_step(struct pr_replayed_devices *d, int64_t sample, bool machine,
                              struct proctor_snapshot *s)
{
    double dt = pr_seconds(s->machine_interval);
    s->device_count = 0;
    if (d->code == 0 && !pr_snapshot_reserve(s, 0, d->count))
        d->code = -ENOMEM;
    for (int kind = DEVICE_CORE + 1; kind < DEVICE_KINDS; kind++)
        take_rows(d, kind, sample);
    for (size_t i = 0; i < d->count && d->code == 0; i++) {
        struct pr_replayed_device *one = &d->items[i];
        if (!is_there(d, one, sample, machine, s->elapsed))
            continue;
        derive(one, dt < MACHINE_RATE_LEAST ? NAN : dt);
        memcpy(one->previous, one->out.value, sizeof one->previous);
        struct pr_device *to = &s->devices[s->device_count++];
        *to = one->out;
        to->model = *one->uuid ? one->model : NULL;
        to->uuid = *one->uuid ? one->uuid : NULL;
    }
    for (int kind = 0; kind < DEVICE_KINDS && d->code == 0; kind++)
        d->code = d->rows[kind].code;
}

void pr_replayed_devices_close(struct pr_replayed_devices *d)
{
    for (size_t i = 0; i < d->count; i++)
        free(d->items[i].ahead);
    free(d->items);
    for (int kind = 0; kind < DEVICE_KINDS; kind++)
        pr_cursor_close(&d->rows[kind]);
    *d = (struct pr_replayed_devices){0};
}
