/* SPDX-License-Identifier: Apache-2.0 */
/* What happened besides samples: events, marks, phases, processes that have ended. */
#include <errno.h>
#include <sys/wait.h>

#include "sink/sqlite.h"
#include "util/clock.h"

int pr_record_events(struct record *r)
{
    struct pr_event event;
    struct pr_query *q = r->query[QUERY_EVENT];
    int code = 0;
    while (code == 0 && pr_event_get(r->events, r->now.events, &event)) {
        r->now.events++;
        pr_query_int(q, 1, (int64_t)(event.at * 1e9));
        pr_query_text(q, 2, pr_event_type_name(event.type));
        pr_query_number(q, 3, event.seconds);
        pr_query_text(q, 4, event.text);
        code = pr_query_do(q);
    }
    return code;
}

/* --- marks and phases ------------------------------------------------------------------------- */

static int put_mark(struct record *r, const struct pr_note *note, const char *json)
{
    struct pr_query *q = r->query[QUERY_MARK];
    pr_query_int(q, 1, note->elapsed);
    pr_query_text(q, 2, json);
    return pr_query_do(q);
}

static int put_phase(struct record *r, enum record_query id, const char *json)
{
    struct pr_query *q = r->query[id];
    pr_query_text(q, 1, json);
    return pr_query_do(q);
}

/* Its begin may have been among the lines that were lost. */
static int put_phase_end(struct record *r, const char *json)
{
    int code = put_phase(r, QUERY_PHASE_END, json);
    r->phase_ended = true;
    return code == 0 && pr_db_changes(r->db) == 0 ? put_phase(r, QUERY_PHASE_LATE, json) : code;
}

static int put_note(struct record *r, const struct pr_note *note, const char *json)
{
    switch (note->type) {
    case NOTE_EVENT:
        return put_mark(r, note, json);
    case NOTE_BEGIN:
        return put_phase(r, QUERY_PHASE, json);
    case NOTE_PHASE:
        return put_phase_end(r, json);
    }
    return -EINVAL;
}

static void say_behind(struct record *r)
{
    if (!r->now.notes.lost || r->behind)
        return;
    r->behind = true;
    pr_event_problem(r->events, pr_seconds(r->elapsed),
                     "%s: marks and phases come faster than they can be written; some are left out",
                     r->name);
}

int pr_record_notes(struct record *r)
{
    struct pr_note note;
    int code = 0;
    while (code == 0 && r->notes && pr_notes_next(r->notes, &r->now.notes, &note, &r->note)) {
        pr_buf_reset(&r->text);
        pr_buf_printf(&r->text, "{%s}", pr_buf_text(&r->note));
        code = put_note(r, &note, pr_buf_text(&r->text));
    }
    say_behind(r);
    return code;
}

/* --- who has ended ---------------------------------------------------------------------------- */

static void bind_status(struct pr_query *q, int at, int status)
{
    pr_query_null(q, at);
    pr_query_null(q, at + 1);
    if (status >= 0 && WIFEXITED(status))
        pr_query_int(q, at, WEXITSTATUS(status));
    else if (status >= 0)
        pr_query_int(q, at + 1, WTERMSIG(status));
}

static void bind_entry(struct pr_query *q, const struct pr_roll_entry *e)
{
    pr_query_int(q, 1, e->pid);
    pr_query_int(q, 2, e->started);
    pr_query_text(q, 3, e->comm);
    pr_query_int(q, 4, e->ppid);
    if (e->ended)
        pr_query_int(q, 5, e->ended);
    else
        pr_query_null(q, 5);
    bind_status(q, 6, e->status);
    pr_query_int(q, 8, e->looks);
    pr_query_text(q, 9, pr_roll_way_name(e->way));
    pr_query_number(q, 10, e->cpu);
    pr_query_number(q, 11, e->peak);
    for (int i = 0; i < ROLL_IO; i++)
        pr_query_number(q, 12 + i, e->io[i]);
}

/* Whoever no sample has had gets a row here. */
static int put_exit(struct record *r, const struct pr_roll_entry *e)
{
    struct pr_query *update = r->query[QUERY_END], *insert = r->query[QUERY_ENDED];
    bind_entry(update, e);
    int code = pr_query_do(update);
    if (code < 0 || pr_db_changes(r->db) > 0)
        return code;
    bind_entry(insert, e);
    pr_query_int(insert, 16, ++r->next_id);
    return pr_query_do(insert);
}

int pr_record_exits(struct record *r, size_t until)
{
    int code = 0;
    for (; r->now.exits < until && code == 0; r->now.exits++)
        code = put_exit(r, pr_roll_at(r->roll, r->now.exits));
    return code;
}
