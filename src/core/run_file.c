/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run_file.h"

#include <string.h>

/* Times are nanoseconds: wall time where they say when (started, ended), else since the start.
 *
 * first, last: the samples in which it was there; last is NULL for as long as it is. Who was never
 * sampled has neither. */
static const char schema[] =
    "CREATE TABLE run(id TEXT NOT NULL, parent TEXT, name TEXT, node TEXT, host TEXT,"
    " command TEXT, target TEXT, labels TEXT, started INTEGER, interval INTEGER, ended INTEGER,"
    " exit_code INTEGER, exit_signal INTEGER, recorder INTEGER, version TEXT, about TEXT);\n"
    "CREATE TABLE metrics(id INTEGER PRIMARY KEY, key TEXT NOT NULL, column_name TEXT NOT NULL,"
    " unit TEXT, kind TEXT, scope TEXT, selected INTEGER, help TEXT);\n"
    "CREATE TABLE entities(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT, pid INTEGER,"
    " ppid INTEGER, started INTEGER, first INTEGER, last INTEGER, ended INTEGER,"
    " exit_code INTEGER, exit_signal INTEGER, samples INTEGER, known_by TEXT,"
    " cpu_time_seconds REAL, mem_rss_peak_bytes REAL, io_read_bytes REAL, io_write_bytes REAL,"
    " io_rchar_bytes REAL, io_wchar_bytes REAL, model TEXT, uuid TEXT, counted INTEGER,"
    " match TEXT, command TEXT);\n"
    "CREATE TABLE events(id INTEGER PRIMARY KEY, elapsed INTEGER NOT NULL, event TEXT NOT NULL,"
    " name TEXT, seconds REAL, text TEXT, data TEXT);\n"
    "CREATE TABLE phases(id INTEGER PRIMARY KEY, name TEXT NOT NULL, start INTEGER NOT NULL,"
    " seconds REAL, depth INTEGER, data TEXT);\n"
    "CREATE INDEX phases_open ON phases(name, start) WHERE seconds IS NULL;\n"
    "CREATE INDEX entities_pid ON entities(pid);\n"
    "CREATE TABLE mark_sets(id INTEGER PRIMARY KEY, json TEXT NOT NULL);\n"
    "CREATE TABLE summary(json TEXT NOT NULL, recovered INTEGER NOT NULL DEFAULT 0);\n";

#define OF_ENTITY "sample INTEGER NOT NULL, entity INTEGER NOT NULL"

static const struct {
    const char *name, *head;
    int head_columns;
    unsigned scope;
    const char *more; /* SQL: a column that is read from elsewhere; NULL for none */
} tables[RUN_TABLES] = {
    [TABLE_JOB] = {"job_samples",
                   "sample INTEGER PRIMARY KEY, elapsed INTEGER NOT NULL,"
                   " interval INTEGER NOT NULL, marks INTEGER",
                   4, SCOPE_JOB, "SELECT json FROM mark_sets WHERE id = t.marks"},
    [TABLE_SYSTEM] = {"system_samples", "sample INTEGER PRIMARY KEY, interval INTEGER NOT NULL", 2,
                      SCOPE_SYSTEM},
    [TABLE_PROCESS] = {"process_samples", OF_ENTITY, 2, SCOPE_PROC},
    [TABLE_DEVICE + DEVICE_CORE] = {"core_samples", OF_ENTITY, 2, SCOPE_CORE,
                                    "SELECT elapsed FROM job_samples j WHERE j.sample = t.sample"},
    [TABLE_DEVICE + DEVICE_DISK] = {"disk_samples", OF_ENTITY, 2, SCOPE_DISK},
    [TABLE_DEVICE + DEVICE_FILESYSTEM] = {"filesystem_samples", OF_ENTITY, 2, SCOPE_FILESYSTEM},
    [TABLE_DEVICE + DEVICE_INTERFACE] = {"interface_samples", OF_ENTITY, 2, SCOPE_INTERFACE},
    [TABLE_DEVICE + DEVICE_GPU] = {"gpu_samples", OF_ENTITY, 2, SCOPE_GPU},
};

