/* SPDX-License-Identifier: Apache-2.0 */
/* Events, marks and phases, by time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "store/replay_parts.h"
#include "util/clock.h"

/* Of all three: when it was, then what is needed of it. Of phases that ended together the inner
 * ones come first. */
static const char *const streams[STREAMS] = {
    [STREAM_EVENTS] = "SELECT elapsed, event, name, seconds, text, " STORED_OBJECT(
        "data") " FROM events ORDER BY elapsed, id",
    [STREAM_BEGINS] = "SELECT start, id, name, start, seconds, depth, " STORED_OBJECT(
        "data") " FROM phases ORDER BY start, depth, id",
    [STREAM_ENDS] =
        "SELECT start + CAST(round(seconds * 1e9) AS INTEGER) AS at, id, name, start,"
        " seconds, depth, " STORED_OBJECT("data") " FROM phases WHERE seconds IS NOT NULL"
                                                  " ORDER BY at, depth DESC, id DESC",
};

static void next(struct pr_replayed_notes *n, int i)
{
    int code = n->code < 0 ? n->code : pr_query_step(n->query[i]);
    n->at[i] = code == 1 ? pr_stored_time(n->query[i], 0) : INT64_MAX;
    if (code < 0)
        n->code = code;
}

void pr_replayed_notes_open(struct pr_replayed_notes *n, const struct pr_stored *r)
{
    *n = (struct pr_replayed_notes){0};
    for (int i = 0; i < STREAMS; i++) {
        int code = pr_query_new(&n->query[i], r->db, streams[i]);
        n->code = n->code < 0 ? n->code : code;
    }
    for (int i = 0; i < STREAMS; i++)
        next(n, i);
}

/* What another version may call so is trouble enough to be kept. */
static enum pr_event_type type_of(const char *name)
{
    for (int type = 0; type < EVENT_PROBLEM; type++)
        if (strcmp(pr_event_type_name((enum pr_event_type)type), name) == 0)
            return (enum pr_event_type)type;
    return EVENT_PROBLEM;
}

static void tell_event(struct pr_query *q, const struct pr_replay_to *to, void *of)
{
    const char *type = pr_query_get_text(q, 1), *name = pr_query_get_text(q, 2),
               *text = pr_query_get_text(q, 4), *data = pr_query_get_text(q, 5);
    int64_t elapsed = pr_stored_time(q, 0);
    if (type && strcmp(type, "mark") == 0) {
        if (to->mark)
            to->mark(of, elapsed, name ? name : "", data);
        return;
    }
    /* Sinks cut it off to whole nanoseconds: it must not be below. */
    struct pr_event event = {.type = type_of(type ? type : ""),
                             .at = ((double)elapsed + 0.1) / (double)NS_PER_S,
                             .seconds = pr_value_known(pr_query_get_number(q, 3))};
    snprintf(event.text, sizeof event.text, "%s", text ? text : "");
    if (to->event)
        to->event(of, &event);
}

static void tell_phase(struct pr_query *q, void (*tell)(void *, const struct pr_replayed_phase *),
                       void *of)
{
    const char *name = pr_query_get_text(q, 2);
    struct pr_replayed_phase phase = {.id = pr_query_get_int(q, 1),
                                      .name = name ? name : "",
                                      .start = pr_stored_time(q, 3),
                                      .end = pr_stored_time(q, 0),
                                      .seconds = pr_query_get_number(q, 4),
                                      .depth = (int)pr_query_get_int(q, 5),
                                      .data = pr_query_get_text(q, 6)};
    if (tell)
        tell(of, &phase);
}

/* A phase that had no length begins before it ends. */
static int earliest(const struct pr_replayed_notes *n)
{
    int best = 0;
    for (int i = 1; i < STREAMS; i++)
        if (n->at[i] < n->at[best])
            best = i;
    return best;
}

void pr_replayed_notes_step(struct pr_replayed_notes *n, int64_t until,
                            const struct pr_replay_to *to, void *of)
{
    for (int i = earliest(n); n->at[i] <= until && n->at[i] < INT64_MAX; i = earliest(n)) {
        if (i == STREAM_EVENTS)
            tell_event(n->query[i], to, of);
        else
            tell_phase(n->query[i], i == STREAM_BEGINS ? to->begin : to->end, of);
        next(n, i);
    }
}

void pr_replayed_notes_close(struct pr_replayed_notes *n)
{
    for (int i = 0; i < STREAMS; i++)
        pr_query_free(n->query[i]);
    *n = (struct pr_replayed_notes){0};
}
