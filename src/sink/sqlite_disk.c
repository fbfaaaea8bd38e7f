/* SPDX-License-Identifier: Apache-2.0 */
/* The database of a run: how it is opened, how safe what is written is, and how it is left. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/own_files.h"
#include "sink/sqlite.h"
#include "util/clock.h"

#define SYNC_EVERY (10 * NS_PER_S)
#define SYNC_LEAST NS_PER_S /* between two ends of phases */
#define PATIENCE   2000     /* milliseconds, for others who hold the file */
#define IMPATIENCE 1000     /* at the end, when somebody waits for us */

/* File systems on which processes of several machines may have a file open. SQLite's log needs
 * memory that all of them share. */
static bool is_network(int fd)
{
    static const uint32_t magic[] = {
        0x6969,     /* nfs */
        0x517b,     /* smb */
        0xff534d42, /* cifs */
        0xfe534d42, /* smb2 */
        0x5346414f, /* afs */
        0x73757245, /* coda */
        0x564c,     /* ncp */
        0x00c36400, /* ceph */
        0x01021997, /* 9p */
        0x0bd00bd0, /* lustre */
        0x47504653, /* gpfs */
        0x19830326, /* beegfs */
        0xaad7aaea, /* panfs */
        0x7461636f, /* ocfs2 */
        0x01161970, /* gfs2 */
        0x786f4256, /* vboxsf */
        0x65735546, /* fuse: sshfs and others */
    };
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof magic / sizeof *magic; i++)
        if ((uint32_t)fs.f_type == magic[i])
            return true;
    return false;
}

/* --- making it -------------------------------------------------------------------------------- */

static const char *const sql[QUERY_COUNT] = {
    [QUERY_BEGIN] = "BEGIN IMMEDIATE",
    [QUERY_COMMIT] = "COMMIT",
    [QUERY_ENTITY] = "INSERT INTO entities(id,kind,name,pid,ppid,started,first,model,uuid,counted,"
                     "match) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
    [QUERY_RENAME] = "UPDATE entities SET name=?2,ppid=?3,match=?4 WHERE id=?1",
    [QUERY_COMMAND] = "UPDATE entities SET command=?2 WHERE id=?1",
    [QUERY_LAST] = "UPDATE entities SET last=?2 WHERE id=?1",
    [QUERY_END] = "UPDATE entities SET name=?3,ppid=?4,ended=?5,exit_code=?6,exit_signal=?7,"
                  "samples=?8,known_by=?9,cpu_time_seconds=?10,mem_rss_peak_bytes=?11,"
                  "io_read_bytes=?12,io_write_bytes=?13,io_rchar_bytes=?14,io_wchar_bytes=?15"
                  " WHERE pid=?1 AND started=?2 AND kind='process'",
    [QUERY_ENDED] = "INSERT INTO entities(kind,pid,started,name,ppid,ended,exit_code,exit_signal,"
                    "samples,known_by,cpu_time_seconds,mem_rss_peak_bytes,io_read_bytes,"
                    "io_write_bytes,io_rchar_bytes,io_wchar_bytes,id)"
                    " VALUES('process',?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)",
    [QUERY_EVENT] = "INSERT INTO events(elapsed,event,seconds,text) VALUES(?,?,?,?)",
    [QUERY_MARK] = "INSERT INTO events(elapsed,event,name,data) VALUES(?1,"
                   "json_extract(?2,'$.event'),json_extract(?2,'$.name'),"
                   "json_extract(?2,'$.data'))",
    [QUERY_PHASE] = "INSERT INTO phases(name,start,depth) VALUES(json_extract(?1,'$.name'),"
                    "CAST(round(json_extract(?1,'$.start')*1e9) AS INTEGER),"
                    "json_extract(?1,'$.depth'))",
    [QUERY_PHASE_END] = "UPDATE phases SET seconds=json_extract(?1,'$.seconds'),data=?1"
                        " WHERE name=json_extract(?1,'$.name') AND seconds IS NULL AND"
                        " start=CAST(round(json_extract(?1,'$.start')*1e9) AS INTEGER)",
    [QUERY_PHASE_LATE] = "INSERT INTO phases(name,start,depth,seconds,data)"
                         " VALUES(json_extract(?1,'$.name'),"
                         "CAST(round(json_extract(?1,'$.start')*1e9) AS INTEGER),"
                         "json_extract(?1,'$.depth'),json_extract(?1,'$.seconds'),?1)",
    [QUERY_MARK_SET] = "INSERT INTO mark_sets VALUES(?,?)",
    [QUERY_SUMMARY] = "INSERT OR REPLACE INTO summary(rowid,json) VALUES(1,?)",
    [QUERY_RUN_END] = "UPDATE run SET ended=?1,exit_code=json_extract(?2,'$.exit.code'),"
                      "exit_signal=json_extract(?2,'$.exit.signal')",
};

