/* SPDX-License-Identifier: Apache-2.0 */
#include "store/replay.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "store/replay_parts.h"
#include "util/clock.h"

struct replay {
    const struct pr_stored *stored;
    const struct pr_replay_to *to;
    void *of;
    struct pr_cursor job, machine;
    struct pr_query *marks; /* a JSON object, row by row */
    struct pr_buf marks_taken;
    struct pr_replayed_members members;
    struct pr_replayed_devices devices;
    struct pr_replayed_notes notes;
    struct pr_replayed_roll roll;
    struct proctor_snapshot now;
    int64_t before; /* elapsed at the sample before; -1 for none */
    bool machine_read;
    bool pss_seen; /* in a sample before */
};

enum { JOB_ELAPSED = 1, JOB_INTERVAL };

static enum pr_mark mark_of(const char *name)
{
    for (int mark = MARK_NONE + 1; mark < MARK_COUNT; mark++)
        if (strcmp(pr_mark_name((enum pr_mark)mark), name) == 0)
            return (enum pr_mark)mark;
    return MARK_NONE;
}

/* There are few different ones: mostly they are those of the sample before. */
static int take_marks(struct replay *p)
{
    const char *json = pr_query_get_text(p->job.query, pr_cursor_more(&p->job));
    int code = 0;
    json = json ? json : "{}";
    if (strcmp(json, pr_buf_text(&p->marks_taken)) == 0)
        return 0;
    pr_buf_reset(&p->marks_taken);
    pr_buf_str(&p->marks_taken, json);
    memset(p->now.mark, MARK_NONE, sizeof p->now.mark);
    pr_query_text(p->marks, 1, json);
    while ((code = pr_query_step(p->marks)) == 1) {
        const char *key = pr_query_get_text(p->marks, 0), *name = pr_query_get_text(p->marks, 1);
        enum pr_metric_id id = key ? pr_metric_find(key) : METRIC_NONE;
        if (id != METRIC_NONE && name)
            p->now.mark[id] = (unsigned char)mark_of(name);
    }
    pr_query_reset(p->marks);
    return code == -EINVAL ? -EUCLEAN : code;
}

static int take_row(struct replay *p, int64_t *ret_sample)
{
    struct proctor_snapshot *s = &p->now;
    *ret_sample = p->job.sample;
    s->elapsed = pr_stored_time(p->job.query, JOB_ELAPSED);
    s->time = p->stored->started + s->elapsed;
    s->interval = s->machine_interval = pr_stored_time(p->job.query, JOB_INTERVAL);
    s->first = p->before < 0;
    pr_values_none(s->value, METRIC_COUNT);
    pr_cursor_values(&p->job, s->value);
    int code = take_marks(p);
    while (p->machine.on && p->machine.sample < *ret_sample)
        pr_cursor_next(&p->machine);
    p->machine_read = p->machine.on && p->machine.sample == *ret_sample;
    if (p->machine_read) {
        s->machine_interval = pr_stored_time(p->machine.query, 1);
        pr_cursor_values(&p->machine, s->value);
    }
    pr_cursor_next(&p->job);
    s->last = !p->job.on && p->stored->state == RUN_ENDED;
    return code < 0 ? code : p->job.code < 0 ? p->job.code : p->machine.code;
}

/* I/O of each was read in turn: what came between two rows of one is of no known time. */
static bool in_turn(const struct proctor_snapshot *s)
{
    return s->mark[METRIC_IO_WRITE_RATE] == MARK_AGED ||
           (isnan(s->value[METRIC_IO_WRITE_RATE]) && s->mark[METRIC_IO_WRITE] == MARK_LOWER_BOUND);
}

/* As the session had it (session.c): no rates over a sliver of time, nor at the end of a job. */
static struct pr_basis basis_of(const struct replay *p)
{
    const struct proctor_snapshot *s = &p->now;
    double dt = pr_seconds(s->interval);
    bool closing = s->last && isnan(s->value[METRIC_PROCS]);
    bool none = s->first || closing || dt < fmin(p->stored->interval, 0.1) / 2;
    dt = none ? NAN : dt;
    return (struct pr_basis){dt, &p->stored->limits, !p->pss_seen, in_turn(s) ? NAN : dt};
}

