/* SPDX-License-Identifier: Apache-2.0 */
/* CSV as RFC 4180 has it, with "\n": a header, then a row per sample, each handed to write(2) at
 * once. A full disk keeps rows back and tries again with the next; anything else ends the file.
 * Either is said once and touches neither the job nor other outputs. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/sink.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/text.h"

#define KEEP_BACK (1024 * 1024) /* rows kept while the disk is full */

struct csv_file {
    int fd;
    char *path;
    struct pr_buf out; /* what is not written yet */
    bool dead, said_full;
    unsigned long lost; /* rows */
};

struct csv {
    struct pr_sink sink;
    struct csv_file job, processes;
    bool with_processes;
    struct pr_select select;
    struct pr_events *events;
};

/* --- one file --------------------------------------------------------------------------------- */

static int open_output(const char *path)
{
    struct stat st;
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY;
    if (strcmp(path, "-") == 0)
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    /* Opening a fifo for writing waits for its reader, and the job would wait with us. */
    if (stat(path, &st) == 0 && S_ISFIFO(st.st_mode))
        flags = O_RDWR | O_CLOEXEC;
    return open(path, flags, 0666);
}

static int file_open(struct csv_file *f, char *path, struct proctor_error *err)
{
    f->path = path;
    f->fd = path ? open_output(path) : -1;
    if (!path)
        return pr_error(err, ENOMEM, "out of memory");
    if (f->fd < 0)
        return pr_error(err, errno, "cannot open '%s' for --csv: %s", path, strerror(errno));
    return 0;
}

/* Tries to write all of f->out. `row_at` is where the newest row begins: what is dropped is dropped
 * by whole rows. */
static void file_write(struct csv_file *f, size_t row_at, double at, struct pr_events *events)
{
    size_t done = 0;
    int r = f->dead ? 0 : pr_fs_write(f->fd, f->out.data, f->out.len, &done);
    if (f->dead || r == 0) {
        f->out.len = 0;
        return;
    }
    bool full = r == -ENOSPC || r == -EDQUOT;
    if (full && done)
        pr_buf_consume(&f->out, done);
    if (full && f->out.len > KEEP_BACK && row_at >= done) {
        f->out.len = row_at - done;
        f->lost++;
    }
    if (!full || !f->said_full)
        pr_event_problem(events, at, "%s: %s; %s", f->path, strerror(-r),
                         full ? "rows are kept back until there is room"
                              : "no more rows are written there");
    f->said_full |= full;
    f->dead |= !full;
}

static void file_close(struct csv_file *f, struct pr_events *events)
{
    if (f->fd < 0)
        return;
    if (f->out.len)
        file_write(f, 0, 0, events);
    if (f->out.len || f->lost)
        pr_event_problem(events, 0, "%s: its last rows are lost: there was no room", f->path);
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
    double at = pr_seconds(s->elapsed);
    size_t row = c->job.out.len;
    add_time(&c->job.out, s);
    add_values(&c->job.out, c, SCOPE_JOB, s->value);
    file_write(&c->job, row, at, c->events);
    if (!c->with_processes)
        return;
    row = c->processes.out.len;
    for (size_t i = 0; i < s->member_count; i++)
        add_member(&c->processes.out, c, s, &s->members[i]);
    file_write(&c->processes, row, at, c->events);
}

static void csv_close(struct pr_sink *sink)
{
    struct csv *c = (struct csv *)sink;
    file_close(&c->job, c->events);
    file_close(&c->processes, c->events);
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
