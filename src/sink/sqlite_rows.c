/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of samples. The job and the machine have a whole row each time; of a process or a device
 * there is one only where it has changed (doc/run-file.md says how, table by table). */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/command.h"
#include "sink/sqlite.h"
#include "util/clock.h"
#include "util/json.h"
#include "util/scan.h"

#define FDS_RATIO_LEAST 0.5
#define CORE_STEADY     (60 * NS_PER_S) /* between two rows of a core, at the most */
#define CORE_APART      (10 * NS_PER_S) /* at the least, once the run is older than */
#define CORE_OLD        (60 * NS_PER_S)
#define MARK_SETS       1000   /* remembered */
#define CORE_SAME       0.0101 /* of a core: 1 %, and what is lost in sums of hundredths */

#define SHARE_SAME 65536.0 /* bytes of PSS; or 1 % */
#define CORES      ((enum pr_run_table)(TABLE_DEVICE + DEVICE_CORE))

/* --- what is kept ----------------------------------------------------------------------------- */

/* A value is kept where it was asked for, and where a rate or a ratio that was derives from it: the
 * reader needs it for rows that have none, and for the mean of a rate. How many processes there are
 * says whether the job has ended. */
static bool is_kept(const struct record *r, int id)
{
    bool kept = pr_selected(&r->select, id) || id == METRIC_PROCS;
    for (int other = 0; other < METRIC_COUNT && !kept; other++) {
        const struct pr_metric *m = &pr_metrics[other];
        if (!pr_selected(&r->select, other) || !pr_metric_is_derived((enum pr_metric_id)other))
            continue;
        kept = (int)m->of == id || (m->otherwise && (int)m->otherwise == id) ||
               (m->kind == KIND_RATIO && pr_metrics[m->of].kind == KIND_RATE &&
                (int)pr_metrics[m->of].of == id);
    }
    return kept;
}

void pr_record_rows_init(struct record *r)
{
    for (int table = 0; table < RUN_TABLES; table++) {
        struct record_series *f = &r->series[table];
        pr_run_table_columns((enum pr_run_table)table, &f->columns);
        f->parts = table == CORES ? 2 : 1;
        for (int i = 0; i < f->columns.count; i++)
            f->kept[i] = is_kept(r, (int)f->columns.id[i]);
    }
    r->job_at = r->machine_at = -1;
    pr_buf_reserve(&r->text, 4096);
    pr_map_reserve(&r->mark_sets, 64);
}

void pr_record_rows_done(struct record *r)
{
    for (int table = 0; table < RUN_TABLES; table++)
        pr_series_done(&r->series[table]);
    pr_map_done(&r->mark_sets);
}

void pr_record_rows_settle(struct record *r, bool committed)
{
    for (int table = TABLE_PROCESS; table < RUN_TABLES; table++)
        pr_series_settle(&r->series[table], committed);
    if (!committed)
        pr_map_done(&r->mark_sets);
}

/* --- entities --------------------------------------------------------------------------------- */

struct entity {
    enum pr_run_table table;
    const char *kind, *name, *model, *uuid, *match;
    pid_t pid, ppid; /* 0 for none */
    int64_t started;
    bool counted;
    uint64_t key;
};

static int introduce(struct record *r, struct record_slot *slot, const struct entity *e)
{
    struct pr_query *q = r->query[QUERY_ENTITY];
    slot->id = ++r->next_id;
    slot->fresh = true;
    pr_query_int(q, 1, slot->id);
    pr_query_text(q, 2, e->kind);
    pr_query_text(q, 3, e->name);
    for (int at = 4; at <= 6; at++)
        pr_query_null(q, at);
    if (e->pid) {
        pr_query_int(q, 4, e->pid);
        pr_query_int(q, 5, e->ppid);
        pr_query_int(q, 6, e->started);
    }
    pr_query_int(q, 7, r->sample);
    pr_query_text(q, 8, e->model);
    pr_query_text(q, 9, e->uuid);
    if (e->pid)
        pr_query_null(q, 10);
    else
        pr_query_int(q, 10, e->counted);
    pr_query_text(q, 11, e->match);
    return pr_query_do(q);
}

/* A process has another program, another parent, or belongs to another rule. */
static int rename_it(struct record *r, const struct record_slot *slot)
{
    struct pr_query *q = r->query[QUERY_RENAME];
    pr_query_int(q, 1, slot->id);
    pr_query_text(q, 2, slot->name);
    pr_query_int(q, 3, slot->ppid);
    pr_query_text(q, 4, slot->match);
    return pr_query_do(q);
}

