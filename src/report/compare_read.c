/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of runs, from their summaries or from a baseline file, which has the same keys. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "report/compare.h"
#include "report/recorded.h"
#include "util/fs.h"
#include "util/json.h"
#include "util/text.h"

#define BASELINE_VERSION 1
#define PARTS_MOST       101 /* the whole, and phases by name */
#define SEEN_LEAST       0.5 /* of the time of a run, for its gauges to be known */

static const char *const stat_names[COMPARE_STATS] = {"total", "peak", "mean", "min", "last"};

const char *pr_figure_stat(struct pr_figure of)
{
    return stat_names[of.stat];
}

static struct pr_query *ask(struct pr_db *db, const char *json, const char *sql)
{
    struct pr_query *q = NULL;
    if (pr_query_new(&q, db, sql) < 0)
        return NULL;
    pr_query_text(q, 1, json);
    return q;
}

static bool step(struct pr_query *q)
{
    return q && pr_query_step(q) == 1;
}

static char *kept(struct pr_query *q, int column)
{
    const char *text = pr_query_get_text(q, column);
    return text ? strdup(text) : NULL;
}

/* --- one run ---------------------------------------------------------------------------------- */

static struct pr_used *add_part(struct pr_case *c, const char *phase, double begin, double seconds)
{
    struct pr_used *parts = reallocarray(c->parts, c->count + 1, sizeof *parts);
    if (!parts)
        return NULL;
    c->parts = parts;
    struct pr_used *u = &parts[c->count];
    *u =
        (struct pr_used){.phase = phase ? strdup(phase) : NULL, .begin = begin, .seconds = seconds};
    for (int i = 0; i < METRIC_COUNT; i++)
        for (int k = 0; k < COMPARE_STATS; k++)
            u->value[i][k] = NAN;
    c->count++;
    return u;
}

/* Columns from `at`: the metric's key, its figures, its mark. */
#define METRIC_SQL                                                                                 \
    "m.key, json_extract(m.value, '$.total'), json_extract(m.value, '$.peak'),"                    \
    " json_extract(m.value, '$.mean'), json_extract(m.value, '$.min'),"                            \
    " json_extract(m.value, '$.last'), json_extract(m.value, '$.mark')"

static void take_metric(struct pr_used *u, struct pr_query *q, int at)
{
    const char *key = pr_query_get_text(q, at),
               *mark = pr_query_get_text(q, at + 1 + COMPARE_STATS);
    enum pr_metric_id id = key ? pr_metric_find(key) : METRIC_NONE;
    if (id == METRIC_NONE)
        return;
    u->few[id] = pr_said_is(mark, MARK_FEW_SAMPLES);
    u->estimated[id] = pr_said_is(mark, MARK_ESTIMATED);
    for (int i = 0; i < COMPARE_STATS; i++)
        u->value[id][i] = pr_query_get_number(q, at + 1 + i);
}

/* Of phases with the same name the first one counts. */
static void take_phases(struct pr_case *c, struct pr_db *db, const char *json)
{
    struct pr_query *q = ask(db, json,
                             "SELECT json_extract(value, '$.name'), json_extract(value, '$.start'),"
                             " json_extract(value, '$.seconds') FROM json_each(?1, '$.phases')"
                             " ORDER BY 2, key");
    while (c->count < PARTS_MOST && step(q)) {
        const char *name = pr_query_get_text(q, 0);
        if (name && !pr_case_part(c, name))
            add_part(c, name, pr_query_get_number(q, 1), pr_query_get_number(q, 2));
    }
    pr_query_free(q);
    q = ask(db, json,
            "SELECT json_extract(p.value, '$.name'), json_extract(p.value, '$.start'), " METRIC_SQL
            " FROM json_each(?1, '$.phases') p, json_each(p.value, '$.metrics') m");
    while (step(q)) {
        const char *name = pr_query_get_text(q, 0);
        struct pr_used *u = name ? (struct pr_used *)pr_case_part(c, name) : NULL;
        if (u && u->begin == pr_query_get_number(q, 1))
            take_metric(u, q, 2);
    }
    pr_query_free(q);
}

/* Of a run shorter than the interval there is one sample, of its first moment: no gauge is known.
 */
static void doubt_gauges(struct pr_used *u, struct pr_db *db, const char *json)
{
    struct pr_query *q = ask(db, json,
                             "SELECT json_extract(?1, '$.metrics.\"mem.rss\".integral'),"
                             " json_extract(?1, '$.metrics.\"mem.rss\".mean')");
    bool brief =
        step(q) && pr_query_get_number(q, 0) < SEEN_LEAST * u->seconds * pr_query_get_number(q, 1);
    pr_query_free(q);
    for (int id = 0; brief && id < METRIC_COUNT; id++) {
        const struct pr_metric *m = &pr_metrics[id];
        bool gauge = m->kind == KIND_GAUGE ||
                     (m->kind == KIND_RATIO && pr_metrics[m->of].kind == KIND_GAUGE);
        u->few[id] |= gauge && m->scope & SCOPE_PROC;
    }
}

