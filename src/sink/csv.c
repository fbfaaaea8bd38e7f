/* SPDX-License-Identifier: Apache-2.0 */
/* CSV as RFC 4180 has it, with "\n": a header, then a row per sample, each handed to write(2) at
 * once. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dialect.h"
#include "sink/outfile.h"
#include "util/clock.h"
#include "util/text.h"

struct csv {
    struct pr_sink sink;
    struct pr_outfile job, processes;
    bool with_processes, has_header;
    struct pr_select select;
};

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

/* From the writer's thread, as everything: there a closed pipe is an error and not a signal. */
static void write_header(struct csv *c)
{
    if (c->has_header)
        return;
    c->has_header = true;
    pr_outfile_begin(&c->job, 0);
    add_names(&c->job.out, c, SCOPE_JOB | SCOPE_SYSTEM,
              "timestamp,elapsed_seconds,interval_seconds");
    pr_outfile_end(&c->job);
    if (!c->with_processes)
        return;
    pr_outfile_begin(&c->processes, 0);
    add_names(&c->processes.out, c, SCOPE_PROC,
              "timestamp,elapsed_seconds,interval_seconds,pid,ppid,started,command");
    pr_outfile_end(&c->processes);
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
    write_header(c);
    pr_outfile_begin(&c->job, at);
    add_time(&c->job.out, s);
    add_values(&c->job.out, c, SCOPE_JOB | SCOPE_SYSTEM, s->value);
    pr_outfile_end(&c->job);
    if (!c->with_processes)
        return;
    pr_outfile_begin(&c->processes, at);
    for (size_t i = 0; i < s->member_count; i++)
        add_member(&c->processes.out, c, s, &s->members[i]);
    pr_outfile_end(&c->processes);
}

static void csv_close(struct pr_sink *sink)
{
    struct csv *c = (struct csv *)sink;
    write_header(c);
    pr_outfile_close(&c->job);
    if (c->with_processes)
        pr_outfile_close(&c->processes);
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
    if (setting->dialect)
        return pr_dialect_open_as(setting, DIALECT_CSV, ret_sink, err);
    if (setting->processes && strcmp(setting->path, "-") == 0)
        return pr_error(err, EINVAL,
                        "--processes needs a file of its own: name one with --csv FILE, not -");
    struct csv *c = calloc(1, sizeof *c);
    if (!c)
        return pr_error(err, ENOMEM, "out of memory");
    *c = (struct csv){
        .sink.ops = &ops, .with_processes = setting->processes, .select = setting->select};
    int r = pr_outfile_open(&c->job, strdup(setting->path), "--csv", setting->events, err);
    if (r == 0 && setting->processes) {
        r = pr_outfile_open(&c->processes, processes_path(setting->path), "--csv", setting->events,
                            err);
        if (r < 0)
            pr_outfile_close(&c->job);
    }
    if (r < 0) {
        free(c);
        return r;
    }
    *ret_sink = &c->sink;
    return 0;
}