/* Its slot, and its row in entities; NULL with *ret_code where that fails. */
static struct record_slot *meet(struct record *r, const struct entity *e, int *ret_code)
{
    struct record_series *f = &r->series[e->table];
    struct record_slot *slot = pr_series_find(f, e->key);
    if (!slot)
        slot = pr_series_add(f, e->key);
    *ret_code = slot ? 0 : -ENOMEM;
    if (!slot)
        return NULL;
    bool renamed = strncmp(slot->name, e->name, sizeof slot->name) != 0,
         another = renamed || slot->ppid != e->ppid || slot->match != e->match;
    slot->asked &= !renamed;
    if (another) {
        slot->ppid = e->ppid;
        slot->match = e->match;
        memccpy(slot->name, e->name, '\0', sizeof slot->name - 1);
    }
    if (!slot->id)
        *ret_code = introduce(r, slot, e);
    else if (another)
        *ret_code = rename_it(r, slot);
    slot->seen = r->sample;
    return slot;
}

/* --- rows ------------------------------------------------------------------------------------- */

static int put_row(struct record *r, enum pr_run_table table, int64_t sample, int64_t entity,
                   const double *value)
{
    const struct record_series *f = &r->series[table];
    struct pr_query *q = r->insert[table];
    pr_query_int(q, 1, sample);
    pr_query_int(q, 2, entity);
    for (int i = 0; i < f->columns.count; i++)
        if (f->kept[i]) /* the others are never bound, and so NULL */
            pr_query_number(q, i + 3, value[i]);
    return pr_query_do(q);
}

/* Absent is a value like others. An age grows by itself; and the shares of pages that a process has
 * in common with others change whenever one of those comes or goes. */
static bool differs(enum pr_metric_id id, double was, double is)
{
    if (memcmp(&was, &is, sizeof was) == 0 || id == METRIC_MEM_PSS_AGE)
        return false;
    return id != METRIC_MEM_PSS || !(fabs(is - was) <= fmax(SHARE_SAME, was / 100));
}

static bool has_changed(const struct record_series *f, const double *was, const double *is)
{
    for (int i = 0; i < f->columns.count; i++)
        if (f->kept[i] && differs(f->columns.id[i], was[i], is[i]))
            return true;
    return false;
}

static int put_changed(struct record *r, enum pr_run_table table, struct record_slot *slot,
                       const double *value)
{
    const struct record_series *f = &r->series[table];
    double *last = pr_series_values(f, slot, PART_VALUE);
    if (slot->row && !has_changed(f, last, value))
        return 0;
    memcpy(last, value, (size_t)f->columns.count * sizeof *last);
    slot->row = r->sample;
    return put_row(r, table, r->sample, slot->id, value);
}

/* Of each process: whole seconds of age and of waiting are enough, and take one byte instead of
 * eight; how near the limit of descriptors is is of interest only where it is. */
static double kept_value(enum pr_metric_id id, double v)
{
    if (id == METRIC_FDS_RATIO)
        return v >= FDS_RATIO_LEAST ? v : NAN;
    return id == METRIC_MEM_PSS_AGE ? ceil(v) : id == METRIC_SCHED_DELAY ? floor(v) : v;
}

/* Of who is there for the second time, and of who executes something else: most processes of a
 * build are gone before that, and cost nothing. */
static int put_command(struct record *r, struct record_slot *slot, pid_t pid)
{
    char text[COMMAND_MOST + 1];
    struct pr_query *q = r->query[QUERY_COMMAND];
    if (slot->asked || !slot->row || !r->host)
        return 0;
    slot->asked = true;
    pr_command_read(r->host, pid, text);
    if (!*text)
        return 0;
    pr_query_int(q, 1, slot->id);
    pr_query_text(q, 2, text);
    return pr_query_do(q);
}

static int put_members(struct record *r, const struct proctor_snapshot *s)
{
    double value[METRIC_COUNT];
    const struct record_series *f = &r->series[TABLE_PROCESS];
    int code = 0;
    for (size_t k = 0; k < s->member_count && code == 0; k++) {
        const struct pr_member *m = &s->members[k];
        struct entity e = {.table = TABLE_PROCESS,
                           .kind = "process",
                           .name = m->comm,
                           .match = m->match,
                           .pid = m->pid,
                           .ppid = m->ppid,
                           .started = m->started,
                           /* hundredths of a second and a pid have room together */
                           .key =
                               (uint64_t)(m->started / (NS_PER_S / 100)) << 22 ^ (uint64_t)m->pid};
        struct record_slot *slot = meet(r, &e, &code);
        for (int i = 0; i < f->columns.count; i++)
            value[i] = kept_value(f->columns.id[i], m->value[f->columns.slot[i]]);
        if (code == 0)
            code = put_command(r, slot, m->pid);
        if (code == 0)
            code = put_changed(r, TABLE_PROCESS, slot, value);
    }
    return code;
}

