/* SPDX-License-Identifier: Apache-2.0 */
#include "core/entity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/match.h"

static void free_all(struct pr_entity **items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(items[i]);
    free(items);
}

void pr_entities_done(struct pr_entities *set)
{
    free_all(set->items, set->count);
    free_all(set->spare, set->spare_count);
    free(set->scratch);
    pr_map_done(&set->by_pid);
    *set = (struct pr_entities){0};
}

/* The spare list can take every member there is, so that dropping one never allocates. */
static bool grow(struct pr_entities *set)
{
    if (set->count < set->cap)
        return true;
    size_t cap = set->cap ? set->cap * 2 : 256; /* pointers only */
    struct pr_entity **items = realloc(set->items, cap * sizeof *items);
    if (!items)
        return false;
    set->items = items;
    struct pr_entity **spare = realloc(set->spare, cap * sizeof *spare);
    if (!spare)
        return false;
    set->spare = spare;
    struct pr_entity **scratch = realloc(set->scratch, cap * sizeof *scratch);
    if (!scratch)
        return false;
    set->scratch = scratch;
    set->cap = set->spare_cap = cap;
    return true;
}

bool pr_entity_is_dead(const struct pr_entity *e)
{
    return (e->state == 'Z' || e->state == 'X') && !(e->value[METRIC_THREADS] > 1);
}

bool pr_entity_is_aged(const struct pr_entity *e, enum pr_metric_id id)
{
    return (e->aged && pr_metric_ages(id)) || (e->io_old && (pr_metrics[id].needs & READ_IO));
}

/* Who has ended has run to do so, and is not read any more. */
static bool is_of_now(const struct pr_entity *e, enum pr_metric_id id)
{
    return !pr_entity_is_aged(e, id) && !(pr_entity_is_dead(e) && pr_metric_ages(id));
}

void pr_entity_now(const struct pr_entity *e, double *ret)
{
    memcpy(ret, e->value, sizeof e->value);
    bool all = !e->aged && !pr_entity_is_dead(e); /* I/O is old of nobody else */
    for (int id = 0; id < PROC_METRICS && !all; id++)
        if (!is_of_now(e, (enum pr_metric_id)id))
            ret[id] = NAN;
}

double pr_entity_io(const struct pr_entity *e, int i)
{
    double read = e->value[METRIC_IO_READ + i];
    return e->end.io_told[i] > 0 ? fmax(read, e->end.io_told[i] + e->end.io_brought[i]) : read;
}

bool pr_entity_is_here(const struct pr_entity *e)
{
    return e->life == LIFE_ALIVE && !e->left && !pr_entity_is_dead(e);
}

static void blank(struct pr_entity *e, pid_t pid, uint64_t start)
{
    struct pr_mean *mean = e->mean;
    struct pr_named *named = e->named;
    *e = (struct pr_entity){.pid = pid,
                            .start = start,
                            .state = '?',
                            .first = true,
                            .match = -1,
                            .ran = -1,
                            .ran_seen = -1,
                            .mean = mean,
                            .named = named,
                            .end = {.status = -1, .own_cpu = -1, .mark = NAN}};
    if (mean)
        memset(mean, 0, PROC_METRICS * sizeof *mean);
    if (named)
        memset(named, 0, sizeof *named);
    for (int i = 0; i < SOURCE_COUNT; i++)
        e->fd[i] = -1;
    for (int i = 0; i < PROC_METRICS; i++)
        e->value[i] = e->previous[i] = NAN;
}

/* With all that belongs to it, in one piece. */
static struct pr_entity *new_one(const struct pr_entities *set)
{
    size_t mean = set->with_mean ? PROC_METRICS * sizeof(struct pr_mean) : 0;
    struct pr_entity *e = malloc(sizeof *e + mean + (set->with_names ? sizeof *e->named : 0));
    if (!e)
        return NULL;
    e->mean = set->with_mean ? (struct pr_mean *)(e + 1) : NULL;
    e->named = set->with_names ? (struct pr_named *)((char *)(e + 1) + mean) : NULL;
    return e;
}

/* Some more than one: members come and go, and those who go are kept for a tick or two. */
static bool stock_up(struct pr_entities *set)
{
    while (set->spare_count < 8) {
        struct pr_entity *e = new_one(set);
        if (!e)
            break;
        set->spare[set->spare_count++] = e;
    }
    return set->spare_count > 0;
}

struct pr_entity *pr_entities_add(struct pr_entities *set, pid_t pid, uint64_t start)
{
    if (!grow(set) || !pr_map_reserve(&set->by_pid, set->by_pid.count + 1))
        return NULL;
    if (!set->spare_count && !stock_up(set))
        return NULL;
    struct pr_entity *e = set->spare[--set->spare_count];
    blank(e, pid, start);
    pr_map_set(&set->by_pid, (uint64_t)pid, (uint64_t)(uintptr_t)e);
    set->items[set->count++] = e;
    set->started++;
    return e;
}

struct pr_entity *pr_entities_find_any(const struct pr_entities *set, pid_t pid)
{
    uint64_t e;
    if (pid <= 0 || !pr_map_get(&set->by_pid, (uint64_t)pid, &e))
        return NULL;
    return (struct pr_entity *)(uintptr_t)e;
}

struct pr_entity *pr_entities_find(const struct pr_entities *set, pid_t pid)
{
    struct pr_entity *e = pr_entities_find_any(set, pid);
    return e && e->life == LIFE_ALIVE ? e : NULL;
}

void pr_entities_vanish(struct pr_entities *set, struct pr_entity *e)
{
    if (e->life != LIFE_ALIVE)
        return;
    e->life = LIFE_VANISHED;
    set->exited++;
}

static void recycle(struct pr_entities *set, struct pr_entity *e)
{
    if (pr_entities_find_any(set, e->pid) == e)
        pr_map_remove(&set->by_pid, (uint64_t)e->pid);
    if (set->spare_count < set->spare_cap)
        set->spare[set->spare_count++] = e;
    else
        free(e);
}

void pr_entities_drop_last(struct pr_entities *set)
{
    recycle(set, set->items[--set->count]);
}

void pr_entities_sweep(struct pr_entities *set)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct pr_entity *e = set->items[i];
        if (e->life != LIFE_SETTLED)
            set->items[kept++] = e;
        else
            recycle(set, e);
    }
    set->count = kept;
}
