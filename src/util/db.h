/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite, loaded at first use: as much of it as a run file needs. Functions return 0 or -errno;
 * what SQLite says of a failure is in pr_db_why. One thread at a time uses a database and what was
 * prepared for it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pr_db;
struct pr_query; /* a prepared statement */

enum pr_db_mode {
    DB_READ,   /* others may be writing; nothing is made or changed */
    DB_CHANGE, /* it must be there */
    DB_CREATE, /* it is made where it is not there */
};

/* -ENOSYS where there is no library, -ENOMEM, or what opening gave; then the reason is in why. */
int pr_db_open(struct pr_db **ret_db, const char *path, enum pr_db_mode mode, char *why,
               size_t size);
/* NULL is allowed. Queries must have been freed. */
void pr_db_close(struct pr_db *db);
/* The reason of the last failure. Borrowed until the next call. */
const char *pr_db_why(struct pr_db *db);
/* How long to wait for others who hold the file. */
void pr_db_patience(struct pr_db *db, int milliseconds);
/* Any number of statements; rows are thrown away. */
int pr_db_run(struct pr_db *db, const char *sql);
/* The version of the library, as 3040001; 0 where there is none, and why. */
int pr_db_version(char *why, size_t size);
/* Rows changed by the last statement. */
int64_t pr_db_changes(struct pr_db *db);

int pr_query_new(struct pr_query **ret_query, struct pr_db *db, const char *sql);
void pr_query_free(struct pr_query *q);
/* Parameters, from 1. A number that is NaN is NULL, and so is a text that is NULL. Texts are
 * borrowed until the next reset. */
void pr_query_number(struct pr_query *q, int at, double v);
void pr_query_int(struct pr_query *q, int at, int64_t v);
void pr_query_text(struct pr_query *q, int at, const char *text);
void pr_query_null(struct pr_query *q, int at);
/* 1: there is a row; 0: there is none, or no more; -errno. */
int pr_query_step(struct pr_query *q);
/* To be stepped through again; parameters stay. */
void pr_query_reset(struct pr_query *q);
/* Steps through to the end, then resets: for statements without rows. */
int pr_query_do(struct pr_query *q);
/* Values of the row, columns from 0. NaN, 0 and NULL for NULL. Texts are borrowed until the next
 * step. */
double pr_query_get_number(struct pr_query *q, int column);
int64_t pr_query_get_int(struct pr_query *q, int column);
const char *pr_query_get_text(struct pr_query *q, int column);
bool pr_query_is_null(struct pr_query *q, int column);
int pr_query_columns(struct pr_query *q);
const char *pr_query_name(struct pr_query *q, int column);
