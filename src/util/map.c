/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing, linear probing, removal by shifting back: no tombstones, so a map that has seen
 * millions of pids is as fast as a new one. */
#include "util/map.h"

#include <stdlib.h>

static size_t place(const struct pr_map *m, uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (m->cap - 1);
}

static struct pr_map_slot *find(const struct pr_map *m, uint64_t key)
{
    size_t i = place(m, key);
    while (m->slots[i].key && m->slots[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

void pr_map_done(struct pr_map *m)
{
    free(m->slots);
    *m = (struct pr_map){0};
}

bool pr_map_reserve(struct pr_map *m, size_t count)
{
    size_t cap = m->cap ? m->cap : 64;
    while (cap / 2 < count)
        cap *= 2;
    if (cap == m->cap)
        return true;
    struct pr_map bigger = {calloc(cap, sizeof *bigger.slots), cap, m->count};
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key)
            *find(&bigger, m->slots[i].key) = m->slots[i];
    free(m->slots);
    *m = bigger;
    return true;
}

bool pr_map_set(struct pr_map *m, uint64_t key, uint64_t value)
{
    if (!pr_map_reserve(m, m->count + 1))
        return false;
    struct pr_map_slot *slot = find(m, key);
    m->count += slot->key == 0;
    *slot = (struct pr_map_slot){key, value};
    return true;
}

bool pr_map_get(const struct pr_map *m, uint64_t key, uint64_t *ret)
{
    if (!m->cap)
        return false;
    const struct pr_map_slot *slot = find(m, key);
    if (slot->key)
        *ret = slot->value;
    return slot->key != 0;
}

void pr_map_remove(struct pr_map *m, uint64_t key)
{
    if (!m->cap)
        return;
    struct pr_map_slot *slot = find(m, key);
    if (!slot->key)
        return;
    m->count--;
    size_t hole = (size_t)(slot - m->slots);
    for (size_t i = (hole + 1) & (m->cap - 1); m->slots[i].key; i = (i + 1) & (m->cap - 1)) {
        size_t home = place(m, m->slots[i].key);
        /* The entry at i may fill the hole unless its home lies cyclically in (hole, i]. */
        if (((i - home) & (m->cap - 1)) >= ((i - hole) & (m->cap - 1))) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct pr_map_slot){0};
}
