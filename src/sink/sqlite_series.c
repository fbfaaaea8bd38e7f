/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/sqlite_series.h"

#include <stdlib.h>

void pr_series_done(struct record_series *f)
{
    free(f->slots);
    free(f->values);
    pr_map_done(&f->by_key);
}

static size_t stride(const struct record_series *f)
{
    return f->parts * (size_t)f->columns.count;
}

double *pr_series_values(const struct record_series *f, const struct record_slot *slot,
                         enum record_part part)
{
    return f->values + (size_t)(slot - f->slots) * stride(f) + part * (size_t)f->columns.count;
}

struct record_slot *pr_series_find(const struct record_series *f, uint64_t key)
{
    uint64_t at;
    return pr_map_get(&f->by_key, key, &at) ? &f->slots[at] : NULL;
}

static bool grow(struct record_series *f)
{
    size_t cap = f->cap ? f->cap * 2 : 32;
    struct record_slot *slots = realloc(f->slots, cap * sizeof *slots);
    if (slots)
        f->slots = slots;
    double *values = slots ? realloc(f->values, cap * stride(f) * sizeof *values) : NULL;
    if (!values)
        return false;
    f->values = values;
    f->cap = cap;
    return true;
}

struct record_slot *pr_series_add(struct record_series *f, uint64_t key)
{
    while (f->hole < f->count && f->slots[f->hole].used)
        f->hole++;
    if (f->hole == f->cap && !grow(f))
        return NULL;
    if (!pr_map_set(&f->by_key, key, f->hole))
        return NULL;
    struct record_slot *slot = &f->slots[f->hole];
    f->count += f->hole == f->count;
    *slot = (struct record_slot){.key = key, .used = true};
    return slot;
}

static void drop(struct record_series *f, struct record_slot *slot)
{
    size_t at = (size_t)(slot - f->slots);
    pr_map_remove(&f->by_key, slot->key);
    slot->used = false;
    f->hole = at < f->hole ? at : f->hole;
}

static void settle(struct record_slot *slot, bool committed)
{
    if (!committed) { /* the next row is a whole one, and so is its own where that is gone */
        slot->id = slot->fresh ? 0 : slot->id;
        slot->row = slot->held = 0;
        slot->asked = false;
        slot->ppid = -1; /* who it is may have been in it, too */
    }
    slot->fresh = slot->going = false;
}

void pr_series_settle(struct record_series *f, bool committed)
{
    for (size_t i = 0; i < f->count; i++) {
        struct record_slot *slot = &f->slots[i];
        if (slot->used && slot->going && committed)
            drop(f, slot);
        else if (slot->used)
            settle(slot, committed);
    }
}
