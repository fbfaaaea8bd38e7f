/* SPDX-License-Identifier: Apache-2.0 */
/* The sink that writes a table of another tool. */
#include "sink/dialect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sink/dialect_row.h"
#include "sink/outfile.h"
#include "util/clock.h"

#define SOURCES_MOST 4 /* tables that one is made of */

#define DIALECT(name, dialect) extern const struct pr_dialect dialect;
#include "core/dialects.def"
#undef DIALECT

static const struct {
    const char *name;
    const struct pr_dialect *dialect;
} dialects[] = {
#define DIALECT(name, dialect) {name, &dialect},
#include "core/dialects.def"
#undef DIALECT
};

static const struct pr_sink_job nobody = {.exit_code = -1, .exit_signal = -1};

struct dialect {
    struct pr_sink sink;
    struct pr_sink_ops ops; /* what it wants is up to the table */
    struct pr_outfile file;
    struct pr_table_state state;
    struct pr_table_state sources[SOURCES_MOST];
    int source_count;
    bool begun, ended;
    const struct pr_sink_job *told;
    struct pr_select select;
    bool selective;                /* some were not asked for */
    struct proctor_snapshot shown; /* then a sample without those */
    struct pr_stats *stats;        /* of the whole run, where there is one row for it */
    struct proctor_snapshot last;  /* without members and devices, for that row */
};

const struct pr_dialect *pr_dialect_find(const char *name)
{
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++)
        if (strcmp(dialects[i].name, name) == 0)
            return dialects[i].dialect;
    return NULL;
}

static bool can_be(const struct pr_table *table, enum pr_dialect_form form)
{
    return form == DIALECT_ANY || table->json == (form == DIALECT_JSONL);
}

