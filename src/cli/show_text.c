/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/show_text.h"

#include <math.h>
#include <string.h>

#include "cli/runs.h"
#include "report/page.h"
#include "report/picture.h"
#include "util/clock.h"
#include "util/text.h"

#define EVENTS_SHOWN 20
#define PHASES_SHOWN 50
#define COUNT(list)  (sizeof list / sizeof *list)
#define CELLS        8
#define CELL_BYTES   64

struct show {
    struct pr_page page;
    const struct pr_stored *stored;
    const char *json;
};

/* --- cells ------------------------------------------------------------------------------------ */

/* A table of texts: widths are known only when all of it is. */
struct table {
    const char *const *heads;
    int columns, left;  /* so many of the first stand at the left */
    bool remarks;       /* in the last column */
    struct pr_buf text; /* cells, each with a NUL */
    size_t cells;
    int width[CELLS];
};

static int width_of(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void add_cell(struct table *t, struct pr_buf *cell)
{
    const char *text = pr_buf_text(cell);
    int column = (int)(t->cells++ % (size_t)t->columns), n = width_of(text);
    t->width[column] = n > t->width[column] ? n : t->width[column];
    pr_buf_add(&t->text, text, strlen(text) + 1);
    pr_buf_reset(cell);
}

static void pad(struct pr_buf *out, int n)
{
    while (n-- > 0)
        pr_buf_char(out, ' ');
}

/* Without columns that have nothing in them, and without blanks at the end. */
static void put_row(struct show *s, const struct table *t, const char *const *cells)
{
    struct pr_buf *out = s->page.out;
    pr_buf_str(out, "  ");
    for (int i = 0; i < t->columns; i++) {
        int room = t->width[i] - width_of(cells[i]);
        bool left = i < t->left || (t->remarks && i + 1 == t->columns);
        if (!t->width[i])
            continue;
        pad(out, left ? 0 : room);
        pr_buf_str(out, cells[i]);
        pad(out, 2 + (left ? room : 0));
    }
    while (out->len && out->data[out->len - 1] == ' ')
        out->len--;
    pr_buf_char(out, '\n');
}

static void put_table(struct show *s, struct table *t)
{
    const char *cells[CELLS], *p = pr_buf_text(&t->text);
    for (int i = 0; i < t->columns; i++) {
        int n = width_of(t->heads[i]);
        t->width[i] = t->width[i] && n > t->width[i] ? n : t->width[i];
    }
    if (t->cells) {
        pr_buf_char(s->page.out, '\n');
        pr_page_paint(&s->page, "2");
        put_row(s, t, t->heads);
        pr_page_paint(&s->page, "0");
    }
    for (size_t i = 0; i < t->cells; i++, p += strlen(p) + 1) {
        cells[i % (size_t)t->columns] = p;
        if ((i + 1) % (size_t)t->columns == 0)
            put_row(s, t, cells);
    }
    pr_buf_done(&t->text);
}

static void human(struct pr_buf *cell, double v, enum pr_unit unit)
{
    if (isnan(v))
        return;
    if (unit == UNIT_RATIO) {
        pr_units_fixed(cell, v * 100, 1);
        pr_buf_str(cell, " %");
    } else {
        pr_units_human(cell, v, unit);
    }
}

static void safe(struct pr_buf *cell, const char *text)
{
    struct pr_buf whole = {0};
    pr_text_safe(&whole, text ? text : "");
    pr_buf_printf(cell, "%.*s%s", CELL_BYTES, pr_buf_text(&whole),
                  whole.len > CELL_BYTES ? "..." : "");
    pr_buf_done(&whole);
}

/* --- rows of JSON ----------------------------------------------------------------------------- */

/* The rows of a query on the JSON, whose parameter 1 it is. NULL where that fails. */
static struct pr_query *ask(struct show *s, const char *sql)
{
    struct pr_query *q = NULL;
    if (pr_query_new(&q, s->stored->db, sql) < 0)
        return NULL;
    pr_query_text(q, 1, s->json);
    return q;
}

static bool step(struct pr_query *q)
{
    return q && pr_query_step(q) == 1;
}

static bool text_at(struct show *s, const char *path, struct pr_buf *out)
{
    return pr_stored_text(s->stored, s->json, path, out);
}

static double number_at(struct show *s, const char *path)
{
    return pr_stored_number(s->stored, s->json, path);
}

/* --- what it was ------------------------------------------------------------------------------ */

static void head(struct show *s)
{
    struct pr_page *p = &s->page;
    struct pr_buf text = {0};
    pr_page_paint(p, "1");
    pr_text_safe(p->out, s->stored->id);
    if (text_at(s, "$.run.name", &text)) {
        pr_buf_str(p->out, "  ");
        pr_text_safe(p->out, pr_buf_text(&text));
    }
    pr_page_paint(p, "0");
    pr_buf_char(p->out, '\n');
    pr_buf_done(&text);
}

/* Joined words of a query, on a line of their own where there are any. */
static void joined(struct show *s, const char *name, const char *sql)
{
    struct pr_query *q = ask(s, sql);
    if (step(q) && pr_query_get_text(q, 0)) {
        pr_page_label(&s->page, name);
        pr_text_safe(s->page.out, pr_query_get_text(q, 0));
        pr_page_end(&s->page);
    }
    pr_query_free(q);
}

static void when(struct show *s)
{
    struct pr_page *p = &s->page;
    double missed = number_at(s, "$.samples.missed");
    pr_page_label(p, "when");
    pr_runs_time(p->out, s->stored->started);
    pr_buf_str(p->out, s->stored->state == RUN_RUNNING ? ", for " : ", lasted ");
    pr_page_human(p, number_at(s, "$.run.duration"), UNIT_SECONDS);
    pr_buf_printf(p->out, "; %.0f samples, one each ", number_at(s, "$.samples.taken"));
    pr_page_human(p, s->stored->interval, UNIT_SECONDS);
    if (missed > 0)
        pr_buf_printf(p->out, " (%.0f missed)", missed);
    pr_page_end(p);
}

static void how(struct show *s)
{
    struct pr_page *p = &s->page;
    const struct pr_stored *r = s->stored;
    struct pr_run_row row = {.state = r->state,
                             .recovered = r->recovered,
                             .exit_code = r->exit_code,
                             .exit_signal = r->exit_signal};
    pr_page_label(p, "status");
    pr_page_paint(p, pr_runs_paint(&row));
    pr_runs_status(p->out, &row);
    pr_page_paint(p, "0");
    if (r->state == RUN_DIED) {
        pr_buf_str(p->out, ": the recorder could not write its end; `proctor recover ");
        pr_text_safe(p->out, r->path);
        pr_buf_str(p->out, "` makes up for it");
    } else if (r->state == RUN_ELSEWHERE) {
        pr_buf_str(p->out, ": it was begun on ");
        pr_text_safe(p->out, r->host);
        pr_buf_str(p->out, ", which cannot be asked from here whether it goes on");
    } else if (r->recovered)
        pr_buf_str(p->out, ": the recorder had died; what follows is rebuilt from its samples");
    pr_page_end(p);
}

static void identity(struct show *s)
{
    head(s);
    joined(s, "command", "SELECT group_concat(value, ' ') FROM json_each(?1, '$.run.command')");
    joined(s, "target", "SELECT json_extract(?1, '$.run.target')");
    how(s);
    when(s);
    joined(s, "host",
           "SELECT json_extract(?1, '$.run.host') ||"
           " coalesce(', node ' || json_extract(?1, '$.run.node'), '') ||"
           " coalesce(', within run ' || json_extract(?1, '$.run.parent'), '')");
    joined(s, "labels",
           "SELECT group_concat(key || '=' || value, ', ') FROM json_each(?1, '$.run.labels')");
    pr_page_label(&s->page, "file");
    pr_text_safe(s->page.out, s->stored->path);
    pr_page_end(&s->page);
}

/* --- figures ---------------------------------------------------------------------------------- */

/* Members of each item of an array or object at `where`: its key in column 0, then those at the
 * paths. NULL where that fails. */
static struct pr_query *ask_each(struct show *s, const char *where, const char *const *paths,
                                 size_t count, const char *more)
{
    struct pr_buf sql = {0};
    pr_buf_str(&sql, "SELECT key");
    for (size_t i = 0; i < count; i++)
        pr_buf_printf(&sql, ", json_extract(value, '$.%s')", paths[i]);
    pr_buf_printf(&sql, " FROM json_each(?1, '$.%s')%s", where, more);
    struct pr_query *q = ask(s, pr_buf_text(&sql));
    pr_buf_done(&sql);
    return q;
}

static void metrics(struct show *s, bool machine)
{
    static const char *const paths[] = {"total", "peak", "at", "mean", "p50", "p95", "mark"};
    enum { AT = 3, FIGURES = 6, MARK = 7 };
    const char *const heads[CELLS] = {
        machine ? "MACHINE" : "JOB", "TOTAL", "PEAK", "AT", "MEAN", "P50", "P95", ""};
    struct table t = {.heads = heads, .columns = CELLS, .left = 1, .remarks = true};
    struct pr_buf cell = {0};
    struct pr_query *q =
        ask_each(s, "metrics", paths, COUNT(paths),
                 machine ? " WHERE key LIKE 'system.%'" : " WHERE key NOT LIKE 'system.%'");
    while (step(q)) {
        const char *key = pr_query_get_text(q, 0), *mark = pr_query_get_text(q, MARK);
        enum pr_metric_id id = key ? pr_metric_find(key) : METRIC_NONE;
        enum pr_unit unit = id == METRIC_NONE ? UNIT_COUNT : pr_metrics[id].unit;
        safe(&cell, key);
        add_cell(&t, &cell);
        for (int i = 1; i <= FIGURES; i++) {
            human(&cell, pr_query_get_number(q, i), i == AT ? UNIT_SECONDS : unit);
            add_cell(&t, &cell);
        }
        if (mark) {
            pr_buf_char(&cell, '(');
            safe(&cell, mark);
            pr_buf_char(&cell, ')');
        }
        add_cell(&t, &cell);
    }
    pr_query_free(q);
    pr_buf_done(&cell);
    put_table(s, &t);
}

/* Phases and names have the same figures: who, two numbers of their own, then what was used. */
struct parts {
    const char *heads[CELLS], *where, *paths[10], *more;
    enum pr_unit units[2];
    size_t most;
};

#define USED                                                                                       \
    "metrics.\"cpu.time\".total", "metrics.\"cpu.usage\".mean", "metrics.\"mem.rss\".peak",        \
        "metrics.\"mem.pss\".peak", "metrics.\"mem.pss\".mark", "metrics.\"mem.pss\".peak_mark",   \
        "depth"
enum {
    PART_NAME = 1,
    PART_OWN,
    PART_CPU = 4,
    PART_MEAN,
    PART_RSS,
    PART_PSS,
    PART_MARK,
    PART_PEAK_MARK,
    PART_DEPTH
};

/* PSS, in which shared pages count once, where it was read often enough. */
static bool has_pss(struct pr_query *q)
{
    return !isnan(pr_query_get_number(q, PART_PSS)) &&
           !pr_said_is(pr_query_get_text(q, PART_MARK), MARK_FEW_SAMPLES);
}

static void part(struct table *t, struct pr_query *q, const enum pr_unit *units)
{
    struct pr_buf cell = {0};
    double depth = pr_query_get_number(q, PART_DEPTH);
    const double values[] = {pr_query_get_number(q, PART_OWN), pr_query_get_number(q, PART_OWN + 1),
                             pr_query_get_number(q, PART_CPU), pr_query_get_number(q, PART_MEAN),
                             pr_query_get_number(q, has_pss(q) ? PART_PSS : PART_RSS)};
    pad(&cell, depth > 0 ? 2 * (int)fmin(16, depth) : 0);
    safe(&cell, pr_query_get_text(q, PART_NAME));
    add_cell(t, &cell);
    for (size_t i = 0; i < COUNT(values); i++) {
        human(&cell, values[i], units[i]);
        add_cell(t, &cell);
    }
    if (has_pss(q) && pr_said_is(pr_query_get_text(q, PART_PEAK_MARK), MARK_ESTIMATED))
        pr_buf_str(&cell, "(" SAID_ESTIMATED ")");
    add_cell(t, &cell);
    pr_buf_done(&cell);
}

static void parts(struct show *s, const struct parts *of)
{
    struct table t = {.heads = of->heads, .columns = 7, .left = 1, .remarks = true};
    const enum pr_unit units[] = {of->units[0], of->units[1], UNIT_SECONDS, UNIT_CORES, UNIT_BYTES};
    struct pr_query *q = ask_each(s, of->where, of->paths, COUNT(of->paths), of->more);
    size_t rows = 0;
    while (step(q) && rows++ < of->most)
        part(&t, q, units);
    pr_query_free(q);
    put_table(s, &t);
    if (rows > of->most)
        pr_buf_str(s->page.out, "  ... and more: --json has all\n");
}

static void phases_and_names(struct show *s)
{
    static const struct parts all[] = {
        {{"PHASE", "BEGAN", "LASTED", "CPU", "MEAN", "MEMORY", ""},
         "phases",
         {"name", "start", "seconds", USED},
         " ORDER BY 3",
         {UNIT_SECONDS, UNIT_SECONDS},
         PHASES_SHOWN},
        {{"NAME", "INSTANCES", "SAMPLES", "CPU", "MEAN", "MEMORY", ""},
         "matches",
         {"name", "instances", "samples", USED},
         "",
         {UNIT_COUNT, UNIT_COUNT},
         SIZE_MAX},
    };
    for (size_t i = 0; i < COUNT(all); i++)
        parts(s, &all[i]);
}

static void devices(struct show *s)
{
    static const char *const heads[] = {"DEVICE", "MODEL", "BUSY", "MEMORY", "POWER", "ENERGY"};
    static const char *const paths[] = {"name",
                                        "model",
                                        "metrics.\"gpu.util\".mean",
                                        "metrics.\"gpu.mem.used\".peak",
                                        "metrics.\"gpu.power\".mean",
                                        "metrics.\"gpu.energy\".total"};
    static const enum pr_unit units[] = {UNIT_RATIO, UNIT_BYTES, UNIT_WATTS, UNIT_JOULES};
    struct table t = {.heads = heads, .columns = 6, .left = 2};
    struct pr_buf cell = {0};
    struct pr_query *q = ask_each(s, "devices", paths, COUNT(paths), "");
    while (step(q))
        for (int i = 0; i < 6; i++) {
            if (i < 2)
                safe(&cell, pr_query_get_text(q, i + 1));
            else
                human(&cell, pr_query_get_number(q, i + 1), units[i - 2]);
            add_cell(&t, &cell);
        }
    pr_query_free(q);
    pr_buf_done(&cell);
    put_table(s, &t);
}

/* --- words ------------------------------------------------------------------------------------ */

static void event(struct pr_page *p, struct pr_query *q)
{
    const char *type = pr_query_get_text(q, 2), *text = pr_query_get_text(q, 3),
               *data = pr_query_get_text(q, 4);
    pr_page_label(p, type ? type : "");
    pr_buf_str(p->out, "at ");
    pr_page_human(p, pr_query_get_number(q, 1), UNIT_SECONDS);
    pr_buf_str(p->out, ": ");
    pr_text_safe(p->out, text ? text : "");
    if (data && strcmp(data, "{}") != 0) {
        pr_buf_char(p->out, ' ');
        pr_text_safe(p->out, data);
    }
    pr_page_end(p);
}

static void events(struct show *s)
{
    static const char *const paths[] = {"at", "type", "text", "data"};
    struct pr_query *q = ask_each(s, "events", paths, COUNT(paths), " ORDER BY 2");
    int shown = 0;
    for (; step(q) && shown < EVENTS_SHOWN; shown++) {
        pr_buf_str(s->page.out, shown ? "" : "\n");
        event(&s->page, q);
    }
    if (shown == EVENTS_SHOWN && step(q))
        pr_buf_str(s->page.out, "  ... and more: --json has those that are kept\n");
    pr_query_free(q);
}

static void account(struct pr_page *p, const char *name, struct pr_query *q)
{
    const char *source = pr_query_get_text(q, 1), *note = pr_query_get_text(q, 3);
    bool complete = pr_query_get_int(q, 2) != 0;
    pr_page_label(p, name);
    pr_text_safe(p->out, source ? source : "");
    pr_page_paint(p, complete ? "0" : "33");
    pr_buf_str(p->out, complete ? "; complete" : "; not complete");
    pr_page_paint(p, "0");
    if (note) {
        pr_buf_str(p->out, ": ");
        pr_text_safe(p->out, note);
    }
    pr_page_end(p);
}

static void accounting(struct show *s)
{
    static const char *const names[][2] = {
        {"cpu", "CPU"}, {"io", "I/O"}, {"memory_peak", "memory"}};
    static const char *const paths[] = {"source", "complete", "note"};
    struct pr_query *q = ask_each(s, "accounting", paths, COUNT(paths), "");
    for (int i = 0; step(q); i++) {
        const char *key = pr_query_get_text(q, 0), *name = key ? key : "";
        for (size_t n = 0; n < COUNT(names); n++)
            name = strcmp(name, names[n][0]) == 0 ? names[n][1] : name;
        pr_buf_str(s->page.out, i ? "" : "\n");
        account(&s->page, name, q);
    }
    pr_query_free(q);
}

void pr_show_text(struct pr_buf *out, const struct pr_stored *r, const char *json,
                  const struct pr_model *m, const struct pr_look *look)
{
    struct show s = {.page = {.out = out, .look = *look}, .stored = r, .json = json};
    identity(&s);
    if (m) {
        pr_picture_findings(&s.page, m);
        pr_picture(&s.page, m);
    } else {
        joined(&s, "finding", "SELECT group_concat(value, '; ') FROM json_each(?1, '$.findings')");
    }
    metrics(&s, false);
    phases_and_names(&s);
    devices(&s);
    events(&s);
    accounting(&s);
    metrics(&s, true); /* what it ran on comes last */
}
