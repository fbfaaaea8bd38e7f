/* SPDX-License-Identifier: Apache-2.0 */
/* A run file that is open for reading, and what it says of its run. It may be growing meanwhile. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/derive.h"
#include "core/error.h"
#include "core/select.h"
#include "util/db.h"

enum pr_run_state {
    RUN_RUNNING,
    RUN_ENDED,
    RUN_DIED,      /* the recorder did: there is no end, and it is gone */
    RUN_ELSEWHERE, /* there is no end, and its recorder is of another machine: nobody can tell */
};

/* "running", "ended", "died", "elsewhere". */
const char *pr_run_state_name(enum pr_run_state state);

struct pr_own_file;

struct pr_stored {
    struct pr_db *db;
    struct pr_own_file *own;
    char *path;
    char copy[64];              /* the folder of a private copy, "" for none */
    char *about;                /* all that the run is, as JSON */
    char id[256], host[256];    /* "" where that is not said */
    int64_t started, ended;     /* wall time, ns; ended: 0 for not yet */
    double interval;            /* seconds, as it was asked for */
    int exit_code, exit_signal; /* -1 for none */
    bool summarized, recovered; /* there is a summary; it was rebuilt */
    enum pr_run_state state;
    struct pr_limits limits;
    struct pr_select select; /* what was asked for */
};

enum pr_stored_use {
    STORED_BRIEFLY, /* for a list: neither limits nor select are filled in */
    STORED_READ,
    STORED_CHANGE, /* its recorder must be gone */
};

/* Opens a file: -ENOENT, -EACCES, -EMEDIUMTYPE not a run file, -EPROTO of a newer version, -EUCLEAN
 * damaged, -ENOSYS no SQLite. */
int pr_stored_open(struct pr_stored **ret, const char *path, enum pr_stored_use use,
                   struct proctor_error *err);
/* NULL is allowed. */
void pr_stored_close(struct pr_stored *r);
/* Closes nothing: for a handle that a fork has copied. */
void pr_stored_abandon(struct pr_stored *r);
/* Something went wrong while reading: into err, in words with the path; returns code. */
int pr_stored_failure(const struct pr_stored *r, int code, struct proctor_error *err);

/* What has become of the recorder of a run without an end, whose file nobody holds: not all file
 * systems have such locks. */
enum pr_run_state pr_stored_recorder(const struct pr_stored *r);

/* A time of the row that a query is on, ns: of a file that says anything, so that sums of two have
 * room. 0 for NULL. */
int64_t pr_stored_time(struct pr_query *q, int column);

/* --- JSON, which SQLite reads ------------------------------------------------------------------
 */

/* SQL: a column, where it is an object, on one line as our own are; a file may have any text. */
#define STORED_OBJECT(column)                                                                      \
    "CASE WHEN json_valid(" column ") THEN CASE json_type(" column                                 \
    ") WHEN 'object' THEN json(" column ") END END"
/* SQL: the summary, a row where there is one. Who was thought to be dead may have written another:
 * the newest counts. */
#define STORED_SUMMARY                                                                             \
    "(SELECT json, recovered FROM summary WHERE json_valid(json) ORDER BY rowid DESC LIMIT 1)"

/* The member at path ("$.limits.cpu") of a JSON text, into out, which is reset: texts as they are,
 * others as JSON. False where there is none. */
bool pr_stored_text(const struct pr_stored *r, const char *json, const char *path,
                    struct pr_buf *out);
/* The same for a number; NaN where there is none. */
double pr_stored_number(const struct pr_stored *r, const char *json, const char *path);
/* The stored summary into out, which is reset. 0, -ENODATA where there is none, or -errno. */
int pr_stored_summary(const struct pr_stored *r, struct pr_buf *out, struct proctor_error *err);
