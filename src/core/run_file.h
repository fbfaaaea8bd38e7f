/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of a run file, for those who write and those who read it: which tables there are, which
 * metrics are columns of which, and where the files are. doc/run-file.md explains it to people. */
#pragma once
#include <stdbool.h>

#include "core/device.h"
#include "core/error.h"
#include "core/metric.h"
#include "util/buf.h"

#define RUN_FILE_VERSION     1          /* user_version: a reader refuses a higher one */
#define RUN_FILE_APPLICATION 0x70726374 /* application_id */
#define RUN_FILE_ENDING      ".proctor"

/* Tables of samples. What comes before the metrics: the job has sample, elapsed, interval, marks;
 * the machine sample, interval; all others sample, entity. Times are nanoseconds. */
enum pr_run_table {
    TABLE_JOB,
    TABLE_SYSTEM,
    TABLE_PROCESS,
    TABLE_DEVICE, /* the first of DEVICE_KINDS tables */
    RUN_TABLES = TABLE_DEVICE + DEVICE_KINDS
};

/* The metrics that a table has as columns, in their order. Rates and ratios of processes and
 * devices are not among them: whoever reads derives them again. */
struct pr_run_columns {
    enum pr_metric_id id[METRIC_COUNT];
    int slot[METRIC_COUNT]; /* where its value is: in a record, or in a device's slots */
    int count;
};

/* "job_samples", "core_samples", ... */
const char *pr_run_table_name(enum pr_run_table table);
/* How many columns come before the metrics. */
int pr_run_table_head(enum pr_run_table table);
void pr_run_table_columns(enum pr_run_table table, struct pr_run_columns *ret);
/* SQL: all tables; a row for each metric, those that were asked for marked by `shown`; a row of
 * samples with parameters in the order of its columns. */
void pr_run_file_schema(struct pr_buf *out);
void pr_run_file_metrics(struct pr_buf *out, const bool *shown);
void pr_run_table_insert(struct pr_buf *out, enum pr_run_table table);
/* SQL: all rows in the order of samples, or those after sample ?1; head and metrics; behind them,
 * of the job the JSON of its marks, of cores the time of the sample. */
void pr_run_table_select(struct pr_buf *out, enum pr_run_table table, bool after);

/* Where runs are kept, into text: ${PROCTOR_HOME:-${XDG_STATE_HOME:-~/.local/state}/proctor}/runs.
 * False where there is no home, or it is too long. */
bool pr_run_folder(char *text, size_t size);
/* Makes the file of a run, mode 0600, its folder with it, and returns a descriptor that must stay
 * open for as long as the database is, and is closed by pr_own_file_close; its absolute path into
 * ret_path. path: what the user named, which must not be there unless `force`; NULL for one in the
 * folder of runs, named after the id and the node, and numbered where that name is taken. */
struct pr_run_name {
    const char *path, *id, *node;
    bool force;
};
int pr_run_file_create(const struct pr_run_name *name, char *ret_path, size_t size,
                       struct proctor_error *err);
/* Removes it and what SQLite keeps beside it, or that alone. 0 or -errno. */
int pr_run_file_remove(const char *path);
void pr_run_file_remove_beside(const char *path);
/* Is this how a run can be called: YYYYMMDDTHHMMSSZ-8hex, or by --run-id something else that can be
 * a file's name, and be typed to name the run? */
bool pr_run_id_is_good(const char *id);