/* json: a summary, or what a baseline file has of a run. */
static bool read_case(struct pr_case *c, struct pr_db *db, const char *json)
{
    struct pr_query *q =
        ask(db, json,
            "SELECT json_extract(?1, '$.run.id'), json_extract(?1, '$.run.name'),"
            " json_extract(?1, '$.run.host'), json_extract(?1, '$.run.target'),"
            " (SELECT group_concat(value, ' ') FROM json_each(?1, '$.run.command')),"
            " json_extract(?1, '$.run.duration'), json_extract(?1, '$.run.ended'),"
            " coalesce(json_extract(?1, '$.run.good'), 1)");
    if (!step(q)) {
        pr_query_free(q);
        return false;
    }
    c->id = kept(q, 0);
    c->name = kept(q, 1);
    c->host = kept(q, 2);
    c->command = kept(q, pr_query_is_null(q, 4) ? 3 : 4);
    c->ending = kept(q, 6);
    c->good = pr_query_get_int(q, 7) == 1;
    struct pr_used *whole = add_part(c, NULL, 0, pr_query_get_number(q, 5));
    pr_query_free(q);
    q = ask(db, json, "SELECT " METRIC_SQL " FROM json_each(?1, '$.metrics') m");
    while (whole && step(q))
        take_metric(whole, q, 0);
    pr_query_free(q);
    if (whole)
        doubt_gauges(whole, db, json);
    take_phases(c, db, json);
    return whole && c->id;
}

const struct pr_used *pr_case_part(const struct pr_case *c, const char *phase)
{
    for (size_t i = 0; i < c->count; i++)
        if (phase && c->parts[i].phase ? strcmp(c->parts[i].phase, phase) == 0
                                       : !phase && !c->parts[i].phase)
            return &c->parts[i];
    return NULL;
}

double pr_case_value(const struct pr_case *c, const char *phase, struct pr_figure of)
{
    const struct pr_used *u = pr_case_part(c, phase);
    if (!u)
        return NAN;
    return of.id == METRIC_DURATION ? u->seconds : u->value[of.id][of.stat];
}

/* --- sides ------------------------------------------------------------------------------------ */

static struct pr_case *add_case(struct pr_side *side)
{
    struct pr_case *items = reallocarray(side->items, side->count + 1, sizeof *items);
    if (!items)
        return NULL;
    side->items = items;
    items[side->count] = (struct pr_case){0};
    return &items[side->count++];
}

int pr_side_add_run(struct pr_side *side, const struct pr_stored *r, struct proctor_error *err)
{
    struct pr_buf json = {0};
    char ending[64];
    int code = pr_recorded_summary(r, &json, err);
    struct pr_case *c = code == 0 ? add_case(side) : NULL;
    if (code == 0 && (!c || !read_case(c, r->db, pr_buf_text(&json))))
        code = pr_error(err, c ? EUCLEAN : ENOMEM, "'%.180s': %s", r->path,
                        c ? "its summary cannot be read" : "out of memory");
    if (code == 0) {
        c->good = pr_recorded_ending(r, ending, sizeof ending);
        free(c->ending);
        c->ending = strdup(ending);
        c->machine = pr_recorded_machine(r);
    }
    pr_buf_done(&json);
    return code;
}

/* Is it a file of ours, and of a version that is known? */
static int check_file(struct pr_db *db, const char *text, const char *path,
                      struct proctor_error *err)
{
    struct pr_query *q =
        ask(db, text,
            "SELECT json_valid(?1), CASE WHEN json_valid(?1) THEN"
            " coalesce(json_type(?1, '$.proctor_baseline') = 'integer', 0)"
            " AND coalesce(json_type(?1, '$.runs') = 'array', 0) END,"
            " CASE WHEN json_valid(?1) THEN json_extract(?1, '$.proctor_baseline') END,"
            " CASE WHEN json_valid(?1) THEN json_array_length(?1, '$.runs') END");
    bool any = step(q), json = any && pr_query_get_int(q, 0) == 1,
         ours = any && pr_query_get_int(q, 1) == 1;
    int64_t version = any ? pr_query_get_int(q, 2) : 0, runs = any ? pr_query_get_int(q, 3) : 0;
    pr_query_free(q);
    const char *name = pr_text_tail(path, 100);
    if (!ours)
        return pr_error(err, EINVAL, "--baseline: '%s' is %s; make one with --save-baseline", name,
                        json ? "no baseline file" : "neither a baseline file (no JSON) nor a run");
    if (version != BASELINE_VERSION)
        return pr_error(
            err, EPROTO,
            "--baseline: '%s' has version %lld, this proctor knows %d; update it, or make "
            "the file again with --save-baseline",
            name, (long long)version, BASELINE_VERSION);
    return runs > 0
               ? 0
               : pr_error(err, EINVAL,
                          "--baseline: '%s' has no runs; make it again with --save-baseline", name);
}

