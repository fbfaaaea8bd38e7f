/* SPDX-License-Identifier: Apache-2.0 */
/* A run in a line of a list: from its summary, and where it has none yet, from its samples. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/find.h"
#include "util/clock.h"

enum {
    COLUMN_NAME,
    COLUMN_ARGV,
    COLUMN_COMMAND,
    COLUMN_TARGET,
    COLUMN_NODE,
    COLUMN_PARENT,
    COLUMN_LABELS,
    COLUMN_DURATION,
    COLUMN_CPU,
    COLUMN_MARK,
    COLUMN_RSS,
    COLUMN_SAMPLES,
};

/* In the order of columns. */
static const char identity[] =
    "SELECT r.name, CASE WHEN json_valid(r.command) THEN json(r.command) END,"
    " (SELECT group_concat(value, ' ') FROM json_each(r.command)),"
    " r.target, r.node, r.parent, " STORED_OBJECT("r.labels");
static const char *const of_summary[] = {
    "$.run.duration",
    "$.metrics.\"cpu.time\".total",
    "$.metrics.\"mem.rss.peak\".peak",
    "$.metrics.\"mem.rss\".peak",
    "$.samples.taken",
};
static const char of_samples[] =
    ", (SELECT max(elapsed) FROM job_samples) / 1e9, (SELECT max(cpu_time_seconds) FROM"
    " job_samples), max(mem_rss_peak_bytes), max(mem_rss_bytes), count(*)"
    " FROM run r, job_samples";

static void write_query(struct pr_buf *sql, bool summarized)
{
    pr_buf_str(sql, identity);
    if (!summarized)
        pr_buf_str(sql, of_samples);
    for (size_t i = 0; i < sizeof of_summary / sizeof *of_summary && summarized; i++)
        pr_buf_printf(sql, ", json_extract(s.json, '%s')", of_summary[i]);
    pr_buf_str(sql, summarized ? " FROM run r, " STORED_SUMMARY " s" : "");
}

static char *kept(struct pr_query *q, int column)
{
    const char *text = pr_query_get_text(q, column);
    return text && *text ? strdup(text) : NULL;
}

/* The highest that is known, which is never below what there was: PSS is read too seldom for that.
 */
static double peak_of(struct pr_query *q)
{
    return fmax(pr_query_get_number(q, COLUMN_MARK), pr_query_get_number(q, COLUMN_RSS));
}

static int fill(struct pr_run_row *row, const struct pr_stored *r, struct proctor_error *err)
{
    struct pr_query *q = NULL;
    struct pr_buf sql = {0};
    write_query(&sql, r->summarized);
    int code = pr_query_new(&q, r->db, pr_buf_text(&sql));
    pr_buf_done(&sql);
    if (code == 0)
        code = pr_query_step(q);
    if (code == 1) {
        row->name = kept(q, COLUMN_NAME);
        row->argv = kept(q, COLUMN_ARGV);
        row->command = kept(q, COLUMN_COMMAND);
        row->target = kept(q, COLUMN_TARGET);
        row->node = kept(q, COLUMN_NODE);
        row->parent = kept(q, COLUMN_PARENT);
        row->labels = kept(q, COLUMN_LABELS);
        row->seconds = pr_query_get_number(q, COLUMN_DURATION);
        row->cpu = pr_query_get_number(q, COLUMN_CPU);
        row->memory = peak_of(q);
        row->samples = pr_query_get_number(q, COLUMN_SAMPLES);
    }
    int result = code < 0 ? pr_stored_failure(r, code, err) : 0;
    pr_query_free(q);
    return result;
}

static double size_of(const char *path)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    char name[4096 + 256];
    double sum = 0;
    struct stat st;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        sum += stat(name, &st) == 0 ? (double)st.st_size : 0;
    }
    return sum;
}

void pr_run_row_read(struct pr_run_row *row, const char *path)
{
    struct proctor_error err = {0};
    struct pr_stored *r = NULL;
    *row = (struct pr_run_row){.path = strdup(path),
                               .seconds = NAN,
                               .cpu = NAN,
                               .memory = NAN,
                               .samples = NAN,
                               .bytes = size_of(path),
                               .exit_code = -1,
                               .exit_signal = -1};
    int code = pr_stored_open(&r, path, STORED_BRIEFLY, &err);
    if (code == 0) {
        row->id = strdup(r->id);
        row->host = *r->host ? strdup(r->host) : NULL;
        row->started = r->started;
        row->state = r->state;
        row->exit_code = r->exit_code;
        row->exit_signal = r->exit_signal;
        row->recovered = r->recovered;
        code = fill(row, r, &err);
    }
    if (code < 0)
        row->trouble = strdup(err.message);
    else if (row->state == RUN_RUNNING)
        row->seconds = pr_seconds(pr_clock_wall() - row->started);
    pr_stored_close(r);
}

void pr_run_row_done(struct pr_run_row *row)
{
    char *const texts[] = {row->path,    row->id,     row->name,   row->argv,
                           row->command, row->target, row->host,   row->node,
                           row->parent,  row->labels, row->trouble};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    *row = (struct pr_run_row){0};
}

bool pr_run_row_failed(const struct pr_run_row *row)
{
    return row->exit_code > 0 || row->exit_signal > 0;
}
