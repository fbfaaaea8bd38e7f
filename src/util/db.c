/* SPDX-License-Identifier: Apache-2.0 */
/* What is declared here of SQLite is its stable interface (https://sqlite.org/c3ref/intro.html),
 * so that nothing but the library itself is needed, and that only where a run file is. */
#include "util/db.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/dl.h"

#define LIBRARY "libsqlite3.so.0"

enum { OK = 0, ROW = 100, DONE = 101, TYPE_NULL = 5 };
enum { OPEN_READ = 1, OPEN_WRITE = 2, OPEN_MAKE = 4, OPEN_ONE_THREAD = 0x8000 };

struct sqlite3;
struct sqlite3_stmt;

static struct {
    int (*open)(const char *, struct sqlite3 **, int, const char *);
    int (*close)(struct sqlite3 *);
    int (*exec)(struct sqlite3 *, const char *, void *, void *, char **);
    const char *(*why)(struct sqlite3 *);
    int (*busy_timeout)(struct sqlite3 *, int);
    int (*extended)(struct sqlite3 *, int);
    int (*os_error)(struct sqlite3 *);
    int (*version)(void);
    int (*changes)(struct sqlite3 *);
    int (*prepare)(struct sqlite3 *, const char *, int, struct sqlite3_stmt **, const char **);
    int (*finalize)(struct sqlite3_stmt *);
    struct sqlite3 *(*db_of)(struct sqlite3_stmt *);
    int (*step)(struct sqlite3_stmt *);
    int (*reset)(struct sqlite3_stmt *);
    int (*bind_double)(struct sqlite3_stmt *, int, double);
    int (*bind_int)(struct sqlite3_stmt *, int, int64_t);
    int (*bind_null)(struct sqlite3_stmt *, int);
    int (*bind_text)(struct sqlite3_stmt *, int, const char *, int, void (*)(void *));
    double (*get_double)(struct sqlite3_stmt *, int);
    int64_t (*get_int)(struct sqlite3_stmt *, int);
    const unsigned char *(*get_text)(struct sqlite3_stmt *, int);
    int (*get_type)(struct sqlite3_stmt *, int);
    int (*columns)(struct sqlite3_stmt *);
    const char *(*name)(struct sqlite3_stmt *, int);
} lib;

#define SYMBOL(field, name) PR_DL_SYMBOL(lib, field, "sqlite3_" name)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;
static char missing[200]; /* why it is not loaded */

static void load(void)
{
    const struct pr_dl_symbol symbols[] = {
        SYMBOL(open, "open_v2"),
        SYMBOL(close, "close"),
        SYMBOL(exec, "exec"),
        SYMBOL(why, "errmsg"),
        SYMBOL(busy_timeout, "busy_timeout"),
        SYMBOL(extended, "extended_result_codes"),
        SYMBOL(os_error, "system_errno"),
        SYMBOL(version, "libversion_number"),
        SYMBOL(changes, "changes"),
        SYMBOL(prepare, "prepare_v2"),
        SYMBOL(finalize, "finalize"),
        SYMBOL(db_of, "db_handle"),
        SYMBOL(step, "step"),
        SYMBOL(reset, "reset"),
        SYMBOL(bind_double, "bind_double"),
        SYMBOL(bind_int, "bind_int64"),
        SYMBOL(bind_null, "bind_null"),
        SYMBOL(bind_text, "bind_text"),
        SYMBOL(get_double, "column_double"),
        SYMBOL(get_int, "column_int64"),
        SYMBOL(get_text, "column_text"),
        SYMBOL(get_type, "column_type"),
        SYMBOL(columns, "column_count"),
        SYMBOL(name, "column_name"),
    };
    loaded = pr_dl_open_whole(LIBRARY, symbols, sizeof symbols / sizeof *symbols, &lib, missing,
                              sizeof missing);
}

static bool have_library(char *why, size_t size)
{
    pthread_once(&once, load);
    if (!loaded)
        snprintf(why, size, "%s", missing);
    return loaded;
}

int pr_db_version(char *why, size_t size)
{
    return have_library(why, size) ? lib.version() : 0;
}

struct pr_db {
    struct sqlite3 *handle;
};

/* A statement is one of SQLite's and nothing else; the cast is in one place. */
static struct sqlite3_stmt *stmt(struct pr_query *q)
{
    return (struct sqlite3_stmt *)q;
}

