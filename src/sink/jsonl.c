/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON object per line, each with its type: the run first, then samples, processes, events
 * and phases as they come, the summary last. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/dialect.h"
#include "core/line.h"
#include "sink/outfile.h"
#include "util/clock.h"

#define NOTES_PIECE 65536

struct jsonl {
    struct pr_sink sink;
    struct pr_outfile file;
    struct pr_select select;
    struct pr_events *events;
    char *run; /* members of the run's object */
    const struct pr_roll *roll;
    size_t events_done, exits_done; /* those that have been written */
    int64_t start, elapsed;         /* wall time of the start; elapsed at the last sample, ns */
    struct pr_notes *notes;
    struct pr_notes_place notes_place; /* up to where they have been written */
    struct pr_buf note;
    bool processes, begun, behind; /* behind: that notes were lost has been said */
};

static struct pr_json line_begin(struct jsonl *l, const char *type, int64_t elapsed)
{
    return pr_line_begin(&l->file.out, type, l->start, elapsed);
}

static void put_number(struct pr_json *j, const char *key, double v)
{
    pr_json_key(j, key);
    pr_json_number(j, v);
}

static void put_values(struct pr_json *j, const struct jsonl *l, unsigned scope,
                       const double *value)
{
    pr_json_key(j, "values");
    pr_json_open(j, '{');
    for (int id = 0; id < METRIC_COUNT; id++)
        if (pr_selected(&l->select, id) && (pr_metrics[id].scope & scope))
            put_number(j, pr_metrics[id].key, value[id]);
    pr_json_close(j, '}');
}

/* What is to be said about values, where anything is. */
static void put_marks(struct pr_json *j, const struct jsonl *l, const unsigned char *mark)
{
    bool any = false;
    for (int id = 0; id < METRIC_COUNT; id++) {
        if (!mark[id] || !pr_selected(&l->select, id))
            continue;
        if (!any) {
            pr_json_key(j, "marks");
            pr_json_open(j, '{');
        }
        any = true;
        pr_json_key(j, pr_metrics[id].key);
        pr_json_string(j, pr_mark_name((enum pr_mark)mark[id]));
    }
    if (any)
        pr_json_close(j, '}');
}

static void write_run(struct jsonl *l, const struct proctor_snapshot *s)
{
    l->begun = true;
    l->start = s->time - s->elapsed;
    struct pr_json j = line_begin(l, "run", 0);
    pr_line_members(&j, l->run);
    pr_line_end(&j);
}

static void write_sample(struct jsonl *l, const struct proctor_snapshot *s)
{
    struct pr_json j = line_begin(l, "sample", s->elapsed);
    put_number(&j, "interval", pr_seconds(s->interval));
    put_values(&j, l, SCOPE_JOB | SCOPE_SYSTEM, s->value);
    put_marks(&j, l, s->mark);
    pr_line_end(&j);
}

static void write_member(struct jsonl *l, const struct proctor_snapshot *s,
                         const struct pr_member *m)
{
    char started[40];
    struct pr_json j = line_begin(l, "process", s->elapsed);
    pr_clock_rfc3339(m->started, started, sizeof started);
    put_number(&j, "interval", pr_seconds(s->interval));
    put_number(&j, "pid", m->pid);
    put_number(&j, "ppid", m->ppid);
    pr_json_key(&j, "started");
    pr_json_string(&j, started);
    pr_json_key(&j, "command");
    pr_json_string(&j, m->comm);
    put_values(&j, l, SCOPE_PROC, m->value);
    pr_line_end(&j);
}

static void write_device(struct jsonl *l, const struct proctor_snapshot *s,
                         const struct pr_device *d)
{
    enum pr_metric_id id;
    bool wanted = false;
    for (int slot = 0; (id = pr_device_metric(d->kind, slot)) != METRIC_NONE; slot++)
        wanted |= pr_selected(&l->select, (int)id);
    if (!wanted)
        return;
    struct pr_json j = line_begin(l, "device", s->elapsed);
    put_number(&j, "interval",
               pr_seconds(d->kind == DEVICE_GPU ? s->interval : s->machine_interval));
    pr_json_key(&j, "kind");
    pr_json_string(&j, pr_device_kind_name(d->kind));
    pr_json_key(&j, "name");
    pr_json_string(&j, d->name);
    if (d->uuid) {
        pr_json_key(&j, "model");
        pr_json_string(&j, d->model);
        pr_json_key(&j, "uuid");
        pr_json_string(&j, d->uuid);
    }
    pr_json_key(&j, "counted");
    pr_json_bool(&j, d->counted);
    pr_json_key(&j, "values");
    pr_json_open(&j, '{');
    for (int slot = 0; (id = pr_device_metric(d->kind, slot)) != METRIC_NONE; slot++)
        if (pr_selected(&l->select, (int)id))
            put_number(&j, pr_metrics[id].key, d->value[slot]);
    pr_json_close(&j, '}');
    pr_line_end(&j);
}

