/* SPDX-License-Identifier: Apache-2.0 */
#include "store/stored.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/own_files.h"
#include "core/run_file.h"
#include "store/copy.h"
#include "util/clock.h"
#include "util/text.h"

#define TIME_MOST INT64_C(4000000000000000000) /* in the year 2096 */
#define PATIENCE  5000 /* milliseconds: a commit of the recorder takes less */

/* --- what went wrong -------------------------------------------------------------------------- */

static int refuse(struct proctor_error *err, int code, const char *path, const char *why)
{
    struct pr_buf safe = {0};
    pr_text_safe(&safe, pr_text_tail(path, 140));
    pr_error(err, code, "%s: %s", pr_buf_text(&safe), why);
    pr_buf_done(&safe);
    return -code;
}

/* `said` is what SQLite says. */
static int explain(struct proctor_error *err, int code, const char *path, const char *said)
{
    char why[160];
    switch (code) {
    case -EMEDIUMTYPE:
        return refuse(err, EMEDIUMTYPE, path, "this is not a run file");
    case -EUCLEAN:
        snprintf(why, sizeof why, "the file is damaged: %.100s", said);
        return refuse(err, EUCLEAN, path, why);
    case -ENOSPC:
    case -EROFS:
        snprintf(why, sizeof why, "it cannot be written: %.100s", said);
        return refuse(err, -code, path, why);
    case -EBUSY:
        return refuse(err, EBUSY, path, "another process holds the file; try again");
    case -ENOENT:
    case -EACCES:
    case -ENOMEM:
        return refuse(err, -code, path, strerror(-code));
    default:
        snprintf(why, sizeof why, "it cannot be read: %.100s", said);
        return refuse(err, code < 0 ? -code : EIO, path, why);
    }
}

int pr_stored_failure(const struct pr_stored *r, int code, struct proctor_error *err)
{
    return explain(err, code, r->path, pr_db_why(r->db));
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* The member as a query that stands on its row, or NULL. */
static struct pr_query *member(const struct pr_stored *r, const char *json, const char *path)
{
    struct pr_query *q = NULL;
    if (!json || pr_query_new(&q, r->db, "SELECT json_extract(?1, ?2)") < 0)
        return NULL;
    pr_query_text(q, 1, json);
    pr_query_text(q, 2, path);
    if (pr_query_step(q) == 1 && !pr_query_is_null(q, 0))
        return q;
    pr_query_free(q);
    return NULL;
}

bool pr_stored_text(const struct pr_stored *r, const char *json, const char *path,
                    struct pr_buf *out)
{
    struct pr_query *q = member(r, json, path);
    const char *text = q ? pr_query_get_text(q, 0) : NULL;
    pr_buf_reset(out);
    if (text)
        pr_buf_str(out, text);
    pr_query_free(q);
    return text && !out->failed;
}

double pr_stored_number(const struct pr_stored *r, const char *json, const char *path)
{
    struct pr_query *q = member(r, json, path);
    double v = q ? pr_query_get_number(q, 0) : NAN;
    pr_query_free(q);
    return v;
}

int pr_stored_summary(const struct pr_stored *r, struct pr_buf *out, struct proctor_error *err)
{
    struct pr_query *q = NULL;
    int code = pr_query_new(&q, r->db, "SELECT " STORED_OBJECT("json") " FROM " STORED_SUMMARY);
    if (code == 0)
        code = pr_query_step(q);
    const char *text = code == 1 ? pr_query_get_text(q, 0) : NULL;
    pr_buf_reset(out);
    if (text)
        pr_buf_str(out, text);
    int result = code < 0 ? pr_stored_failure(r, code, err)
                 : text   ? 0
                          : refuse(err, ENODATA, r->path, "there is no summary in it");
    pr_query_free(q);
    return result;
}

int64_t pr_stored_time(struct pr_query *q, int column)
{
    int64_t v = pr_query_get_int(q, column);
    return v > TIME_MOST ? TIME_MOST : v < -TIME_MOST ? -TIME_MOST : v;
}

/* --- what the run is -------------------------------------------------------------------------- */

/* A copy of a text of the row that the query is on; NULL for none. */
static char *kept(struct pr_query *q, int column)
{
    const char *text = pr_query_get_text(q, column);
    return text ? strdup(text) : NULL;
}

static int optional(struct pr_query *q, int column)
{
    int64_t v = pr_query_get_int(q, column);
    return pr_query_is_null(q, column) || v < 0 || v > 1000000 ? -1 : (int)v;
}

static int read_run(struct pr_stored *r, struct proctor_error *err)
{
    struct pr_query *q = NULL;
    int code = pr_query_new(&q, r->db,
                            "SELECT id, host, started, interval, ended, exit_code, exit_signal,"
                            " " STORED_OBJECT("about") ", (SELECT recovered FROM " STORED_SUMMARY
                                                       ") FROM run");
    if (code == 0)
        code = pr_query_step(q);
    if (code == 1) {
        const char *id = pr_query_get_text(q, 0), *host = pr_query_get_text(q, 1);
        snprintf(r->id, sizeof r->id, "%s", id ? id : "");
        snprintf(r->host, sizeof r->host, "%s", host ? host : "");
        r->started = pr_stored_time(q, 2);
        r->interval = pr_seconds(pr_stored_time(q, 3));
        r->ended = pr_stored_time(q, 4);
        r->exit_code = optional(q, 5);
        r->exit_signal = optional(q, 6);
        r->about = kept(q, 7);
        r->summarized = !pr_query_is_null(q, 8);
        r->recovered = pr_query_get_int(q, 8) != 0;
    }
    int result = code < 0    ? pr_stored_failure(r, code, err)
                 : code == 0 ? refuse(err, EUCLEAN, r->path,
                                      "there is no run in it: its recorder ended as it began")
                             : 0;
    pr_query_free(q);
    return result;
}

static void read_limits(struct pr_stored *r)
{
    static const struct {
        enum pr_limit id;
        const char *total, *source;
    } rows[] = {{LIMIT_CPU, "$.limits.cpu.cores", "$.limits.cpu.source"},
                {LIMIT_MEMORY, "$.limits.memory.bytes", "$.limits.memory.source"}};
    struct pr_buf text = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        r->limits.total[rows[i].id] = pr_stored_number(r, r->about, rows[i].total);
        pr_stored_text(r, r->about, rows[i].source, &text);
        snprintf(r->limits.source[rows[i].id], sizeof r->limits.source[0], "%s",
                 pr_buf_text(&text));
    }
    pr_buf_done(&text);
}