int pr_side_add_file(struct pr_side *side, struct pr_db *db, const char *path,
                     struct proctor_error *err)
{
    char *text = NULL;
    size_t len;
    int code = pr_fs_slurp(AT_FDCWD, path, &text, &len);
    if (code < 0)
        return pr_error(err, -code, "--baseline: %s: '%s'", strerror(-code),
                        pr_text_tail(path, 100));
    code = check_file(db, text, path, err);
    struct pr_query *q =
        code == 0
            ? ask(db, text,
                  "SELECT CASE type WHEN 'object' THEN json(value) END FROM json_each(?1, '$.runs')"
                  " ORDER BY key")
            : NULL;
    while (code == 0 && step(q)) {
        struct pr_case *c = add_case(side);
        const char *one = pr_query_get_text(q, 0);
        if (!c || !one || !read_case(c, db, one))
            code =
                pr_error(err, c ? EINVAL : ENOMEM, "--baseline: '%s': %s", pr_text_tail(path, 100),
                         c ? "one of its runs has no figures; make it again with --save-baseline"
                           : "out of memory");
    }
    side->filed |= code == 0;
    pr_query_free(q);
    free(text);
    return code;
}

/* --- the file --------------------------------------------------------------------------------- */

static void put_text(struct pr_json *j, const char *key, const char *text)
{
    pr_json_key(j, key);
    pr_json_string(j, text);
}

/* A line for each metric, so that a difference between two files can be read. Others than the job's
 * say more of the machine than of the state that is kept. */
static void put_metrics(struct pr_json *j, const struct pr_case *c, const struct pr_used *u)
{
    struct pr_buf line = {0};
    pr_json_key(j, "metrics");
    pr_json_open(j, '{');
    for (int id = 0; id < METRIC_COUNT; id++) {
        struct pr_json one = {.out = &line};
        bool any = false;
        pr_buf_reset(&line);
        pr_json_open(&one, '{');
        for (int k = 0; k < COMPARE_STATS; k++) {
            if (isnan(u->value[id][k]))
                continue;
            any = true;
            pr_json_key(&one, stat_names[k]);
            pr_json_number(&one, u->value[id][k]);
        }
        if (u->few[id] || u->estimated[id])
            put_text(&one, "mark", pr_mark_name(u->few[id] ? MARK_FEW_SAMPLES : MARK_ESTIMATED));
        pr_json_close(&one, '}');
        if (!any || !(c->machine || pr_metrics[id].scope & SCOPE_JOB))
            continue;
        pr_json_key(j, pr_metrics[id].key);
        pr_json_raw(j, pr_buf_text(&line));
    }
    pr_json_close(j, '}');
    pr_buf_done(&line);
}

static void put_case(struct pr_json *j, const struct pr_case *c)
{
    pr_json_open(j, '{');
    pr_json_key(j, "run");
    pr_json_open(j, '{');
    put_text(j, "id", c->id);
    put_text(j, "name", c->name);
    put_text(j, "host", c->host);
    pr_json_key(j, "command");
    pr_json_open(j, '[');
    pr_json_string(j, c->command ? c->command : "");
    pr_json_close(j, ']');
    put_text(j, "ended", c->ending);
    pr_json_key(j, "good");
    pr_json_bool(j, c->good);
    pr_json_key(j, "duration");
    pr_json_number(j, c->parts[0].seconds);
    pr_json_close(j, '}');
    put_metrics(j, c, &c->parts[0]);
    pr_json_key(j, "phases");
    pr_json_open(j, '[');
    for (size_t i = 1; i < c->count; i++) {
        pr_json_open(j, '{');
        put_text(j, "name", c->parts[i].phase);
        pr_json_key(j, "start");
        pr_json_number(j, c->parts[i].begin);
        pr_json_key(j, "seconds");
        pr_json_number(j, c->parts[i].seconds);
        put_metrics(j, c, &c->parts[i]);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
    pr_json_close(j, '}');
}

void pr_side_save(struct pr_buf *out, const struct pr_side *side)
{
    struct pr_json j = {.out = out, .indent = 2};
    pr_json_open(&j, '{');
    pr_json_key(&j, "proctor_baseline");
    pr_json_int(&j, BASELINE_VERSION);
    put_text(&j, "proctor", PROCTOR_VERSION);
    pr_json_key(&j, "runs");
    pr_json_open(&j, '[');
    for (size_t i = 0; i < side->count; i++)
        put_case(&j, &side->items[i]);
    pr_json_close(&j, ']');
    pr_json_close(&j, '}');
    pr_buf_char(out, '\n');
}

void pr_comparison_done(struct pr_comparison *c)
{
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < c->side[s].count; i++) {
            struct pr_case *k = &c->side[s].items[i];
            char *const texts[] = {k->id, k->name, k->host, k->command, k->ending};
            for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
                free(texts[t]);
            for (size_t p = 0; p < k->count; p++)
                free(k->parts[p].phase);
            free(k->parts);
        }
        free(c->side[s].items);
    }
    free(c->gates.items);
    free(c->rows.items);
    *c = (struct pr_comparison){0};
}
