/* SPDX-License-Identifier: Apache-2.0 */
/* CSV as RFC 4180 has it, with "\n": a header, then a row per sample, each handed to write(2) at
 * once. A full disk keeps rows back and tries again with the next; anything else ends the file.
 * Either is said once and touches neither the job nor other outputs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/sink.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/output.h"
#include "util/text.h"

#define KEEP_BACK   (1024 * 1024) /* bytes kept while the disk is full */
#define WAIT_READER 0.2           /* seconds at the end for a fifo */

struct csv_file {
    int fd;
    char *path;
    struct pr_buf out; /* what is not written yet */
    bool dead, said_full;
    bool unread;        /* a fifo without a reader: opened as soon as there is one */
    unsigned long lost; /* rows */
};

struct csv {
    struct pr_sink sink;
    struct csv_file job, processes;
    bool with_processes;
    double at; /* elapsed at the last row */
    struct pr_select select;
    struct pr_events *events;
};

/* --- one file --------------------------------------------------------------------------------- */

static int file_open(struct csv_file *f, char *path, struct proctor_error *err)
{
    f->path = path;
    f->fd = path ? pr_output_open(path) : -ENOMEM;
    f->unread = f->fd == -ENXIO;
    if (f->fd < 0 && !f->unread)
        return pr_error(err, -f->fd, "--csv: %s: '%s'", strerror(-f->fd), path ? path : "");
    return 0;
}

/* Drops the newest row, which begins at row_at, where more is kept back than should be. */
static void keep_back(struct csv_file *f, size_t row_at)
{
    if (f->out.len <= KEEP_BACK)
        return;
    f->out.len = row_at;
    f->lost++;
}

static void complain(struct csv_file *f, double at, struct pr_events *events, int code)
{
    bool full = code == -ENOSPC || code == -EDQUOT;
    if (!full || !f->said_full)
        pr_event_problem(events, at, "%s: %s; %s", f->path, strerror(-code),
                         full ? "rows are kept back until there is room"
                              : "no more rows are written there");
    f->said_full |= full;
    f->dead |= !full;
}

/* Tries to write all of f->out, whose newest row begins at row_at. */
static void file_write(struct csv_file *f, size_t row_at, double at, struct pr_events *events)
{
    size_t done = 0;
    if (f->unread)
        f->unread = (f->fd = pr_output_open(f->path)) == -ENXIO;
    if (f->unread) {
        keep_back(f, row_at);
        return;
    }
    int r = f->dead ? 0 : f->fd < 0 ? f->fd : pr_fs_write(f->fd, f->out.data, f->out.len, &done);
    if (r == 0) {
        f->out.len = 0;
        return;
    }
    pr_buf_consume(&f->out, done);
    keep_back(f, row_at > done ? row_at - done : 0);
    complain(f, at, events, r);
}

static void file_close(struct csv_file *f, double at, struct pr_events *events)
{
    if (f->unread) /* a reader may be just about to come */
        f->unread = (f->fd = pr_output_wait(f->path, WAIT_READER)) == -ENXIO;
    if (f->out.len)
        file_write(f, 0, at, events);
    if (f->unread)
        pr_event_problem(events, at, "%s: nobody reads this fifo; its rows are lost", f->path);
    else if (!f->dead && (f->out.len || f->lost))
        pr_event_problem(events, at, "%s: its last rows are lost: there was no room", f->path);
    if (f->fd >= 0)
        close(f->fd);
    pr_buf_done(&f->out);
    free(f->path);
}

/* --- rows ------------------------------------------------------------------------------------- */

static void add_values(struct pr_buf *out, const struct csv *c, unsigned scope, const double *value)
{
    for (int id = 0; id < METRIC_COUNT; id++) {
        if (!pr_selected(&c->select, id) || !(pr_metrics[id].scope & scope))
            continue;
        pr_buf_char(out, ',');
        if (!isnan(value[id]))
            pr_units_number(out, value[id]);
    }
    pr_buf_char(out, '\n');
}

