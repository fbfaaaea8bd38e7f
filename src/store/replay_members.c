/* SPDX-License-Identifier: Apache-2.0 */
/* Members from rows of what changed: each has the values of its last row until it is gone; rates
 * and ratios are derived again. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/replay_parts.h"
#include "util/clock.h"

#define START_SLACK (NS_PER_S / 50) /* start times come in hundredths of a second */

enum {
    ENTITY_ID,
    ENTITY_NAME,
    ENTITY_PID,
    ENTITY_PPID,
    ENTITY_STARTED,
    ENTITY_FIRST,
    ENTITY_LAST,
    ENTITY_MATCH
};
/* The first files had no rules. */
#define ENTITIES(rule)                                                                             \
    "SELECT id, name, pid, ppid, started, first, last, " rule " FROM entities"                     \
    " WHERE kind = 'process' AND first IS NOT NULL ORDER BY first, id"

static void next_entity(struct pr_replayed_members *m)
{
    int code = m->code < 0 ? m->code : pr_query_step(m->entities);
    m->more = code == 1;
    m->next_first = m->more ? pr_query_get_int(m->entities, ENTITY_FIRST) : INT64_MAX;
    if (code < 0)
        m->code = code;
}

void pr_replayed_members_open(struct pr_replayed_members *m, const struct pr_stored *r)
{
    *m = (struct pr_replayed_members){.stored = r};
    if (pr_query_new(&m->entities, r->db, ENTITIES("match")) < 0)
        m->code = pr_query_new(&m->entities, r->db, ENTITIES("NULL"));
    next_entity(m);
    pr_cursor_open(&m->rows, r, TABLE_PROCESS);
}

/* Where it is, or would be. */
static size_t place_of(const struct pr_replayed_members *m, int64_t entity)
{
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->items[middle].entity < entity)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct pr_replayed_member *pr_replayed_member_find(const struct pr_replayed_members *m,
                                                         int64_t entity)
{
    size_t at = place_of(m, entity);
    return at < m->count && m->items[at].entity == entity ? &m->items[at] : NULL;
}

/* Room for one more there; NULL when memory is out. */
static struct pr_replayed_member *insert(struct pr_replayed_members *m, size_t at)
{
    if (m->count == m->cap) {
        size_t cap = m->cap ? m->cap * 2 : 64;
        struct pr_replayed_member *items = realloc(m->items, cap * sizeof *items);
        if (!items)
            return NULL;
        m->items = items;
        m->cap = cap;
    }
    memmove(&m->items[at + 1], &m->items[at], (m->count - at) * sizeof *m->items);
    m->count++;
    return &m->items[at];
}

/* The one text that all members of a rule share; NULL for none. */
static const char *rule_of(struct pr_replayed_members *m, const char *name)
{
    for (int i = 0; i < MATCHES_MOST && name; i++) {
        if (!m->rules[i])
            m->rules[i] = strdup(name);
        if (!m->rules[i] || strcmp(m->rules[i], name) == 0)
            return m->rules[i];
    }
    return NULL;
}

static void come(struct pr_replayed_members *m)
{
    struct pr_query *q = m->entities;
    int64_t entity = pr_query_get_int(q, ENTITY_ID);
    const char *name = pr_query_get_text(q, ENTITY_NAME);
    struct pr_replayed_member *one = insert(m, place_of(m, entity));
    if (!one) {
        m->code = -ENOMEM;
        return;
    }
    *one = (struct pr_replayed_member){
        .entity = entity,
        .last = pr_query_is_null(q, ENTITY_LAST) ? INT64_MAX : pr_query_get_int(q, ENTITY_LAST)};
    one->out.pid = (pid_t)pr_query_get_int(q, ENTITY_PID);
    one->out.ppid = (pid_t)pr_query_get_int(q, ENTITY_PPID);
    one->out.started = pr_stored_time(q, ENTITY_STARTED);
    snprintf(one->out.comm, sizeof one->out.comm, "%s", name ? name : "");
    one->out.match = rule_of(m, pr_query_get_text(q, ENTITY_MATCH));
    pr_values_none(one->value, PROC_METRICS);
    pr_values_none(one->previous, PROC_METRICS);
}

static void leave(struct pr_replayed_members *m, int64_t sample)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (m->items[i].last < sample)
            continue;
        if (kept < i)
            m->items[kept] = m->items[i];
        kept++;
    }
    m->count = kept;
}

static void take_rows(struct pr_replayed_members *m, int64_t sample, int64_t elapsed)
{
    for (; m->rows.on && m->rows.sample <= sample; pr_cursor_next(&m->rows)) {
        int64_t entity = pr_query_get_int(m->rows.query, 1);
        size_t at = place_of(m, entity);
        if (at == m->count || m->items[at].entity != entity)
            continue;
        pr_cursor_values(&m->rows, m->items[at].value);
        m->items[at].known = true;
        m->items[at].written = elapsed;
    }
}

/* As the ledger has it (ledger.c): whoever was born while we recorded began with nothing, others
 * with what they had. */
static void join(struct pr_replayed_member *one, int64_t run_started)
{
    bool inside = one->out.started + START_SLACK >= run_started;
    one->told = true;
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metric_in_ledger((enum pr_metric_id)id))
            one->previous[id] = inside ? 0 : one->value[id];
}

static void put(struct pr_replayed_member *one, struct proctor_snapshot *s,
                const struct pr_basis *basis, int64_t run_started)
{
    struct pr_member *to = &s->members[s->member_count++];
    double age = pr_seconds(s->elapsed - one->written);
    if (!one->told)
        join(one, run_started);
    pr_derive(one->value, one->previous, basis, NULL);
    memcpy(one->previous, one->value, sizeof one->previous);
    *to = one->out;
    memcpy(to->value, one->value, sizeof to->value);
    to->value[METRIC_MEM_PSS_AGE] += age; /* it does not make a row by itself */
}

void pr_replayed_members_step(struct pr_replayed_members *m, int64_t sample,
                              struct proctor_snapshot *s, const struct pr_basis *basis)
{
    leave(m, sample);
    for (; m->more && m->next_first <= sample; next_entity(m))
        come(m);
    take_rows(m, sample, s->elapsed);
    s->member_count = 0;
    if (m->code == 0 && !pr_snapshot_reserve(s, m->count, 0))
        m->code = -ENOMEM;
    for (size_t i = 0; i < m->count && m->code == 0; i++)
        if (m->items[i].known)
            put(&m->items[i], s, basis, m->stored->started);
    if (m->rows.code < 0 && m->code == 0)
        m->code = m->rows.code;
}

void pr_replayed_members_close(struct pr_replayed_members *m)
{
    pr_query_free(m->entities);
    pr_cursor_close(&m->rows);
    for (int i = 0; i < MATCHES_MOST; i++)
        free(m->rules[i]);
    free(m->items);
    *m = (struct pr_replayed_members){0};
}
