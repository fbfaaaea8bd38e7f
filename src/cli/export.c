/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor export RUN`: a recorded run once more, into the same outputs as live. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/runs.h"
#include "core/sink.h"
#include "store/replay.h"
#include "store/runlog.h"
#include "util/fs.h"
#include "util/output.h"

#define NOTES_TOGETHER 500 /* marks and phases are written when there are so many */

struct export
{
    const struct pr_config *config;
    const char *path;
    struct pr_stored *stored;
    struct pr_sink *sink;
    struct pr_roll roll;
    struct pr_events events;
    struct pr_notes notes;
    unsigned long waiting; /* notes */
    unsigned old_problems; /* events of trouble that the record has */
};

static void say(const char *text, void *data)
{
    (void)data;
    pr_complain("export: %s", text);
}

/* --- csv and jsonl ---------------------------------------------------------------------------- */

static void on_sample(void *of, const struct proctor_snapshot *s)
{
    struct export *x = of;
    x->sink->ops->write(x->sink, s);
    x->waiting = 0;
}

static void add_note(struct export *x, struct pr_note note, const char *members, size_t len)
{
    pr_notes_add(&x->notes, note, members, len);
    if (++x->waiting < NOTES_TOGETHER || !x->sink->ops->notes)
        return;
    x->sink->ops->notes(x->sink);
    x->waiting = 0;
}

/* An object without its braces. */
static void add_object(struct export *x, struct pr_note note, const char *json)
{
    size_t len = strlen(json);
    if (len > 2 && json[0] == '{' && json[len - 1] == '}')
        add_note(x, note, json + 1, len - 2);
}

static void on_mark(void *of, int64_t elapsed, const char *name, const char *data)
{
    struct pr_buf line = {0};
    pr_phase_put_mark(&line, name, data);
    add_note(of, (struct pr_note){NOTE_EVENT, elapsed}, line.data, line.len);
    pr_buf_done(&line);
}

static void on_end(void *of, const struct pr_replayed_phase *phase)
{
    if (phase->data)
        add_object(of, (struct pr_note){NOTE_PHASE, phase->end}, phase->data);
}

static void on_event(void *of, const struct pr_event *e)
{
    struct export *x = of;
    x->events.say = NULL; /* what the record has of trouble is not ours */
    pr_event_add(&x->events, e->type, e->at, e->seconds, "%s", e->text);
    x->events.say = say;
    x->old_problems += e->type == EVENT_PROBLEM;
}

static void on_entry(void *of, const struct pr_roll_entry *e)
{
    struct export *x = of;
    pr_roll_add(&x->roll, e);
}

static int replay(struct export *x, struct proctor_error *err)
{
    const struct pr_replay_to to = {.members = x->config->with_processes,
                                    .devices = x->sink->ops->devices,
                                    .sample = on_sample,
                                    .event = on_event,
                                    .mark = on_mark,
                                    .end = on_end,
                                    .entry = x->config->with_processes ? on_entry : NULL};
    struct pr_buf json = {0};
    int code = pr_replay(x->stored, &to, x, err);
    bool summary = code == 0 && x->stored->summarized && x->sink->ops->summary;
    if (summary && pr_stored_summary(x->stored, &json, err) == 0 && json.len > 2) {
        json.data[json.len - 1] = '\0'; /* without its braces */
        x->sink->ops->summary(x->sink, json.data + 1);
    } else if (code == 0 && x->sink->ops->notes) {
        x->sink->ops->notes(x->sink);
    }
    pr_buf_done(&json);
    return code;
}

static char *run_members(const struct pr_stored *r)
{
    size_t len = r->about ? strlen(r->about) : 0;
    return len > 2 ? strndup(r->about + 1, len - 2) : strdup("");
}

static int export_samples(struct export *x, struct proctor_error *err)
{
    bool csv = strcmp(x->config->format, "csv") == 0;
    char *run = run_members(x->stored);
    pr_events_init(&x->events);
    x->events.say = say;
    pr_notes_init(&x->notes);
    x->notes.wanted = true;
    struct pr_sink_setting setting = {.path = x->path,
                                      .processes = x->config->with_processes,
                                      .select = x->stored->select,
                                      .events = &x->events,
                                      .roll = &x->roll,
                                      .run = run,
                                      .notes = &x->notes};
    int code = (csv ? pr_csv_open : pr_jsonl_open)(&setting, &x->sink, err);
    if (code == 0) {
        code = replay(x, err);
        x->sink->ops->close(x->sink);
        if (code == 0 && x->events.problems > x->old_problems)
            code = pr_error(err, EIO, "not all of it could be written");
    }
    free(run);
    pr_notes_done(&x->notes);
    pr_roll_done(&x->roll);
    return code;
}

/* --- the run log ------------------------------------------------------------------------------ */

struct log {
    struct pr_runlog runlog;
    int fd, code;
};

static void write_log(struct pr_runlog *runlog)
{
    struct log *l = (struct log *)runlog;
    size_t done;
    if (l->code == 0)
        l->code = pr_fs_write(l->fd, runlog->out.data, runlog->out.len, &done);
    pr_buf_reset(&runlog->out);
}

static int export_log(struct export *x, struct proctor_error *err)
{
    struct log l = {.runlog = {.full = write_log}, .fd = pr_output_open(x->path)};
    if (l.fd < 0)
        return pr_error(err, -l.fd, "%s: '%s'", strerror(-l.fd), x->path);
    int code = pr_runlog_write(&l.runlog, x->stored, err);
    if (close(l.fd) < 0 && l.code == 0)
        l.code = -errno;
    pr_buf_done(&l.runlog.out);
    return code < 0 || l.code == 0 ? code : pr_error(err, -l.code, "%s", strerror(-l.code));
}

/* --- */

static bool check(const struct export *x)
{
    const struct pr_config *c = x->config;
    bool csv = strcmp(c->format, "csv") == 0;
    if (c->with_processes && csv && !c->into) {
        pr_complain("export: --processes needs a file: csv has one of its own for them; name it "
                    "with -o, or take jsonl");
        return false;
    }
    return true;
}

static int export(const struct pr_config *c, const char *run)
{
    struct export x = {.config = c, .path = c->into ? c->into : "-"};
    struct proctor_error err = {0};
    if (!check(&x))
        return EXIT_USAGE;
    x.stored = pr_runs_open("export", run);
    if (!x.stored)
        return EXIT_FAILED;
    int code = pr_runs_is_file(x.path, x.stored->path)
                   ? pr_error(&err, EEXIST, "'%s' is the run itself", x.path)
               : strcmp(c->format, "runlog") == 0 ? export_log(&x, &err)
                                                  : export_samples(&x, &err);
    if (code < 0)
        pr_complain("export: %s", err.message);
    pr_stored_close(x.stored);
    return code < 0 ? EXIT_FAILED : 0;
}

int pr_main_export(int argc, char **argv)
{
    struct pr_config c;
    int status, first = pr_runs_begin("export", argc, argv, 1, 1, &c, &status);
    if (first && !c.format)
        pr_complain("export: --format is missing: csv, jsonl or runlog");
    else if (first)
        status = export(&c, argv[first]);
    pr_config_done(&c);
    return status;
}