/* Result codes as errno has them; the kernel's own reason where there is one. */
static int code_of(struct pr_db *db, int result)
{
    static const int codes[] = {
        [1] = EINVAL,  [3] = EACCES,  [5] = EBUSY,   [6] = EBUSY,    [7] = ENOMEM,
        [8] = EROFS,   [9] = EINTR,   [10] = EIO,    [11] = EUCLEAN, [13] = ENOSPC,
        [14] = ENOENT, [15] = EAGAIN, [17] = ESTALE, [22] = EFBIG,   [26] = EMEDIUMTYPE};
    unsigned plain = (unsigned)result & 0xff;
    int kernel = plain == 10 || plain == 14 ? lib.os_error(db->handle) : 0;
    if (kernel > 0)
        return -kernel;
    return plain < sizeof codes / sizeof *codes && codes[plain] ? -codes[plain] : -EIO;
}

int pr_db_open(struct pr_db **ret_db, const char *path, enum pr_db_mode mode, char *why,
               size_t size)
{
    static const int flags[] = {
        [DB_READ] = OPEN_READ, [DB_CHANGE] = OPEN_WRITE, [DB_CREATE] = OPEN_WRITE | OPEN_MAKE};
    if (!have_library(why, size))
        return -ENOSYS;
    struct pr_db *db = calloc(1, sizeof *db);
    if (!db) {
        snprintf(why, size, "out of memory");
        return -ENOMEM;
    }
    int result = lib.open(path, &db->handle, flags[mode] | OPEN_ONE_THREAD, NULL);
    if (result == OK) {
        lib.extended(db->handle, 1);
        *ret_db = db;
        return 0;
    }
    int r = db->handle ? code_of(db, result) : -ENOMEM;
    snprintf(why, size, "%s", db->handle ? lib.why(db->handle) : "out of memory");
    pr_db_close(db);
    return r;
}

void pr_db_close(struct pr_db *db)
{
    if (!db)
        return;
    if (db->handle)
        lib.close(db->handle);
    free(db);
}

const char *pr_db_why(struct pr_db *db)
{
    return lib.why(db->handle);
}

void pr_db_patience(struct pr_db *db, int milliseconds)
{
    lib.busy_timeout(db->handle, milliseconds);
}

int pr_db_run(struct pr_db *db, const char *sql)
{
    int result = lib.exec(db->handle, sql, NULL, NULL, NULL);
    return result == OK ? 0 : code_of(db, result);
}

int64_t pr_db_changes(struct pr_db *db)
{
    return lib.changes(db->handle);
}

int pr_query_new(struct pr_query **ret_query, struct pr_db *db, const char *sql)
{
    struct sqlite3_stmt *made = NULL;
    int result = lib.prepare(db->handle, sql, -1, &made, NULL);
    if (result != OK)
        return code_of(db, result);
    *ret_query = (struct pr_query *)made;
    return 0;
}

void pr_query_free(struct pr_query *q)
{
    if (q)
        lib.finalize(stmt(q));
}

void pr_query_number(struct pr_query *q, int at, double v)
{
    if (isnan(v))
        lib.bind_null(stmt(q), at);
    else
        lib.bind_double(stmt(q), at, v);
}

void pr_query_int(struct pr_query *q, int at, int64_t v)
{
    lib.bind_int(stmt(q), at, v);
}

void pr_query_text(struct pr_query *q, int at, const char *text)
{
    lib.bind_text(stmt(q), at, text, -1, NULL);
}

void pr_query_null(struct pr_query *q, int at)
{
    lib.bind_null(stmt(q), at);
}

/* The error is looked up in the connection that the statement belongs to. */
int pr_query_step(struct pr_query *q)
{
    int result = lib.step(stmt(q));
    if (result == ROW || result == DONE)
        return result == ROW;
    struct pr_db db = {lib.db_of(stmt(q))};
    return code_of(&db, result);
}

void pr_query_reset(struct pr_query *q)
{
    lib.reset(stmt(q));
}

int pr_query_do(struct pr_query *q)
{
    int r;
    while ((r = pr_query_step(q)) > 0)
        continue;
    lib.reset(stmt(q));
    return r;
}

double pr_query_get_number(struct pr_query *q, int column)
{
    return pr_query_is_null(q, column) ? NAN : lib.get_double(stmt(q), column);
}

int64_t pr_query_get_int(struct pr_query *q, int column)
{
    return lib.get_int(stmt(q), column);
}

const char *pr_query_get_text(struct pr_query *q, int column)
{
    return (const char *)lib.get_text(stmt(q), column);
}

bool pr_query_is_null(struct pr_query *q, int column)
{
    return lib.get_type(stmt(q), column) == TYPE_NULL;
}

int pr_query_columns(struct pr_query *q)
{
    return lib.columns(stmt(q));
}

const char *pr_query_name(struct pr_query *q, int column)
{
    return lib.name(stmt(q), column);
}
