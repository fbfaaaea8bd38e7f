/* SPDX-License-Identifier: Apache-2.0 */
/* Where recorded runs are: RUN of the command line, and all of them. */
#pragma once
#include <stddef.h>

#include "core/error.h"
#include "store/stored.h"

/* The file of a run into ret_path. run: a file, an id, the unique beginning of one, or "last".
 * -ENOENT there is none, -EEXIST there are several: err names them. */
int pr_store_find(const char *run, char *ret_path, size_t size, struct proctor_error *err);

/* All files of it: nodes of one run have one id, and a file each. Those of a file that is named by
 * its path are that one. At most `most` paths, which the caller frees; how many into ret_count. */
int pr_store_find_nodes(const char *run, char **ret_paths, size_t most, size_t *ret_count,
                        struct proctor_error *err);

/* Run files of the folder, by name; the caller frees with pr_store_names_done. A folder that is not
 * there has none. 0 or -errno. */
struct pr_store_names {
    char folder[4096];
    char **items; /* file names */
    size_t count, cap;
};
int pr_store_names(struct pr_store_names *names, struct proctor_error *err);
void pr_store_names_done(struct pr_store_names *names);
/* Its path into text; false where it is too long. */
bool pr_store_path(const struct pr_store_names *names, size_t i, char *text, size_t size);

/* One line of a list. Texts are its own; NULL where there is none. */
struct pr_run_row {
    char *path, *id, *name, *target, *host, *node, *parent;
    char *argv, *command, *labels; /* argv and labels are JSON, command words with blanks between */
    char *trouble;      /* why the file cannot be read; then only path and bytes are known */
    int64_t started;    /* wall time, ns */
    double seconds;     /* how long, up to now */
    double cpu, memory; /* total, peak; NaN for unknown */
    double samples;
    double bytes; /* of the file and what SQLite keeps beside it */
    enum pr_run_state state;
    int exit_code, exit_signal; /* -1 for none */
    bool recovered;
};
/* What the file says; a file that cannot be read is a row with `trouble`. */
void pr_run_row_read(struct pr_run_row *row, const char *path);
void pr_run_row_done(struct pr_run_row *row);
/* Did the job fail, as far as is known? */
bool pr_run_row_failed(const struct pr_run_row *row);