static int fail(struct record *r, int code)
{
    snprintf(r->why, sizeof r->why, "%s", pr_db_why(r->db));
    return code;
}

static void free_queries(struct record *r)
{
    for (int i = 0; i < QUERY_COUNT; i++)
        pr_query_free(r->query[i]);
    for (int i = 0; i < RUN_TABLES; i++)
        pr_query_free(r->insert[i]);
    memset(r->query, 0, sizeof r->query);
    memset(r->insert, 0, sizeof r->insert);
}

static int prepare(struct record *r)
{
    int code = 0;
    for (int i = 0; i < QUERY_COUNT && code == 0; i++)
        code = pr_query_new(&r->query[i], r->db, sql[i]);
    for (int i = 0; i < RUN_TABLES && code == 0; i++) {
        pr_buf_reset(&r->text);
        pr_run_table_insert(&r->text, (enum pr_run_table)i);
        code = pr_query_new(&r->insert[i], r->db, pr_buf_text(&r->text));
    }
    return code < 0 ? fail(r, code) : 0;
}

/* Its one row, from what is known of the run. */
static int add_run(struct record *r)
{
    static const char insert[] =
        "INSERT INTO run(about,started,id,parent,name,node,host,command,target,labels,interval,"
        "recorder,version) SELECT "
        "a,?2,ifnull(json_extract(a,'$.id'),''),json_extract(a,'$.parent'),"
        "json_extract(a,'$.name'),json_extract(a,'$.node'),json_extract(a,'$.host'),"
        "json_extract(a,'$.command'),json_extract(a,'$.target'),json_extract(a,'$.labels'),"
        "CAST(round(json_extract(a,'$.interval')*1e9) AS INTEGER),"
        "json_extract(a,'$.recorder.pid'),json_extract(a,'$.version') FROM (SELECT ?1 AS a)";
    struct pr_query *q = NULL;
    int code = pr_query_new(&q, r->db, insert);
    pr_buf_reset(&r->text);
    pr_buf_printf(&r->text, "{%s}", r->run);
    if (code == 0) {
        pr_query_text(q, 1, pr_buf_text(&r->text));
        pr_query_int(q, 2, r->start);
        code = pr_query_do(q);
    }
    if (code < 0)
        fail(r, code);
    pr_query_free(q);
    return code;
}

static int make_tables(struct record *r)
{
    struct pr_buf text = {0};
    pr_buf_str(&text, "BEGIN IMMEDIATE;\n");
    pr_run_file_schema(&text);
    pr_run_file_metrics(&text, r->select.shown);
    int code = text.failed ? -ENOMEM : pr_db_run(r->db, pr_buf_text(&text));
    pr_buf_done(&text);
    if (code < 0)
        fail(r, code);
    if (code == 0)
        code = add_run(r);
    if (code == 0 && (code = pr_db_run(r->db, "COMMIT")) < 0)
        fail(r, code);
    if (code < 0)
        pr_db_run(r->db, "ROLLBACK");
    return code;
}

static void close_db(struct record *r)
{
    free_queries(r);
    pr_db_close(r->db);
    r->db = NULL;
}

/* Says whether that is the mode now. */
static int set_journal(struct record *r, const char *mode)
{
    char text[64];
    struct pr_query *q = NULL;
    snprintf(text, sizeof text, "PRAGMA journal_mode=%s", mode);
    int code = pr_query_new(&q, r->db, text);
    if (code == 0)
        code = pr_query_step(q);
    if (code < 0)
        fail(r, code);
    const char *now = code > 0 ? pr_query_get_text(q, 0) : NULL;
    bool good = now && strcasecmp(now, mode) == 0;
    pr_query_free(q);
    return code < 0 ? code : good ? 0 : -EOPNOTSUPP;
}

/* The log is written without waiting for the disk and brought over by sync: never in a commit,
 * unless it becomes large. */