/* Keys that this version does not have are left out. */
static int read_selection(struct pr_stored *r, struct proctor_error *err)
{
    struct pr_query *q = NULL;
    int code = pr_query_new(&q, r->db, "SELECT key FROM metrics WHERE selected");
    while (code == 0 && (code = pr_query_step(q)) == 1) {
        const char *key = pr_query_get_text(q, 0);
        enum pr_metric_id id = key ? pr_metric_find(key) : METRIC_NONE;
        if (id != METRIC_NONE)
            r->select.shown[id] = true;
        code = 0;
    }
    pr_query_free(q);
    return code < 0 ? pr_stored_failure(r, code, err) : 0;
}

/* --- is it one at all? ------------------------------------------------------------------------ */

static int64_t pragma(struct pr_stored *r, const char *sql, int *ret_code)
{
    struct pr_query *q = NULL;
    int code = pr_query_new(&q, r->db, sql);
    if (code == 0)
        code = pr_query_step(q);
    int64_t v = code == 1 ? pr_query_get_int(q, 0) : 0;
    pr_query_free(q);
    if (code < 0 && *ret_code == 0)
        *ret_code = code;
    return v;
}

/* A view in the place of a table could make us compute for ever. */
static const char tables_are_tables[] =
    "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND sql NOT LIKE"
    " '%virtual%' AND name IN ('run', 'metrics', 'entities', 'events', 'phases', 'summary',"
    " 'job_samples', 'system_samples', 'process_samples', 'core_samples', 'disk_samples',"
    " 'filesystem_samples', 'interface_samples', 'gpu_samples', 'mark_sets')";
enum { TABLES = 15 };

