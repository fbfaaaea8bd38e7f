/* SPDX-License-Identifier: Apache-2.0 */
#include "store/published.h"

#include <stdio.h>

/* Only as a table: a view in its place could make us compute for ever. */
static const char there[] =
    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = 'publications'"
    " AND sql NOT LIKE '%virtual%'";
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS publications(id INTEGER PRIMARY KEY, kind TEXT NOT NULL,"
    " url TEXT NOT NULL, remote TEXT, prefix TEXT, node TEXT, owned INTEGER NOT NULL, sample "
    "INTEGER NOT NULL,"
    " ended INTEGER NOT NULL, refused INTEGER NOT NULL, rejected INTEGER NOT NULL)";
static const char newest[] = "SELECT id, remote, owned, sample, ended, prefix, node, refused, "
                             "rejected FROM publications WHERE kind = ?1 AND url = ?2"
                             " AND (?3 IS NULL OR remote = ?3) ORDER BY id DESC LIMIT 1";
static const char insert[] =
    "INSERT INTO publications(kind, url, remote, owned, sample, ended, prefix, node, refused,"
    " rejected) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
static const char update[] =
    "UPDATE publications SET kind = ?1, url = ?2, remote = ?3, owned = ?4,"
    " sample = max(sample, ?5), ended = max(ended, ?6), prefix = ?7, node = ?8,"
    " refused = max(refused, ?9), rejected = max(rejected, ?10) WHERE id = ?11";

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static void take_text(char *ret, size_t size, struct pr_query *q, int column)
{
    const char *text = pr_query_get_text(q, column);
    snprintf(ret, size, "%s", text ? text : "");
}

static int64_t number(const struct pr_stored *r, const char *sql, int64_t first)
{
    struct pr_query *q = NULL;
    int code = pr_query_new(&q, r->db, sql);
    int64_t v = 0;
    if (code == 0) {
        pr_query_int(q, 1, first);
        code = pr_query_step(q);
    }
    if (code == 1)
        v = pr_query_get_int(q, 0);
    pr_query_free(q);
    return code < 0 ? code : v;
}

int pr_published_find(const struct pr_stored *r, struct pr_published *p)
{
    struct pr_query *q = NULL;
    int64_t table = number(r, there, 0);
    int code = table == 1 ? pr_query_new(&q, r->db, newest) : (int)table;
    if (!q)
        return code;
    pr_query_text(q, 1, p->kind);
    pr_query_text(q, 2, p->url);
    pr_query_text(q, 3, or_null(p->remote));
    code = pr_query_step(q);
    if (code == 1) {
        take_text(p->remote, sizeof p->remote, q, 1);
        take_text(p->prefix, sizeof p->prefix, q, 5);
        take_text(p->node, sizeof p->node, q, 6);
        p->id = pr_query_get_int(q, 0);
        p->owned = pr_query_get_int(q, 2) != 0;
        p->sample = pr_query_get_int(q, 3);
        p->ended = pr_query_get_int(q, 4) != 0;
        p->refused = pr_query_get_int(q, 7);
        p->rejected = pr_query_get_int(q, 8);
    }
    pr_query_free(q);
    return code;
}

static int write_row(const struct pr_stored *r, struct pr_published *p)
{
    struct pr_query *q = NULL;
    int code = pr_query_new(&q, r->db, p->id ? update : insert);
    if (code < 0)
        return code;
    pr_query_text(q, 1, p->kind);
    pr_query_text(q, 2, p->url);
    pr_query_text(q, 3, or_null(p->remote));
    pr_query_int(q, 4, p->owned);
    pr_query_int(q, 5, p->sample);
    pr_query_int(q, 6, p->ended);
    pr_query_text(q, 7, p->prefix);
    pr_query_text(q, 8, p->node);
    pr_query_int(q, 9, p->refused);
    pr_query_int(q, 10, p->rejected);
    if (p->id)
        pr_query_int(q, 11, p->id);
    code = pr_query_do(q);
    pr_query_free(q);
    if (code == 0 && !p->id)
        p->id = number(r, "SELECT last_insert_rowid() + 0 * ?1", 0);
    return code;
}

/* A recorder that is at work brings its log to the disk itself. */
int pr_published_save(const struct pr_stored *r, struct pr_published *p)
{
    pr_db_run(r->db, "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0");
    int64_t id = p->id;
    int code = pr_db_run(r->db, "BEGIN IMMEDIATE");
    if (code < 0)
        return code;
    code = pr_db_run(r->db, schema);
    if (code == 0)
        code = write_row(r, p);
    if (code == 0)
        code = pr_db_run(r->db, "COMMIT");
    if (code < 0) {
        p->id = id;
        pr_db_run(r->db, "ROLLBACK");
    }
    return code;
}

int64_t pr_published_left(const struct pr_stored *r, int64_t sample)
{
    return number(r, "SELECT count(*) FROM job_samples WHERE sample > ?1", sample);
}