static void write_events(struct jsonl *l)
{
    struct pr_event event;
    while (pr_event_get(l->events, l->events_done, &event)) {
        l->events_done++;
        pr_line_event(&l->file.out, l->start, &event);
    }
}

static void say_behind(struct jsonl *l)
{
    if (!l->notes_place.lost || l->behind)
        return;
    l->behind = true;
    pr_event_problem(l->events, pr_seconds(l->elapsed),
                     "%s: marks and phases come faster than they can be written; some are left out",
                     l->file.name);
}

/* In pieces, so that a full disk does not lose all of them together. */
static void write_notes(struct jsonl *l)
{
    struct pr_note note;
    while (l->notes && pr_notes_next(l->notes, &l->notes_place, &note, &l->note)) {
        pr_line_note(&l->file.out, l->start, note, pr_buf_text(&l->note));
        if (l->file.out.len < l->file.row + NOTES_PIECE)
            continue;
        pr_outfile_end(&l->file);
        pr_outfile_begin(&l->file, pr_seconds(note.elapsed));
    }
    say_behind(l);
}

/* One line for each process that has ended. */
static void write_exits(struct jsonl *l, size_t until)
{
    for (; l->exits_done < until; l->exits_done++) {
        const struct pr_roll_entry *e = pr_roll_at(l->roll, l->exits_done);
        if (!e->ended)
            continue;
        struct pr_json j = line_begin(l, "event", e->ended - l->start);
        pr_json_key(&j, "event");
        pr_json_string(&j, "exit");
        pr_roll_put(&j, e);
        pr_line_end(&j);
    }
}

static void jsonl_write(struct pr_sink *sink, const struct proctor_snapshot *s)
{
    struct jsonl *l = (struct jsonl *)sink;
    pr_outfile_begin(&l->file, pr_seconds(s->elapsed));
    if (!l->begun)
        write_run(l, s);
    l->elapsed = s->elapsed;
    write_notes(l);
    write_events(l);
    if (l->processes)
        write_exits(l, s->enrolled);
    write_sample(l, s);
    for (size_t i = 0; i < s->member_count && l->processes; i++)
        write_member(l, s, &s->members[i]);
    for (size_t i = 0; i < s->device_count; i++)
        write_device(l, s, &s->devices[i]);
    pr_outfile_end(&l->file);
}

static void jsonl_notes(struct pr_sink *sink)
{
    struct jsonl *l = (struct jsonl *)sink;
    if (!l->begun)
        return; /* the run comes first */
    pr_outfile_begin(&l->file, pr_seconds(l->elapsed));
    write_notes(l);
    pr_outfile_end(&l->file);
}

static void jsonl_summary(struct pr_sink *sink, const char *members)
{
    struct jsonl *l = (struct jsonl *)sink;
    pr_outfile_begin(&l->file, pr_seconds(l->elapsed));
    write_notes(l);
    if (l->notes_place.lost)
        pr_event_problem(l->events, pr_seconds(l->elapsed),
                         "%s: %lu marks and phases are not there", l->file.name,
                         l->notes_place.lost);
    write_events(l);
    if (l->processes)
        write_exits(l, l->roll->count);
    struct pr_json j = line_begin(l, "summary", l->elapsed);
    pr_line_members(&j, members);
    pr_line_end(&j);
    pr_outfile_end(&l->file);
}

static void jsonl_close(struct pr_sink *sink)
{
    struct jsonl *l = (struct jsonl *)sink;
    pr_outfile_close(&l->file);
    pr_buf_done(&l->note);
    free(l->run);
    free(l);
}

static const struct pr_sink_ops ops = {.write = jsonl_write,
                                       .summary = jsonl_summary,
                                       .notes = jsonl_notes,
                                       .close = jsonl_close,
                                       .devices = true};

int pr_jsonl_open(const struct pr_sink_setting *setting, struct pr_sink **ret_sink,
                  struct proctor_error *err)
{
    if (setting->dialect)
        return pr_dialect_open_as(setting, DIALECT_JSONL, ret_sink, err);
    struct jsonl *l = calloc(1, sizeof *l);
    char *run = strdup(setting->run ? setting->run : "");
    if (!l || !run) {
        free(l);
        free(run);
        return pr_error(err, ENOMEM, "out of memory");
    }
    *l = (struct jsonl){.sink.ops = &ops,
                        .select = setting->select,
                        .events = setting->events,
                        .roll = setting->roll,
                        .notes = setting->notes,
                        .processes = setting->processes,
                        .run = run};
    int r = pr_outfile_open(&l->file, strdup(setting->path), "--jsonl", setting->events, err);
    if (r < 0) {
        free(run);
        free(l);
        return r;
    }
    *ret_sink = &l->sink;
    return 0;
}