bool pr_dialect_table(const char *dialect, size_t number, struct pr_dialect_file *ret)
{
    const struct pr_dialect *d = pr_dialect_find(dialect);
    const struct pr_table *const *table = d ? d->tables : NULL;
    while (table && *table && number--)
        table++;
    if (!table || !*table)
        return false;
    *ret = (struct pr_dialect_file){(*table)->name, (*table)->file, (*table)->json};
    return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

static struct pr_row row_of(const struct dialect *d, const struct proctor_snapshot *s)
{
    return (struct pr_row){.sample = s, .job = d->told ? d->told : &nobody, .ended = d->ended};
}

/* The last sample may also be of a job that goes on: then it has processes. */
static bool has_ended(const struct proctor_snapshot *s)
{
    return s->last && isnan(s->value[METRIC_PROCS]);
}

static void hide(const struct dialect *d, double *value, int count)
{
    for (int id = 0; id < count; id++)
        if (!pr_selected(&d->select, id))
            value[id] = NAN;
}

static void hide_of_device(const struct dialect *d, struct pr_device *device)
{
    enum pr_metric_id id;
    for (int slot = 0; (id = pr_device_metric(device->kind, slot)) != METRIC_NONE; slot++)
        if (!pr_selected(&d->select, (int)id))
            device->value[slot] = NAN;
}

/* What was not asked for may have been read all the same, and is in no output: a record does not
 * have it either. */
static const struct proctor_snapshot *asked_for(struct dialect *d, const struct proctor_snapshot *s)
{
    if (!d->selective)
        return s;
    pr_snapshot_copy(&d->shown, s);
    hide(d, d->shown.value, METRIC_COUNT);
    for (size_t i = 0; i < d->shown.member_count; i++)
        hide(d, d->shown.members[i].value, PROC_METRICS);
    for (size_t i = 0; i < d->shown.device_count; i++)
        hide_of_device(d, &d->shown.devices[i]);
    return &d->shown;
}

static void begin(struct dialect *d)
{
    const struct pr_table *table = d->state.table;
    if (d->begun)
        return;
    d->begun = true;
    if (table->title && table->layout != LAYOUT_TEMPLATE)
        pr_buf_str(&d->file.out, table->title);
    if (table->header)
        pr_row_header(&d->file.out, table);
}

static void add_row(struct dialect *d, const struct pr_table_state *source,
                    const struct pr_row *row)
{
    for (int i = 0; i < d->state.table->column_count; i++) {
        const struct pr_column *c = &d->state.table->columns[i];
        struct pr_column_state *state = &d->state.columns[i];
        if (c->rows != source->table)
            continue;
        double v = pr_row_number(source, c->column, row);
        if (v != v)
            continue;
        state->max = state->count && state->max > v ? state->max : v;
        state->sum += v;
        state->count++;
    }
}

/* What the tables that this one is made of would have written. */
static void feed(struct dialect *d, const struct proctor_snapshot *s)
{
    for (int i = 0; i < d->source_count; i++) {
        struct pr_row row = row_of(d, s);
        size_t cursor = 0;
        while (pr_row_next(d->sources[i].table, &row, &cursor))
            if (pr_row_is_there(&d->sources[i], &row))
                add_row(d, &d->sources[i], &row);
        pr_row_advance(&d->sources[i], s);
    }
    pr_stats_add(d->stats, s);
    d->last = *s;
    d->last.members = NULL;
    d->last.devices = NULL;
    d->last.member_count = d->last.device_count = 0;
}

static void dialect_write(struct pr_sink *sink, const struct proctor_snapshot *s)
{
    struct dialect *d = (struct dialect *)sink;
    d->ended = has_ended(s);
    s = asked_for(d, s);
    struct pr_row row = row_of(d, s);
    size_t cursor = 0;
    if (d->stats) {
        feed(d, s);
        return;
    }
    pr_outfile_begin(&d->file, pr_seconds(s->elapsed));
    begin(d);
    while (pr_row_next(d->state.table, &row, &cursor))
        if (pr_row_is_there(&d->state, &row))
            pr_row_write(&d->file.out, &d->state, &row);
    pr_row_advance(&d->state, s);
    pr_outfile_end(&d->file);
}

static void dialect_free(struct dialect *d)
{
    for (int i = 0; i < d->source_count; i++)
        pr_table_state_done(&d->sources[i]);
    pr_table_state_done(&d->state);
    pr_snapshot_done(&d->shown);
    free(d->stats);
    free(d);
}

static void dialect_close(struct pr_sink *sink)
{
    struct dialect *d = (struct dialect *)sink;
    struct pr_row row = row_of(d, &d->last);
    row.stats = d->stats;
    pr_outfile_begin(&d->file, pr_seconds(d->last.elapsed));
    begin(d);
    if (d->stats)
        pr_row_write(&d->file.out, &d->state, &row);
    pr_outfile_end(&d->file);
    pr_outfile_close(&d->file);
    dialect_free(d);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int refuse(const struct pr_sink_setting *setting, const struct pr_dialect *dialect,
                  const struct pr_table *table, enum pr_dialect_form form,
                  struct proctor_error *err)
{
    static const char *const options[] = {"--dialect", "--csv", "--jsonl"};
    struct pr_buf names = {0};
    for (const struct pr_table *const *t = dialect->tables; *t; t++)
        pr_buf_printf(&names, "%s%s (%s)", names.len ? ", " : "", (*t)->name,
                      options[(*t)->json ? DIALECT_JSONL : DIALECT_CSV]);
    if (table)
        pr_error(err, EINVAL, "%s: the table %s of %s is not for this; its tables: %s",
                 options[form], table->name, setting->dialect, pr_buf_text(&names));
    else if (setting->table)
        pr_error(err, EINVAL, "--table: %s has no table '%.40s'; its tables: %s", setting->dialect,
                 setting->table, pr_buf_text(&names));
    else
        pr_error(err, EINVAL, "%s: %s has no table for this; its tables: %s", options[form],
                 setting->dialect, pr_buf_text(&names));
    pr_buf_done(&names);
    return -EINVAL;
}

/* The one that is asked for, else the first that has the form. */
static int choose(const struct pr_sink_setting *setting, enum pr_dialect_form form,
                  const struct pr_table **ret, struct proctor_error *err)
{
    const struct pr_dialect *dialect = pr_dialect_find(setting->dialect);
    if (!dialect)
        return pr_error(err, EINVAL, "--dialect: there is no '%.40s'", setting->dialect);
    const struct pr_table *const *t = dialect->tables;
    while (*t && (setting->table ? strcmp((*t)->name, setting->table) != 0 : !can_be(*t, form)))
        t++;
    *ret = *t;
    return *t && can_be(*t, form) ? 0 : refuse(setting, dialect, *t, form, err);
}

static int add_source(struct dialect *d, const struct pr_table *table)
{
    for (int i = 0; i < d->source_count; i++)
        if (d->sources[i].table == table)
            return 0;
    return d->source_count < SOURCES_MOST
               ? pr_table_state_init(&d->sources[d->source_count++], table)
               : -E2BIG;
}

static bool asks_for_gpus(const struct pr_table *table)
{
    bool asks = table->each == EACH_GPU;
    for (int i = 0; i < table->column_count; i++)
        asks |= table->columns[i].rows != NULL;
    return asks;
}

static int prepare(struct dialect *d, const struct pr_table *table)
{
    for (int id = 0; id < METRIC_COUNT; id++)
        d->selective |= !pr_selected(&d->select, id);
    int r = pr_table_state_init(&d->state, table);
    for (int i = 0; i < table->column_count && r == 0; i++)
        if (table->columns[i].rows)
            r = add_source(d, table->columns[i].rows);
    if (r == 0 && table->each == EACH_RUN && !(d->stats = malloc(sizeof *d->stats)))
        r = -ENOMEM;
    if (d->stats)
        pr_stats_init(d->stats);
    return r;
}

int pr_dialect_open_as(const struct pr_sink_setting *setting, enum pr_dialect_form form,
                       struct pr_sink **ret_sink, struct proctor_error *err)
{
    static const char *const options[] = {"-o", "--csv", "--jsonl"};
    const struct pr_table *table = NULL;
    int r = choose(setting, form, &table, err);
    if (r < 0)
        return r;
    struct dialect *d = calloc(1, sizeof *d);
    if (!d)
        return pr_error(err, ENOMEM, "out of memory");
    d->ops = (struct pr_sink_ops){.write = dialect_write,
                                  .close = dialect_close,
                                  .devices = asks_for_gpus(table),
                                  .processes = table->each == EACH_PROCESS};
    d->sink.ops = &d->ops;
    d->told = setting->job;
    d->select = setting->select;
    r = prepare(d, table);
    r = r < 0
            ? pr_error(err, -r, "out of memory")
            : pr_outfile_open(&d->file, strdup(setting->path), options[form], setting->events, err);
    if (r < 0) {
        dialect_free(d);
        return r;
    }
    *ret_sink = &d->sink;
    return 0;
}

int pr_dialect_open(const struct pr_sink_setting *setting, struct pr_sink **ret_sink,
                    struct proctor_error *err)
{
    return pr_dialect_open_as(setting, DIALECT_ANY, ret_sink, err);
}