static int failure_of(const struct replay *p)
{
    const int codes[] = {p->members.code, p->devices.code, p->notes.code, p->roll.code};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] < 0)
            return codes[i];
    return 0;
}

static int step(struct replay *p)
{
    int64_t sample;
    int code = take_row(p, &sample);
    if (code < 0)
        return code;
    pr_replayed_notes_step(&p->notes, p->now.elapsed, p->to, p->of);
    pr_replayed_roll_step(&p->roll, p->now.time, NULL, p->to, p->of);
    p->now.enrolled = p->roll.count;
    if (p->to->members) {
        struct pr_basis basis = basis_of(p);
        pr_replayed_members_step(&p->members, sample, &p->now, &basis);
    }
    if (p->to->devices)
        pr_replayed_devices_step(&p->devices, sample, p->machine_read, &p->now);
    p->before = p->now.elapsed;
    p->pss_seen |= !isnan(p->now.value[METRIC_MEM_PSS]);
    if (p->to->sample)
        p->to->sample(p->of, &p->now);
    return failure_of(p);
}

static int open_all(struct replay *p)
{
    const struct pr_stored *r = p->stored;
    int code = pr_db_run(r->db, "BEGIN"); /* all cursors see the same moment */
    if (code == 0)
        code = pr_query_new(&p->marks, r->db, "SELECT key, value FROM json_each(?1)");
    if (code < 0)
        return code;
    pr_cursor_open(&p->job, r, TABLE_JOB);
    pr_cursor_open(&p->machine, r, TABLE_SYSTEM);
    pr_replayed_notes_open(&p->notes, r);
    pr_replayed_roll_open(&p->roll, r);
    if (p->to->members)
        pr_replayed_members_open(&p->members, r);
    if (p->to->devices)
        pr_replayed_devices_open(&p->devices, r);
    return p->job.code < 0 ? p->job.code : p->machine.code;
}

static void close_all(struct replay *p)
{
    pr_cursor_close(&p->job);
    pr_cursor_close(&p->machine);
    pr_query_free(p->marks);
    pr_buf_done(&p->marks_taken);
    pr_replayed_members_close(&p->members);
    pr_replayed_devices_close(&p->devices);
    pr_replayed_notes_close(&p->notes);
    pr_replayed_roll_close(&p->roll);
    pr_snapshot_done(&p->now);
    pr_db_run(p->stored->db, "ROLLBACK");
}

int pr_replay(const struct pr_stored *r, const struct pr_replay_to *to, void *of,
              struct proctor_error *err)
{
    struct replay p = {.stored = r, .to = to, .of = of, .before = -1};
    int code = open_all(&p);
    memcpy(p.now.limit, r->limits.total, sizeof p.now.limit);
    while (code == 0 && p.job.on)
        code = step(&p);
    if (code == 0) {
        pr_replayed_notes_step(&p.notes, INT64_MAX, to, of);
        pr_replayed_roll_step(&p.roll, INT64_MAX, &p.members, to, of);
        code = failure_of(&p);
    }
    if (code < 0)
        code = pr_stored_failure(r, code, err);
    close_all(&p);
    return code;
}

int pr_replay_notes(const struct pr_stored *r, const struct pr_replay_to *to, void *of,
                    struct proctor_error *err)
{
    struct pr_replayed_notes notes;
    pr_db_run(r->db, "BEGIN");
    pr_replayed_notes_open(&notes, r);
    pr_replayed_notes_step(&notes, INT64_MAX, to, of);
    int code = notes.code < 0 ? pr_stored_failure(r, notes.code, err) : 0;
    pr_replayed_notes_close(&notes);
    pr_db_run(r->db, "ROLLBACK");
    return code;
}