/* --- cores ------------------------------------------------------------------------------------ */

/* Does each second of it go as in the interval that ended with its last row? now: what each column
 * grows by in a second. */
static bool goes_on(const struct record_series *f, const struct record_slot *slot,
                    const double *value, double dt, double *now)
{
    const double *last = pr_series_values(f, slot, PART_VALUE),
                 *before = pr_series_values(f, slot, PART_RATE);
    bool same = !slot->bent;
    for (int i = 0; i < f->columns.count; i++) {
        now[i] = (value[i] - last[i]) / dt;
        bool both_absent = isnan(now[i]) && isnan(before[i]);
        if (f->kept[i] && !both_absent && !(fabs(now[i] - before[i]) <= CORE_SAME))
            same = false;
    }
    return same;
}

/* Is it time for a row? Of a long run nobody looks at each second of each core. */
static bool is_due(const struct record *r, const struct record_slot *slot, bool steady)
{
    int64_t apart = r->elapsed < CORE_OLD ? 0 : CORE_APART;
    return r->elapsed - slot->row_at >= (steady ? CORE_STEADY : apart);
}

/* While a core's use stays as it is, its rows lie on a line: only where that bends is something
 * written, at both ends of the interval. */
static int put_core(struct record *r, struct record_slot *slot, const double *value, bool last,
                    double dt)
{
    const struct record_series *f = &r->series[CORES];
    const size_t size = (size_t)f->columns.count * sizeof *value;
    double now[METRIC_COUNT], *before = pr_series_values(f, slot, PART_VALUE);
    bool first = !slot->row, steady = !first && goes_on(f, slot, value, dt, now);
    int code = 0;
    if (!first && !last && !is_due(r, slot, steady)) {
        slot->bent = !steady;
        slot->held = steady ? r->sample : 0;
        memcpy(before, value, size);
        return 0;
    }
    if (slot->held && !steady)
        code = put_row(r, CORES, slot->held, slot->id, before);
    for (int i = 0; i < f->columns.count && !steady; i++)
        pr_series_values(f, slot, PART_RATE)[i] = first ? NAN : now[i];
    memcpy(before, value, size);
    slot->held = 0;
    slot->bent = false;
    slot->row = r->sample;
    slot->row_at = r->elapsed;
    return code < 0 ? code : put_row(r, CORES, r->sample, slot->id, value);
}

/* --- devices ---------------------------------------------------------------------------------- */

static int put_device(struct record *r, const struct pr_device *d, bool last, double dt)
{
    double value[METRIC_COUNT];
    const enum pr_run_table table = TABLE_DEVICE + (unsigned)d->kind;
    const struct record_series *f = &r->series[table];
    const char *called = d->uuid ? d->uuid : d->name;
    struct entity e = {.table = table,
                       .kind = pr_device_kind_name(d->kind),
                       .name = d->name,
                       .model = d->model,
                       .uuid = d->uuid,
                       .counted = d->counted,
                       .key = pr_scan_hash(called, strlen(called)) | 1};
    int code;
    struct record_slot *slot = meet(r, &e, &code);
    for (int i = 0; i < f->columns.count; i++)
        value[i] = d->value[f->columns.slot[i]];
    if (code < 0)
        return code;
    return d->kind == DEVICE_CORE ? put_core(r, slot, value, last, dt)
                                  : put_changed(r, table, slot, value);
}

static bool is_any_kept(const struct record_series *f)
{
    for (int i = 0; i < f->columns.count; i++)
        if (f->kept[i])
            return true;
    return false;
}

/* *ret_read: the machine was, not only its GPUs. */
static int put_devices(struct record *r, const struct proctor_snapshot *s, double dt,
                       bool *ret_read)
{
    int code = 0;
    *ret_read = false;
    for (size_t k = 0; k < s->device_count && code == 0; k++) {
        const struct pr_device *d = &s->devices[k];
        *ret_read |= d->kind != DEVICE_GPU;
        if (is_any_kept(&r->series[TABLE_DEVICE + (unsigned)d->kind]))
            code = put_device(r, d, s->last, dt);
    }
    return code;
}

/* --- who is gone ------------------------------------------------------------------------------ */

/* GPUs are read by themselves: one without a reading has a row without values. */
static int put_absent(struct record *r, struct record_slot *slot)
{
    double none[METRIC_COUNT];
    pr_values_none(none, METRIC_COUNT);
    return put_changed(r, TABLE_DEVICE + DEVICE_GPU, slot, none);
}

