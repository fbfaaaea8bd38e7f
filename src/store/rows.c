/* SPDX-License-Identifier: Apache-2.0 */
#include "store/rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

/* Files that cannot be read come last. */
static int newest_first(const void *a, const void *b)
{
    const struct pr_run_row *x = a, *y = b;
    if (!x->trouble != !y->trouble)
        return x->trouble ? 1 : -1;
    if (x->started != y->started)
        return x->started < y->started ? 1 : -1;
    return strcmp(y->path ? y->path : "", x->path ? x->path : "");
}

ssize_t pr_run_rows_read(struct pr_run_row **ret_rows, struct proctor_error *err)
{
    struct pr_store_names names;
    char path[4096 + 256];
    size_t count = 0;
    int code = pr_store_names(&names, err);
    struct pr_run_row *rows = code < 0 ? NULL : calloc(names.count + 1, sizeof *rows);
    for (size_t i = 0; rows && i < names.count; i++)
        if (pr_store_path(&names, i, path, sizeof path))
            pr_run_row_read(&rows[count++], path);
    pr_store_names_done(&names);
    if (!rows)
        return code < 0 ? code : pr_error(err, ENOMEM, "out of memory");
    qsort(rows, count, sizeof *rows, newest_first);
    *ret_rows = rows;
    return (ssize_t)count;
}

void pr_run_rows_free(struct pr_run_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pr_run_row_done(&rows[i]);
    free(rows);
}

bool pr_run_row_has_status(const struct pr_run_row *row, const char *status)
{
    bool died = row->state == RUN_DIED || row->recovered;
    if (row->trouble)
        return false;
    if (strcmp(status, "running") == 0 || strcmp(status, "elsewhere") == 0)
        return strcmp(status, pr_run_state_name(row->state)) == 0;
    if (strcmp(status, "died") == 0)
        return died;
    return row->state == RUN_ENDED && !died &&
           pr_run_row_failed(row) == (strcmp(status, "failed") == 0);
}

static void put_text(struct pr_json *j, const char *key, const char *v)
{
    pr_json_key(j, key);
    pr_json_string(j, v);
}

static void put_number(struct pr_json *j, const char *key, double v)
{
    pr_json_key(j, key);
    pr_json_number(j, v);
}

static void put_raw(struct pr_json *j, const char *key, const char *v, const char *none)
{
    pr_json_key(j, key);
    pr_json_raw(j, v ? v : none);
}

static const char *status_name(const struct pr_run_row *row)
{
    static const char *const names[] = {"running", "elsewhere", "died", "failed", "ok"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (pr_run_row_has_status(row, names[i]))
            return names[i];
    return "damaged";
}

void pr_run_row_json(struct pr_json *j, const struct pr_run_row *row)
{
    char started[40];
    pr_clock_rfc3339(row->started, started, sizeof started);
    pr_json_open(j, '{');
    put_text(j, "id", row->id);
    put_text(j, "name", row->name);
    put_raw(j, "command", row->argv, "[]");
    put_text(j, "target", row->target);
    put_text(j, "host", row->host);
    put_text(j, "node", row->node);
    put_text(j, "parent", row->parent);
    put_raw(j, "labels", row->labels, "{}");
    put_text(j, "started", row->trouble ? NULL : started);
    put_number(j, "duration", row->seconds);
    put_text(j, "status", status_name(row));
    put_number(j, "exit_code", row->exit_code < 0 ? NAN : row->exit_code);
    put_number(j, "exit_signal", row->exit_signal < 0 ? NAN : row->exit_signal);
    pr_json_key(j, "recovered");
    pr_json_bool(j, row->recovered);
    put_number(j, "samples", row->samples);
    put_number(j, "cpu_seconds", row->cpu);
    put_number(j, "memory_peak_bytes", row->memory);
    put_number(j, "file_bytes", row->bytes);
    put_text(j, "file", row->path);
    put_text(j, "trouble", row->trouble);
    pr_json_close(j, '}');
}