const char *pr_run_table_name(enum pr_run_table table)
{
    return tables[table].name;
}

int pr_run_table_head(enum pr_run_table table)
{
    return tables[table].head_columns;
}

/* What is derived from a row and the one before is not worth its room, where there are many. */
static bool is_kept(enum pr_run_table table, const struct pr_metric *m)
{
    bool derived = m->kind == KIND_RATE || m->kind == KIND_RATIO;
    return (m->scope & tables[table].scope) &&
           (table == TABLE_JOB || table == TABLE_SYSTEM || !derived);
}

void pr_run_table_columns(enum pr_run_table table, struct pr_run_columns *ret)
{
    ret->count = 0;
    for (int id = 0; id < METRIC_COUNT; id++) {
        if (!is_kept(table, &pr_metrics[id]))
            continue;
        enum pr_device_kind kind = (enum pr_device_kind)(table - TABLE_DEVICE);
        ret->id[ret->count] = (enum pr_metric_id)id;
        ret->slot[ret->count++] =
            table < TABLE_DEVICE ? id : pr_device_slot(kind, (enum pr_metric_id)id);
    }
}

static void add_table(struct pr_buf *out, enum pr_run_table table)
{
    struct pr_run_columns columns;
    pr_run_table_columns(table, &columns);
    pr_buf_printf(out, "CREATE TABLE %s(%s", tables[table].name, tables[table].head);
    for (int i = 0; i < columns.count; i++) {
        pr_buf_str(out, ", ");
        pr_metric_column(out, &pr_metrics[columns.id[i]]);
        pr_buf_str(out, " REAL");
    }
    pr_buf_str(out,
               table < TABLE_PROCESS ? ");\n" : ", PRIMARY KEY(sample, entity)) WITHOUT ROWID;\n");
}

void pr_run_file_schema(struct pr_buf *out)
{
    pr_buf_str(out, schema);
    for (int table = 0; table < RUN_TABLES; table++)
        add_table(out, (enum pr_run_table)table);
    pr_buf_printf(out, "PRAGMA application_id=%d;\nPRAGMA user_version=%d;\n", RUN_FILE_APPLICATION,
                  RUN_FILE_VERSION);
}

static void add_text(struct pr_buf *out, const char *text)
{
    pr_buf_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            pr_buf_char(out, '\'');
        pr_buf_char(out, *text);
    }
    pr_buf_char(out, '\'');
}

void pr_run_file_metrics(struct pr_buf *out, const bool *shown)
{
    pr_buf_str(out, "INSERT INTO metrics VALUES");
    for (int id = 0; id < METRIC_COUNT; id++) {
        const struct pr_metric *m = &pr_metrics[id];
        pr_buf_printf(out, "%s(%d,'%s','", id ? "," : "", id, m->key);
        pr_metric_column(out, m);
        pr_buf_printf(out, "','%s','%s','%s',%d,", pr_units_name(m->unit),
                      pr_metric_kind_name(m->kind), pr_metric_scope_name(m->scope), shown[id]);
        add_text(out, m->help);
        pr_buf_char(out, ')');
    }
    pr_buf_str(out, ";\n");
}

void pr_run_table_insert(struct pr_buf *out, enum pr_run_table table)
{
    struct pr_run_columns columns;
    pr_run_table_columns(table, &columns);
    pr_buf_printf(out, "INSERT INTO %s VALUES(?", pr_run_table_name(table));
    for (int i = 1; i < pr_run_table_head(table) + columns.count; i++)
        pr_buf_str(out, ",?");
    pr_buf_char(out, ')');
}

/* Columns are found by their names: another version may have more of them, or fewer. */
void pr_run_table_select(struct pr_buf *out, enum pr_run_table table, bool after)
{
    const char *more = tables[table].more;
    pr_buf_printf(out, "SELECT t.*%s%s%s FROM %s t%s ORDER BY t.sample", more ? ", (" : "",
                  more ? more : "", more ? ")" : "", tables[table].name,
                  after ? " WHERE t.sample > ?1" : "");
}
