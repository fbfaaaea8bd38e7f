/* SPDX-License-Identifier: Apache-2.0 */
/* dialect_rows ROWS DIALECT TABLE OUTFILE: known rows through the sink that --csv, --jsonl and
 * export use. ROWS has tabs between its fields; tests/golden/dialects/README.md says which. TABLE
 * may be - for the first. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dialect.h"
#include "util/clock.h"

#define FIELDS_MOST  32
#define MEMBERS_MOST 64
#define DEVICES_MOST 16
#define ARGS_MOST    FIELDS_MOST

struct rows {
    struct pr_sink_job job;
    char *argv[ARGS_MOST];
    int64_t started;
    double limit[LIMIT_COUNT];
    bool any; /* there has been a sample */
    struct proctor_snapshot sample;
    struct pr_sink *sink;
    int line;
    char *kept[4096]; /* texts that samples point to */
    size_t kept_count;
};

static void fail(const struct rows *r, const char *what, const char *text)
{
    fprintf(stderr, "dialect_rows: line %d: %s '%s'\n", r->line, what, text);
    exit(2);
}

static char *keep(struct rows *r, const char *text)
{
    if (r->kept_count == sizeof r->kept / sizeof *r->kept)
        fail(r, "too many texts at", text);
    return r->kept[r->kept_count++] = strdup(text);
}

static double number(const struct rows *r, const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (*end || !*text)
        fail(r, "no number:", text);
    return v;
}

static enum pr_metric_id metric(const struct rows *r, const char *key)
{
    enum pr_metric_id id = pr_metric_find(key);
    if (id == METRIC_NONE)
        fail(r, "no metric:", key);
    return id;
}

/* The last one is only known when there is no other. */
static void flush(struct rows *r, bool last)
{
    r->sample.last = last;
    if (r->any)
        r->sink->ops->write(r->sink, &r->sample);
}

/* --- one kind of line each -------------------------------------------------------------------- */

static void on_run(struct rows *r, char **field, int count)
{
    const char *key = field[1];
    if (strcmp(key, "command") == 0)
        for (int i = 2; i < count; i++)
            r->argv[i - 2] = keep(r, field[i]);
    else if (strcmp(key, "root_pid") == 0)
        r->job.pid = (pid_t)number(r, field[2]);
    else if (strcmp(key, "pgid") == 0)
        r->job.group = (pid_t)number(r, field[2]);
    else if (strcmp(key, "monitor_pid") == 0)
        r->job.recorder = (pid_t)number(r, field[2]);
    else if (strcmp(key, "exit_code") == 0)
        r->job.exit_code = (int)number(r, field[2]);
    else if (strcmp(key, "exit_signal") == 0)
        r->job.exit_signal = (int)number(r, field[2]);
    else if (strcmp(key, "no_gpu") == 0)
        r->job.no_gpu = number(r, field[2]) != 0;
    else if (strcmp(key, "started_ns") == 0)
        r->started = strtoll(field[2], NULL, 10);
    else if (strcmp(key, "cpu_total") == 0)
        r->limit[LIMIT_CPU] = number(r, field[2]);
    else if (strcmp(key, "memory_total") == 0)
        r->limit[LIMIT_MEMORY] = number(r, field[2]);
}

static void on_sample(struct rows *r, char **field, int count)
{
    struct proctor_snapshot *s = &r->sample;
    (void)count;
    flush(r, false);
    s->first = !r->any;
    r->any = true;
    s->elapsed = strtoll(field[1], NULL, 10);
    s->interval = s->machine_interval = strtoll(field[2], NULL, 10);
    s->time = r->started + s->elapsed;
    s->member_count = s->device_count = 0;
    memcpy(s->limit, r->limit, sizeof s->limit);
    pr_values_none(s->value, METRIC_COUNT);
}

static void on_value(struct rows *r, char **field, int count)
{
    (void)count;
    r->sample.value[metric(r, field[1])] = number(r, field[2]);
}

static void on_process(struct rows *r, char **field, int count)
{
    if (r->sample.member_count == MEMBERS_MOST)
        fail(r, "too many processes at", field[4]);
    struct pr_member *m = &r->sample.members[r->sample.member_count++];
    m->pid = (pid_t)number(r, field[1]);
    m->ppid = (pid_t)number(r, field[2]);
    m->started = strtoll(field[3], NULL, 10);
    snprintf(m->comm, sizeof m->comm, "%s", field[4]);
    m->match = count > 5 ? keep(r, field[5]) : NULL;
    pr_values_none(m->value, PROC_METRICS);
}