static int open_db(struct record *r, bool wal)
{
    int code = pr_db_open(&r->db, r->path, DB_CHANGE, r->why, sizeof r->why);
    if (code < 0)
        return code;
    pr_db_patience(r->db, PATIENCE);
    code = pr_db_run(r->db, "PRAGMA cache_size=-1024; PRAGMA temp_store=MEMORY;"
                            "PRAGMA wal_autocheckpoint=8192; PRAGMA synchronous=OFF");
    if (code == 0)
        code = set_journal(r, wal ? "wal" : "truncate");
    if (code == 0)
        code = make_tables(r);
    if (code == 0 && wal) /* not before: an empty run is not worth waiting for */
        code = pr_db_run(r->db, "PRAGMA synchronous=NORMAL");
    if (code == 0)
        code = prepare(r);
    if (code < 0)
        close_db(r);
    r->wal = wal;
    return code;
}

static bool may_pass(int code)
{
    return code == -ENOSPC || code == -EDQUOT || code == -EFBIG || code == -EBUSY ||
           code == -ENOMEM || code == -ENOSYS;
}

/* By it others see that we live. One who looks has it for a moment: then it is tried again. Not on
 * file systems of the network: there it would be one of the locks that SQLite takes. */
static void take_lock(struct record *r)
{
    if (!r->network && !r->locked)
        r->locked = flock(r->fd, LOCK_EX | LOCK_NB) == 0;
}

int pr_record_ready(struct record *r)
{
    if (r->ready)
        return 0;
    if (!r->begun) {
        r->network = is_network(r->fd);
        r->begun = true;
        take_lock(r);
    }
    int code = open_db(r, !r->network);
    if (code < 0 && !r->network && !may_pass(code)) {
        /* The file may say by now that it has a log. Nothing is in it yet. */
        pr_run_file_remove_beside(r->path);
        code = ftruncate(r->fd, 0) < 0 ? -errno : open_db(r, false);
        r->network |= code == 0;
    }
    r->ready = code == 0;
    if (r->ready && r->held) /* the file twice; and the log with its index, or the journal */
        *r->held = r->wal ? 4 : 3;
    r->synced = pr_clock_boot();
    return code;
}

/* --- transactions ----------------------------------------------------------------------------- */

/* Other outputs wait for this thread: who holds the file is waited for once, and not again before
 * he has let go. */
static int judge(struct record *r, int code)
{
    bool hasty = code == -EBUSY || (code < 0 && r->hasty);
    if (hasty != r->hasty)
        pr_db_patience(r->db, hasty ? 0 : PATIENCE);
    r->hasty = hasty;
    return code < 0 ? fail(r, code) : 0;
}

int pr_record_begin(struct record *r)
{
    int code = pr_query_do(r->query[QUERY_BEGIN]);
    r->now = r->done;
    return code < 0 ? judge(r, code) : 0;
}

int pr_record_commit(struct record *r)
{
    int code = judge(r, pr_query_do(r->query[QUERY_COMMIT]));
    if (code < 0)
        return code;
    r->done = r->now;
    pr_record_rows_settle(r, true);
    return 0;
}

void pr_record_rollback(struct record *r)
{
    snprintf(r->why, sizeof r->why, "%s", pr_db_why(r->db));
    pr_db_run(r->db, "ROLLBACK"); /* SQLite may have done so itself */
    pr_record_rows_settle(r, false);
}

void pr_record_sync(struct record *r, bool now)
{
    int64_t at = pr_clock_boot(), since = at - r->synced;
    if (!now && since < (r->phase_ended ? SYNC_LEAST : SYNC_EVERY))
        return;
    r->synced = at;
    r->phase_ended = false;
    take_lock(r);
    /* What fails here is tried again the next time; nothing is lost by it. */
    if (r->wal)
        pr_db_run(r->db, "PRAGMA wal_checkpoint(PASSIVE)");
    else
        fdatasync(r->fd);
}

void pr_record_finish(struct record *r)
{
    if (r->db) {
        pr_db_patience(r->db, IMPATIENCE);
        free_queries(r);
        int code = r->ready && r->wal ? pr_db_run(r->db, "PRAGMA wal_checkpoint(TRUNCATE)") : 0;
        if (code < 0 && code != -EBUSY)
            pr_event_problem(r->events, pr_seconds(r->elapsed),
                             "%s: %s; its end is in a file beside it (-wal): keep them together",
                             r->name, pr_db_why(r->db));
        /* Somebody may be reading: then it stays as it is, and can be read. What changes is one
         * number in the first page. */
        if (r->ready)
            pr_db_run(r->db, "PRAGMA synchronous=OFF; PRAGMA journal_mode=DELETE");
        close_db(r);
        fdatasync(r->fd);
    }
    pr_own_file_close(r->fd);
    if (!r->ready)
        pr_run_file_remove(r->path);
}
