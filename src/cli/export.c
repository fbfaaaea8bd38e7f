/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor export RUN`: a recorded run once more, into the same outputs as live. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/runs.h"
#include "core/dialect.h"
#include "core/sink.h"
#include "report/summary.h"
#include "store/job.h"
#include "store/replay.h"
#include "store/runlog.h"
#include "util/fs.h"
#include "util/output.h"

#define NOTES_TOGETHER 500 /* marks and phases are written when there are so many */
#define FILES_MOST     16  /* written at once: the tables of a dialect */

/* In which shape. */
struct shape {
    const char *dialect, *table; /* NULL for our own; for its first */
    enum pr_dialect_form form;
    bool log; /* phases and marks alone */
};

struct export
{
    const struct pr_config *config;
    struct shape shape;
    const char *path;
    struct pr_stored *stored;
    struct pr_sink_job job;
    struct pr_sink *sinks[FILES_MOST];
    size_t sink_count;
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

/* --- what sinks are told ---------------------------------------------------------------------- */

static void on_sample(void *of, const struct proctor_snapshot *s)
{
    struct export *x = of;
    for (size_t i = 0; i < x->sink_count; i++)
        x->sinks[i]->ops->write(x->sinks[i], s);
    x->waiting = 0;
}

static void write_notes(struct export *x)
{
    for (size_t i = 0; i < x->sink_count; i++)
        if (x->sinks[i]->ops->notes)
            x->sinks[i]->ops->notes(x->sinks[i]);
    x->waiting = 0;
}

static void add_note(struct export *x, struct pr_note note, const char *members, size_t len)
{
    pr_notes_add(&x->notes, note, members, len);
    if (++x->waiting >= NOTES_TOGETHER)
        write_notes(x);
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

/* At the end: the summary, where there is one, and whoever has a use for it. */
static void write_summary(struct export *x, char *members)
{
    for (size_t i = 0; i < x->sink_count; i++) {
        const struct pr_sink_ops *ops = x->sinks[i]->ops;
        if (members && ops->summary)
            ops->summary(x->sinks[i], members);
        else if (ops->notes)
            ops->notes(x->sinks[i]);
    }
}

static int replay(struct export *x, struct proctor_error *err)
{
    bool processes = x->config->with_processes && !x->shape.dialect;
    struct pr_replay_to to = {.members = processes,
                              .sample = on_sample,
                              .event = on_event,
                              .mark = on_mark,
                              .end = on_end,
                              .entry = processes ? on_entry : NULL};
    struct pr_buf json = {0};
    for (size_t i = 0; i < x->sink_count; i++) {
        to.members |= x->sinks[i]->ops->processes;
        to.devices |= x->sinks[i]->ops->devices;
    }
    int code = pr_replay(x->stored, &to, x, err);
    bool summary = code == 0 && x->stored->summarized &&
                   pr_stored_summary(x->stored, &json, err) == 0 && json.len > 2;
    if (summary)
        json.data[json.len - 1] = '\0'; /* without its braces */
    if (code == 0)
        write_summary(x, summary ? json.data + 1 : NULL);
    pr_buf_done(&json);
    return code;
}

/* --- files ------------------------------------------------------------------------------------ */

static int open_sink(struct export *x, const struct pr_sink_setting *setting,
                     struct proctor_error *err)
{
    struct pr_sink **sink = &x->sinks[x->sink_count];
    if (pr_runs_is_file(setting->path, x->stored->path))
        return pr_error(err, EEXIST, "'%s' is the run itself", setting->path);
    int code = setting->dialect ? pr_dialect_open_as(setting, x->shape.form, sink, err)
               : x->shape.form == DIALECT_CSV ? pr_csv_open(setting, sink, err)
                                              : pr_jsonl_open(setting, sink, err);
    if (code < 0)
        return code;
    x->sink_count++;
    struct pr_buf way = {0};
    pr_stored_text(x->stored, x->stored->about, "$.way", &way);
    bool nobody = strcmp(pr_buf_text(&way), pr_way_name(WAY_SYSTEM)) == 0;
    pr_buf_done(&way);
    return nobody && (*sink)->ops->processes
               ? pr_error(err, EINVAL,
                          "--dialect: '%s' has rows of processes; this run is of a machine without "
                          "--processes, and has none",
                          setting->dialect)
               : 0;
}

static bool is_folder(const char *path)
{
    struct stat st;
    size_t len = strlen(path);
    return (len && path[len - 1] == '/') || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

/* All tables that have the form, or the one that is named, each under its usual name. */
static int open_folder(struct export *x, struct pr_sink_setting setting, struct proctor_error *err)
{
    const struct shape *shape = &x->shape;
    struct pr_dialect_file file;
    struct pr_buf path = {0};
    const char *slash = x->path[strlen(x->path) - 1] == '/' ? "" : "/";
    int code = 0;
    for (size_t i = 0; code == 0 && pr_dialect_table(shape->dialect, i, &file); i++) {
        bool fits = shape->form == DIALECT_ANY || file.json == (shape->form == DIALECT_JSONL);
        if (shape->table ? strcmp(file.table, shape->table) != 0 : !fits)
            continue;
        if (fits && mkdir(x->path, 0777) < 0 && errno != EEXIST) {
            code = pr_error(err, errno, "-o: %s: '%s'", strerror(errno), x->path);
            break;
        }
        pr_buf_reset(&path);
        pr_buf_printf(&path, "%s%s%s", x->path, slash, file.file);
        setting.path = pr_buf_text(&path);
        setting.table = file.table;
        code = x->sink_count < FILES_MOST ? open_sink(x, &setting, err)
                                          : pr_error(err, E2BIG, "too many tables");
    }
    pr_buf_done(&path);
    if (code == 0 && !x->sink_count) /* says which there are */
        code = open_sink(x, &setting, err);
    return code;
}

static char *run_members(const struct pr_stored *r)
{
    size_t len = r->about ? strlen(r->about) : 0;
    return len > 2 ? strndup(r->about + 1, len - 2) : strdup("");
}

static int open_sinks(struct export *x, const char *run, struct proctor_error *err)
{
    struct pr_sink_setting setting = {.path = x->path,
                                      .processes = x->config->with_processes,
                                      .select = x->stored->select,
                                      .events = &x->events,
                                      .roll = &x->roll,
                                      .run = run,
                                      .notes = &x->notes,
                                      .dialect = x->shape.dialect,
                                      .table = x->shape.table,
                                      .job = &x->job};
    return x->shape.dialect && is_folder(x->path) ? open_folder(x, setting, err)
                                                  : open_sink(x, &setting, err);
}

static int export_samples(struct export *x, struct proctor_error *err)
{
    char *run = run_members(x->stored);
    pr_events_init(&x->events);
    x->events.say = say;
    pr_notes_init(&x->notes);
    x->notes.wanted = true;
    int code = pr_stored_job(x->stored, &x->job) < 0 || !run
                   ? pr_error(err, ENOMEM, "out of memory")
                   : open_sinks(x, run, err);
    if (code == 0)
        code = replay(x, err);
    while (x->sink_count--)
        x->sinks[x->sink_count]->ops->close(x->sinks[x->sink_count]);
    if (code == 0 && x->events.problems > x->old_problems)
        code = pr_error(err, EIO, "not all of it could be written");
    free(run);
    pr_stored_job_done(&x->job);
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
    if (pr_runs_is_file(x->path, x->stored->path))
        return pr_error(err, EEXIST, "'%s' is the run itself", x->path);
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

static bool is_named(const struct pr_config *c, enum pr_option_id id)
{
    return c->origin[id] == ORIGIN_OPTION;
}

/* A dialect that recording is set to, by a variable or the config file, is none of these two's. */
static int choose_fixed(const struct pr_config *c, struct shape *ret, struct proctor_error *err)
{
    static const struct shape summary = {.dialect = "pytyche", .table = "resource-summary"},
                              log = {.log = true};
    *ret = strcmp(c->format, "runlog") == 0 ? log : summary;
    bool fits = !ret->log && strcmp(c->dialect, ret->dialect) == 0 &&
                (!c->table || strcmp(c->table, ret->table) == 0);
    if ((is_named(c, OPTION_DIALECT) || is_named(c, OPTION_TABLE)) && !fits)
        return pr_error(err, EINVAL, "--format: %s has a shape of its own; leave --%s out",
                        c->format, is_named(c, OPTION_DIALECT) ? "dialect" : "table");
    return 0;
}

static int choose(const struct pr_config *c, struct shape *ret, struct proctor_error *err)
{
    bool csv = c->format && strcmp(c->format, "csv") == 0;
    if (c->format && !csv && strcmp(c->format, "jsonl") != 0)
        return choose_fixed(c, ret, err);
    *ret = (struct shape){.dialect = pr_config_dialect(c),
                          .table = c->table,
                          .form = csv         ? DIALECT_CSV
                                  : c->format ? DIALECT_JSONL
                                              : DIALECT_ANY};
    if (!c->format && !ret->dialect)
        return pr_error(err, EINVAL,
                        "--format is missing: csv, jsonl, runlog or resource-summary; or --dialect "
                        "for another tool's");
    if (csv && c->with_processes && !c->into && !ret->dialect)
        return pr_error(err, EINVAL,
                        "--processes needs a file: csv has one of its own for them; name it with "
                        "-o, or take jsonl");
    return pr_config_check_table(c, err);
}

static int export(const struct pr_config *c, const char *run)
{
    struct export x = {.config = c, .path = c->into ? c->into : "-"};
    struct proctor_error err = {0};
    int code = choose(c, &x.shape, &err);
    if (code == 0) {
        x.stored = pr_runs_open("export", run);
        if (!x.stored)
            return EXIT_FAILED;
        code = (x.shape.log ? export_log : export_samples)(&x, &err);
        pr_stored_close(x.stored);
    }
    if (code < 0)
        pr_complain("export: %s", err.message);
    return code == -EINVAL ? EXIT_USAGE : code < 0 ? EXIT_FAILED : 0;
}

int pr_main_export(int argc, char **argv)
{
    struct pr_config c;
    int status, first = pr_runs_begin("export", argc, argv, 1, 1, &c, &status);
    if (first)
        status = export(&c, argv[first]);
    pr_config_done(&c);
    return status;
}