static void on_pvalue(struct rows *r, char **field, int count)
{
    enum pr_metric_id id = metric(r, field[1]);
    (void)count;
    if (!r->sample.member_count || (int)id >= PROC_METRICS)
        fail(r, "no process has", field[1]);
    r->sample.members[r->sample.member_count - 1].value[id] = number(r, field[2]);
}

static void on_device(struct rows *r, char **field, int count)
{
    int kind = 0;
    (void)count;
    while (kind < DEVICE_KINDS && strcmp(pr_device_kind_name((enum pr_device_kind)kind), field[1]))
        kind++;
    if (kind == DEVICE_KINDS || r->sample.device_count == DEVICES_MOST)
        fail(r, "no such device:", field[1]);
    struct pr_device *d = &r->sample.devices[r->sample.device_count++];
    *d = (struct pr_device){.kind = (enum pr_device_kind)kind,
                            .counted = strcmp(field[5], "1") == 0,
                            .model = keep(r, field[3]),
                            .uuid = keep(r, field[4])};
    snprintf(d->name, sizeof d->name, "%s", field[2]);
    pr_values_none(d->value, DEVICE_VALUES);
}

static void on_dvalue(struct rows *r, char **field, int count)
{
    struct pr_device *d = &r->sample.devices[r->sample.device_count - 1];
    (void)count;
    int slot = r->sample.device_count ? pr_device_slot(d->kind, metric(r, field[1])) : -1;
    if (slot < 0)
        fail(r, "no device has", field[1]);
    d->value[slot] = number(r, field[2]);
}

static void on_nothing(struct rows *r, char **field, int count)
{
    (void)r, (void)field, (void)count;
}

static const struct {
    const char *word;
    int least; /* fields */
    void (*take)(struct rows *r, char **field, int count);
} lines[] = {
    {"run", 2, on_run},       {"match", 3, on_nothing},   {"sample", 3, on_sample},
    {"value", 3, on_value},   {"process", 5, on_process}, {"pvalue", 3, on_pvalue},
    {"device", 6, on_device}, {"dvalue", 3, on_dvalue},
};

static void on_line(struct rows *r, char *text)
{
    char *field[FIELDS_MOST];
    int count = 0;
    text[strcspn(text, "\n")] = '\0';
    for (char *p = text; p && count < FIELDS_MOST;)
        field[count++] = strsep(&p, "\t");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (strcmp(lines[i].word, field[0]) != 0)
            continue;
        if (count < lines[i].least)
            fail(r, "too few fields behind", field[0]);
        lines[i].take(r, field, count);
        return;
    }
    fail(r, "what is", field[0]);
}

static void done(struct rows *r)
{
    pr_snapshot_done(&r->sample);
    while (r->kept_count)
        free(r->kept[--r->kept_count]);
}

int main(int argc, char **argv)
{
    static struct rows r = {.job = {.exit_code = -1, .exit_signal = -1},
                            .limit = {[LIMIT_CPU] = NAN, [LIMIT_MEMORY] = NAN}};
    static struct pr_events events;
    struct proctor_error err = {0};
    if (argc != 5)
        return fputs("usage: dialect_rows ROWS DIALECT TABLE OUTFILE\n", stderr), 2;
    FILE *f = fopen(argv[1], "r");
    if (!f)
        return fprintf(stderr, "dialect_rows: %s: %s\n", argv[1], strerror(errno)), 2;
    pr_events_init(&events);
    r.job.argv = r.argv;
    struct pr_sink_setting setting = {.path = argv[4],
                                      .events = &events,
                                      .dialect = argv[2],
                                      .table = strcmp(argv[3], "-") ? argv[3] : NULL,
                                      .job = &r.job};
    memset(setting.select.shown, true, sizeof setting.select.shown);
    if (!pr_snapshot_reserve(&r.sample, MEMBERS_MOST, DEVICES_MOST) ||
        pr_dialect_open(&setting, &r.sink, &err) < 0)
        return fprintf(stderr, "dialect_rows: %s\n", err.message), 1;
    char *text = NULL;
    size_t size = 0;
    for (r.line = 1; getline(&text, &size, f) >= 0; r.line++)
        on_line(&r, text);
    flush(&r, true);
    r.sink->ops->close(r.sink);
    free(text);
    fclose(f);
    done(&r);
    return events.problems != 0;
}