static int check(struct pr_stored *r, struct proctor_error *err)
{
    int code = 0;
    char why[120];
    int64_t application = pragma(r, "PRAGMA application_id", &code);
    int64_t version = pragma(r, "PRAGMA user_version", &code);
    if (code < 0)
        return pr_stored_failure(r, code, err);
    if (application != RUN_FILE_APPLICATION)
        return refuse(err, EMEDIUMTYPE, r->path, "this is not a run file");
    if (version > RUN_FILE_VERSION) {
        snprintf(why, sizeof why,
                 "it was written by a newer proctor (schema %lld, this one reads up to %d)",
                 (long long)version, RUN_FILE_VERSION);
        return refuse(err, EPROTO, r->path, why);
    }
    if (pragma(r, "SELECT json_valid('{}')", &code) != 1)
        return refuse(err, ENOSYS, r->path, "this SQLite library was built without JSON");
    int64_t tables = pragma(r, tables_are_tables, &code);
    if (code < 0)
        return pr_stored_failure(r, code, err);
    return tables == TABLES ? 0 : refuse(err, EUCLEAN, r->path, "tables are missing in it");
}

static int fill(struct pr_stored *r, enum pr_stored_use use, struct proctor_error *err)
{
    int code = check(r, err);
    if (code == 0)
        code = read_run(r, err);
    if (code < 0 || use == STORED_BRIEFLY)
        return code;
    read_limits(r);
    return read_selection(r, err);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* What can be said before SQLite has a look. *ret_held: somebody records into it. */
static int look(struct pr_stored *r, bool *ret_held, struct proctor_error *err)
{
    int code = pr_own_file_read(r->path, &r->own, ret_held);
    switch (code) {
    case 0:
        return 0;
    case -EISDIR:
        return refuse(err, EISDIR, r->path, "this is a directory");
    case -EMEDIUMTYPE:
        return refuse(err, EMEDIUMTYPE, r->path, "this is not a run file");
    default:
        return refuse(err, -code, r->path, strerror(-code));
    }
}

/* SQLite opens a file when it first reads it. */
static int open_db(struct pr_stored *r, const char *path, enum pr_stored_use use,
                   struct proctor_error *err)
{
    char why[160] = "";
    enum pr_db_mode mode = use == STORED_CHANGE ? DB_CHANGE : DB_READ;
    int code = pr_db_open(&r->db, path, mode, why, sizeof why);
    if (code < 0)
        return explain(err, code, r->path, why);
    pr_db_patience(r->db, PATIENCE);
    pr_db_run(r->db, "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; BEGIN");
    code = fill(r, use, err);
    if (use != STORED_BRIEFLY) /* it is read in one go */
        pr_db_run(r->db, "COMMIT");
    return code;
}

static void forget(struct pr_stored *r)
{
    pr_db_close(r->db);
    r->db = NULL;
    free(r->about);
    r->about = NULL;
}

static int open_any(struct pr_stored *r, enum pr_stored_use use, struct proctor_error *err)
{
    int code = open_db(r, r->path, use, err);
    if (code == 0 || use == STORED_CHANGE || !pr_copy_may_help(r->path, code))
        return code;
    forget(r);
    char copied[4096];
    if (!pr_copy_make(pr_own_file_fd(r->own), r->path, r->copy, sizeof r->copy, copied,
                      sizeof copied))
        return code;
    return open_db(r, copied, use, err);
}

int pr_stored_open(struct pr_stored **ret, const char *path, enum pr_stored_use use,
                   struct proctor_error *err)
{
    bool held = false;
    struct pr_stored *r = calloc(1, sizeof *r);
    if (!r || !(r->path = strdup(path))) {
        free(r);
        return pr_error(err, ENOMEM, "out of memory");
    }
    int code = look(r, &held, err);
    if (code == 0)
        code = open_any(r, use, err);
    if (code < 0) {
        pr_stored_close(r);
        return code;
    }
    bool over = r->ended || r->summarized;
    r->state = over ? RUN_ENDED : held ? RUN_RUNNING : pr_stored_recorder(r);
    *ret = r;
    return 0;
}

void pr_stored_close(struct pr_stored *r)
{
    if (!r)
        return;
    forget(r);
    pr_own_file_done(r->own);
    pr_copy_remove(r->copy);
    free(r->path);
    free(r);
}

void pr_stored_abandon(struct pr_stored *r)
{
    free(r->about);
    free(r->path);
    free(r);
}
