/* SPDX-License-Identifier: Apache-2.0 */
/* Who took part, and how each ended. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "store/replay_parts.h"

enum {
    ROLL_ENTITY,
    ROLL_PID,
    ROLL_PPID,
    ROLL_NAME,
    ROLL_STARTED,
    ROLL_ENDED,
    ROLL_CODE,
    ROLL_SIGNAL,
    ROLL_SAMPLES,
    ROLL_KNOWN_BY,
    ROLL_CPU,
    ROLL_PEAK,
    ROLL_FIRST_IO,
};

static void next(struct pr_replayed_roll *l)
{
    int code = l->code < 0 ? l->code : pr_query_step(l->query);
    l->more = code == 1;
    if (l->more)
        l->ended = pr_query_is_null(l->query, ROLL_ENDED) ? INT64_MAX
                                                          : pr_stored_time(l->query, ROLL_ENDED);
    if (code < 0)
        l->code = code;
}

void pr_replayed_roll_open(struct pr_replayed_roll *l, const struct pr_stored *r)
{
    *l = (struct pr_replayed_roll){0};
    l->code = pr_query_new(&l->query, r->db,
                           "SELECT id, pid, ppid, name, started, ended, exit_code, exit_signal,"
                           " samples, known_by, cpu_time_seconds, mem_rss_peak_bytes,"
                           " io_read_bytes, io_write_bytes, io_rchar_bytes, io_wchar_bytes"
                           " FROM entities WHERE kind = 'process'"
                           " ORDER BY ended IS NULL, ended, id");
    next(l);
}

/* As wait has it; -1 for unknown. */
static int status_of(struct pr_query *q)
{
    if (!pr_query_is_null(q, ROLL_SIGNAL))
        return (int)pr_query_get_int(q, ROLL_SIGNAL) & 0x7f;
    return pr_query_is_null(q, ROLL_CODE) ? -1 : ((int)pr_query_get_int(q, ROLL_CODE) & 0xff) << 8;
}

static enum pr_roll_way way_of(const char *name)
{
    for (int way = ROLL_SAMPLED; way <= ROLL_RECORD; way++)
        if (name && strcmp(pr_roll_way_name((enum pr_roll_way)way), name) == 0)
            return (enum pr_roll_way)way;
    return ROLL_SAMPLED;
}

static struct pr_roll_entry entry_of(struct pr_query *q)
{
    const char *name = pr_query_get_text(q, ROLL_NAME);
    struct pr_roll_entry e = {.pid = (pid_t)pr_query_get_int(q, ROLL_PID),
                              .ppid = (pid_t)pr_query_get_int(q, ROLL_PPID),
                              .started = pr_stored_time(q, ROLL_STARTED),
                              .ended = pr_stored_time(q, ROLL_ENDED),
                              .cpu = pr_query_get_number(q, ROLL_CPU),
                              .peak = pr_query_get_number(q, ROLL_PEAK),
                              .status = status_of(q),
                              .looks = (unsigned)pr_query_get_int(q, ROLL_SAMPLES),
                              .way = way_of(pr_query_get_text(q, ROLL_KNOWN_BY))};
    for (int i = 0; i < ROLL_IO; i++)
        e.io[i] = pr_query_get_number(q, ROLL_FIRST_IO + i);
    snprintf(e.comm, sizeof e.comm, "%s", name ? name : "");
    return e;
}

/* It was there when the record broke off. */
static void take_last(struct pr_roll_entry *e, const struct pr_replayed_member *m)
{
    e->cpu = m->value[METRIC_CPU_TIME];
    e->peak = m->value[METRIC_MEM_RSS_PEAK];
    for (int i = 0; i < ROLL_IO; i++)
        e->io[i] = m->value[METRIC_IO_READ + i];
    e->looks = e->looks ? e->looks : 1;
}

void pr_replayed_roll_step(struct pr_replayed_roll *l, int64_t until,
                           const struct pr_replayed_members *members, const struct pr_replay_to *to,
                           void *of)
{
    for (; l->more && l->ended <= until; next(l)) {
        struct pr_roll_entry e = entry_of(l->query);
        const struct pr_replayed_member *m =
            members ? pr_replayed_member_find(members, pr_query_get_int(l->query, ROLL_ENTITY))
                    : NULL;
        if (isnan(e.cpu) && m)
            take_last(&e, m);
        l->count++;
        if (to->entry)
            to->entry(of, &e);
    }
}

void pr_replayed_roll_close(struct pr_replayed_roll *l)
{
    pr_query_free(l->query);
    *l = (struct pr_replayed_roll){0};
}