static int say_gone(struct record *r, enum pr_run_table table, struct record_slot *slot)
{
    struct pr_query *q = r->query[QUERY_LAST];
    int code = 0;
    slot->going = true;
    if (!slot->id)
        return 0; /* nobody has heard of it */
    if (slot->held)
        code = put_row(r, table, slot->held, slot->id,
                       pr_series_values(&r->series[table], slot, PART_VALUE));
    slot->held = 0;
    pr_query_int(q, 1, slot->id);
    pr_query_int(q, 2, slot->seen);
    return code < 0 ? code : pr_query_do(q);
}

static int put_gone(struct record *r, bool machine_was_read)
{
    int code = 0;
    for (int table = TABLE_PROCESS; table < RUN_TABLES; table++) {
        struct record_series *f = &r->series[table];
        bool gpu = table == TABLE_DEVICE + DEVICE_GPU;
        if (table != TABLE_PROCESS && !gpu && !machine_was_read)
            continue;
        for (size_t i = 0; i < f->count && code == 0; i++) {
            struct record_slot *slot = &f->slots[i];
            if (!slot->used || slot->seen == r->sample)
                continue;
            if (gpu)
                code = slot->id ? put_absent(r, slot) : 0;
            else
                code = say_gone(r, (enum pr_run_table)table, slot);
        }
    }
    return code;
}

/* --- the job and the machine ------------------------------------------------------------------ */

/* The row that has what is to be said of values. There are few different ones, and they come and go
 * with each sample. */
static int put_marks(struct record *r, const struct proctor_snapshot *s, int64_t *ret_id)
{
    struct pr_json j = {.out = &r->text};
    struct pr_query *q = r->query[QUERY_MARK_SET];
    uint64_t id, key;
    pr_buf_reset(&r->text);
    pr_json_open(&j, '{');
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (!s->mark[i] || !pr_selected(&r->select, i))
            continue;
        pr_json_key(&j, pr_metrics[i].key);
        pr_json_string(&j, pr_mark_name((enum pr_mark)s->mark[i]));
    }
    pr_json_close(&j, '}');
    key = pr_scan_hash(r->text.data, r->text.len) | 1;
    bool known = pr_map_get(&r->mark_sets, key, &id);
    *ret_id = known ? (int64_t)id : ++r->next_marks;
    if (known)
        return 0;
    if (r->mark_sets.count < MARK_SETS)
        pr_map_set(&r->mark_sets, key, (uint64_t)*ret_id);
    pr_query_int(q, 1, *ret_id);
    pr_query_text(q, 2, pr_buf_text(&r->text));
    return pr_query_do(q);
}

/* Binds what is kept; says whether any of it is known. */
static bool bind_values(struct record *r, enum pr_run_table table, const double *value)
{
    const struct record_series *f = &r->series[table];
    bool any = false;
    for (int i = 0; i < f->columns.count; i++) {
        double v = f->kept[i] ? value[f->columns.slot[i]] : NAN;
        any |= !isnan(v);
        if (f->kept[i])
            pr_query_number(r->insert[table], i + pr_run_table_head(table) + 1, v);
    }
    return any;
}

static int put_job(struct record *r, const struct proctor_snapshot *s, int64_t interval)
{
    struct pr_query *q = r->insert[TABLE_JOB];
    int64_t marks;
    int code = put_marks(r, s, &marks);
    pr_query_int(q, 1, r->sample);
    pr_query_int(q, 2, s->elapsed);
    pr_query_int(q, 3, interval);
    pr_query_int(q, 4, marks);
    bind_values(r, TABLE_JOB, s->value);
    return code < 0 ? code : pr_query_do(q);
}

static int put_machine(struct record *r, const struct proctor_snapshot *s, int64_t interval)
{
    struct pr_query *q = r->insert[TABLE_SYSTEM];
    pr_query_int(q, 1, r->sample);
    pr_query_int(q, 2, interval);
    if (!bind_values(r, TABLE_SYSTEM, s->value))
        return 0;
    r->machine_now = s->elapsed;
    return pr_query_do(q);
}

/* Since the row before: where samples are missing it is longer than the interval was. */
static int64_t since(int64_t row_at, int64_t elapsed, int64_t interval)
{
    return row_at >= 0 && elapsed - row_at > interval ? elapsed - row_at : interval;
}

int pr_record_sample(struct record *r, const struct proctor_snapshot *s)
{
    int64_t interval = since(r->job_at, s->elapsed, s->interval),
            machine = since(r->machine_at, s->elapsed, s->machine_interval);
    bool machine_was_read = false;
    r->machine_now = r->machine_at;
    int code = put_job(r, s, interval);
    if (code == 0)
        code = put_machine(r, s, machine);
    if (code == 0)
        code = put_members(r, s);
    if (code == 0)
        code = put_devices(r, s, pr_seconds(machine), &machine_was_read);
    return code == 0 ? put_gone(r, machine_was_read) : code;
}