static void add_names(struct pr_buf *out, const struct csv *c, unsigned scope, const char *first)
{
    pr_buf_str(out, first);
    for (int id = 0; id < METRIC_COUNT; id++) {
        if (!pr_selected(&c->select, id) || !(pr_metrics[id].scope & scope))
            continue;
        pr_buf_char(out, ',');
        pr_metric_column(out, &pr_metrics[id]);
    }
    pr_buf_char(out, '\n');
}

static void add_time(struct pr_buf *out, const struct proctor_snapshot *s)
{
    pr_units_fixed(out, pr_seconds(s->time), 3);
    pr_buf_char(out, ',');
    pr_units_fixed(out, pr_seconds(s->elapsed), 6);
    pr_buf_char(out, ',');
    pr_units_fixed(out, pr_seconds(s->interval), 6);
}

static void write_header(struct csv *c)
{
    add_names(&c->job.out, c, SCOPE_JOB, "timestamp,elapsed_seconds,interval_seconds");
    file_write(&c->job, 0, 0, c->events);
    if (!c->with_processes)
        return;
    add_names(&c->processes.out, c, SCOPE_PROC,
              "timestamp,elapsed_seconds,interval_seconds,pid,ppid,started,command");
    file_write(&c->processes, 0, 0, c->events);
}

static void add_member(struct pr_buf *out, const struct csv *c, const struct proctor_snapshot *s,
                       const struct pr_member *m)
{
    add_time(out, s);
    pr_buf_printf(out, ",%d,%d,", (int)m->pid, (int)m->ppid);
    pr_units_fixed(out, pr_seconds(m->started), 3);
    pr_buf_char(out, ',');
    pr_text_csv(out, m->comm);
    add_values(out, c, SCOPE_PROC, m->value);
}

static void csv_write(struct pr_sink *sink, const struct proctor_snapshot *s)
{
    struct csv *c = (struct csv *)sink;
    c->at = pr_seconds(s->elapsed);
    size_t row = c->job.out.len;
    add_time(&c->job.out, s);
    add_values(&c->job.out, c, SCOPE_JOB, s->value);
    file_write(&c->job, row, c->at, c->events);
    if (!c->with_processes)
        return;
    row = c->processes.out.len;
    for (size_t i = 0; i < s->member_count; i++)
        add_member(&c->processes.out, c, s, &s->members[i]);
    file_write(&c->processes, row, c->at, c->events);
}

static void csv_close(struct pr_sink *sink)
{
    struct csv *c = (struct csv *)sink;
    file_close(&c->job, c->at, c->events);
    if (c->with_processes)
        file_close(&c->processes, c->at, c->events);
    free(c);
}

static const struct pr_sink_ops ops = {.write = csv_write, .close = csv_close};

/* "run.csv" -> "run.processes.csv"; the caller frees. */
static char *processes_path(const char *path)
{
    char *result = NULL;
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    if (!dot || dot == path || (slash && dot <= slash + 1))
        dot = path + strlen(path);
    if (asprintf(&result, "%.*s.processes%s", (int)(dot - path), path, dot) < 0)
        return NULL;
    return result;
}

int pr_csv_open(const struct pr_sink_setting *setting, struct pr_sink **ret_sink,
                struct proctor_error *err)
{
    if (setting->processes && strcmp(setting->path, "-") == 0)
        return pr_error(err, EINVAL,
                        "--processes needs a file of its own: name one with --csv FILE, not -");
    struct csv *c = calloc(1, sizeof *c);
    if (!c)
        return pr_error(err, ENOMEM, "out of memory");
    *c = (struct csv){.sink.ops = &ops,
                      .job.fd = -1,
                      .processes.fd = -1,
                      .with_processes = setting->processes,
                      .select = setting->select,
                      .events = setting->events};
    int r = file_open(&c->job, strdup(setting->path), err);
    if (r == 0 && setting->processes)
        r = file_open(&c->processes, processes_path(setting->path), err);
    if (r < 0) {
        free(c->job.path);
        free(c->processes.path);
        if (c->job.fd >= 0)
            close(c->job.fd);
        free(c);
        return r;
    }
    write_header(c);
    *ret_sink = &c->sink;
    return 0;
}
