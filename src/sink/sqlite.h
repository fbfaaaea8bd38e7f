/* SPDX-License-Identifier: Apache-2.0 */
/* The run file while it is written (doc/run-file.md). One transaction per sample. What has been
 * written counts only once it is committed: after a failure everything since is written again, and
 * what is stored as changes begins anew with whole rows. */
#pragma once
#include "core/sink.h"
#include "sink/sqlite_series.h"
#include "util/db.h"

/* Statements besides those that add a row of samples. */
enum record_query {
    QUERY_BEGIN,
    QUERY_COMMIT,
    QUERY_ENTITY,
    QUERY_RENAME,
    QUERY_COMMAND,
    QUERY_LAST,
    QUERY_END,
    QUERY_ENDED,
    QUERY_EVENT,
    QUERY_MARK,
    QUERY_PHASE,
    QUERY_PHASE_END,
    QUERY_PHASE_LATE,
    QUERY_MARK_SET,
    QUERY_SUMMARY,
    QUERY_RUN_END,
    QUERY_COUNT
};

/* Up to where others have been written. */
struct record_cursors {
    size_t events, exits;
    struct pr_notes_place notes;
};

struct record {
    struct pr_sink sink;
    char *path, *run;
    char name[112]; /* for people */
    int fd;         /* with which it was made: closing it would drop SQLite's locks */
    bool network, wal, ready, dead, begun, locked;
    bool hasty; /* somebody holds the file: waiting for him once is enough */
    struct pr_select select;
    struct pr_events *events;
    const struct pr_roll *roll;
    const struct pr_host *host;
    struct pr_notes *notes;
    struct pr_db *db;
    _Atomic int *held; /* our descriptors and SQLite's */
    struct pr_query *query[QUERY_COUNT], *insert[RUN_TABLES];
    struct record_series series[RUN_TABLES];
    struct record_cursors done, now; /* committed, and in this transaction */
    struct pr_buf text, note;        /* scratch */
    struct pr_map mark_sets;         /* hash of the JSON: its row */
    int64_t next_marks;
    int64_t start;                                    /* wall time, ns */
    int64_t sample, next_id;                          /* numbers */
    int64_t elapsed;                                  /* of the sample that is written, ns */
    int64_t job_at, machine_at, machine_now;          /* elapsed of the last rows, -1 for none */
    int64_t synced;                                   /* boot time */
    bool phase_ended;                                 /* since */
    unsigned long missing, missing_now, missing_said; /* samples: all, lately, those told of */
    bool said, said_again, behind;
    char why[160]; /* of the last failure */
};

/* sqlite_disk.c: the database */
/* Opens it and makes the tables, where that has not been done. 0 or -errno, and why. */
int pr_record_ready(struct record *r);
int pr_record_begin(struct record *r);
/* An error of statements in between comes out here at the latest. */
int pr_record_commit(struct record *r);
void pr_record_rollback(struct record *r);
/* To the disk, where it is time for that. */
void pr_record_sync(struct record *r, bool now);
/* One file that needs no other, where nobody else has it open. */
void pr_record_finish(struct record *r);

/* sqlite_rows.c: samples */
void pr_record_rows_init(struct record *r);
void pr_record_rows_done(struct record *r);
int pr_record_sample(struct record *r, const struct proctor_snapshot *s);
/* What was written in the transaction holds, or nothing of it. */
void pr_record_rows_settle(struct record *r, bool committed);

/* sqlite_notes.c: what happened besides */
int pr_record_notes(struct record *r);
int pr_record_events(struct record *r);
int pr_record_exits(struct record *r, size_t until);
