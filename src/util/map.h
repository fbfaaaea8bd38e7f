/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from 64-bit keys to 64-bit values; key 0 is not allowed. It grows, and keeps its
 * memory when entries go. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pr_map_slot {
    uint64_t key, value;
};

struct pr_map {
    struct pr_map_slot *slots;
    size_t cap, count; /* cap is a power of two or 0 */
};

void pr_map_done(struct pr_map *m);
/* False when memory is out. */
bool pr_map_set(struct pr_map *m, uint64_t key, uint64_t value);
bool pr_map_get(const struct pr_map *m, uint64_t key, uint64_t *ret);
void pr_map_remove(struct pr_map *m, uint64_t key);
/* Makes room so that `count` entries fit without allocating. False when memory is out. */
bool pr_map_reserve(struct pr_map *m, size_t count);
