/* SPDX-License-Identifier: Apache-2.0 */
/* The model as doc/report-model.md has it. */
#include "report/model_json.h"

#include <math.h>

#define SUMMARY_MOST 200000 /* bytes: a summary of more is in the record alone */

static const char *const severities[] = {"good", "note", "warn", "bad"};

const char *pr_severity_name(enum pr_severity severity)
{
    return severities[severity];
}

static void identity(struct pr_json *j, const struct pr_model *m)
{
    pr_put_text(j, "id", m->id);
    pr_put_text(j, "name", m->name);
    pr_json_key(j, "run");
    pr_json_open(j, '{');
    pr_put_text(j, "command", m->command);
    pr_json_key(j, "argv");
    pr_json_open(j, '[');
    for (size_t i = 0; i < m->argv.count; i++)
        pr_json_string(j, m->argv.items[i]);
    pr_json_close(j, ']');
    pr_put_text(j, "cwd", m->cwd);
    pr_put_text(j, "host", m->host);
    pr_put_text(j, "node", m->node);
    pr_put_number(j, "began", m->began);
    pr_put_number(j, "duration", m->duration);
    pr_put_number(j, "exit", m->exit_code < 0 ? NAN : m->exit_code);
    pr_put_text(j, "signal", m->signal);
    pr_json_key(j, "labels");
    pr_json_open(j, '{');
    for (size_t i = 0; i < m->labels.count; i++)
        pr_put_text(j, m->labels.items[i].what, m->labels.items[i].words);
    pr_json_close(j, '}');
    pr_json_close(j, '}');
    pr_json_key(j, "verdict");
    pr_json_open(j, '{');
    pr_put_text(j, "text", m->verdict);
    pr_put_text(j, "severity", severities[m->severity]);
    pr_json_close(j, '}');
}

static void findings(struct pr_json *j, const struct pr_model *m)
{
    pr_json_key(j, "findings");
    pr_json_open(j, '[');
    for (size_t i = 0; i < m->findings.count; i++) {
        const struct pr_model_finding *f = &m->findings.items[i];
        pr_json_open(j, '{');
        pr_put_text(j, "id", f->id);
        pr_put_text(j, "severity", severities[f->severity]);
        pr_put_text(j, "text", f->text);
        pr_put_number(j, "at", f->at);
        pr_put_text(j, "range", NULL);
        pr_put_text(j, "more", f->more);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
}

static void phase(struct pr_json *j, const struct pr_model *m, const struct pr_model_phase *p)
{
    pr_json_open(j, '{');
    pr_put_text(j, "name", p->name);
    pr_put_number(j, "begin", p->begin);
    pr_put_number(j, "end", p->end);
    pr_put_number(j, "level", p->level);
    pr_put_number(j, "parent", p->parent < 0 ? NAN : p->parent);
    pr_put_number(j, "time", p->end - p->begin);
    pr_json_key(j, "exact");
    pr_json_bool(j, p->exact);
    pr_put_number(j, "count", p->count);
    pr_json_key(j, "stats");
    pr_json_open(j, '{');
    for (size_t i = 0; p->stats && i < m->series.count; i++)
        if (!isnan(p->stats[i].mean) || !isnan(p->stats[i].max) || !isnan(p->stats[i].total))
            pr_put_figures(j, m->series.items[i].key, &p->stats[i]);
    pr_json_close(j, '}');
    pr_json_close(j, '}');
}

static void phases(struct pr_json *j, const struct pr_model *m)
{
    pr_json_key(j, "phases");
    pr_json_open(j, '[');
    for (size_t i = 0; i < m->phases.count; i++)
        phase(j, m, &m->phases.items[i]);
    pr_json_close(j, ']');
    pr_json_key(j, "columns");
    pr_json_open(j, '[');
    for (size_t i = 0; i < pr_phase_column_count; i++) {
        if (!pr_model_find(m, pr_phase_columns[i].value.group))
            continue;
        pr_json_open(j, '{');
        pr_put_text(j, "title", pr_phase_columns[i].title);
        pr_put_value(j, m, &pr_phase_columns[i].value);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
}

static void events(struct pr_json *j, const struct pr_model *m)
{
    pr_json_key(j, "events");
    pr_json_open(j, '[');
    for (size_t i = 0; i < m->events.count; i++) {
        const struct pr_model_event *e = &m->events.items[i];
        pr_json_open(j, '{');
        pr_put_number(j, "at", e->at);
        pr_put_text(j, "kind", e->kind);
        pr_put_text(j, "severity", severities[e->severity]);
        pr_put_text(j, "text", e->text);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
}

static void spark(struct pr_json *j, const double *points)
{
    pr_json_key(j, "spark");
    if (!points) {
        pr_json_null(j);
        return;
    }
    pr_json_open(j, '[');
    for (int i = 0; i < MODEL_POINTS; i++)
        pr_json_number(j, isnan(points[i]) ? NAN : round(points[i] * 1e3) / 1e3);
    pr_json_close(j, ']');
}

static void processes(struct pr_json *j, const struct pr_model *m)
{
    pr_json_key(j, "processes");
    pr_json_open(j, '{');
    pr_put_number(j, "total", m->seen);
    pr_put_text(j, "note", m->processes_note);
    pr_json_key(j, "list");
    pr_json_open(j, '[');
    for (size_t i = 0; i < m->processes.count; i++) {
        const struct pr_model_process *p = &m->processes.items[i];
        pr_json_open(j, '{');
        pr_put_number(j, "pid", p->pid);
        pr_put_number(j, "parent", p->parent < 0 ? NAN : p->parent);
        pr_put_text(j, "name", p->name);
        pr_put_text(j, "command", p->command);
        pr_put_number(j, "begin", p->begin);
        pr_put_number(j, "end", p->end);
        pr_put_number(j, "cpu", p->cpu);
        pr_put_number(j, "peak", p->peak);
        pr_put_number(j, "read", p->read);
        pr_put_number(j, "written", p->written);
        pr_put_text(j, "exit", p->exit);
        spark(j, p->spark);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
    pr_json_close(j, '}');
}

/* --- tables -------------------------------------------------------------------------------------
 */

static void table(struct pr_json *j, const struct pr_model *m, const char *key,
                  const struct pr_model_column *columns, size_t count,
                  const struct pr_model_row *rows, size_t row_count)
{
    pr_json_key(j, key);
    pr_json_open(j, '{');
    pr_json_key(j, "columns");
    pr_json_open(j, '[');
    for (size_t i = 0; i < count; i++) {
        pr_json_open(j, '{');
        pr_put_text(j, "key", columns[i].key);
        pr_put_text(j, "title", pr_column_title(m, &columns[i]));
        pr_put_text(j, "unit", columns[i].words ? NULL : pr_model_unit(columns[i].unit));
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
    pr_json_key(j, "rows");
    pr_json_open(j, '[');
    for (size_t k = 0; k < row_count; k++) {
        size_t words = 0, numbers = 0;
        pr_json_open(j, '{');
        for (size_t i = 0; i < count; i++)
            if (columns[i].words)
                pr_put_text(j, columns[i].key, rows[k].text[words++]);
            else
                pr_put_number(j, columns[i].key, rows[k].value[numbers++]);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
    pr_put_text(j, "note", NULL);
    pr_json_close(j, '}');
}

static void pair(struct pr_json *j, const struct pr_model_words *w)
{
    pr_json_open(j, '[');
    pr_json_string(j, w->what);
    pr_json_string(j, w->words);
    pr_json_close(j, ']');
}

static void words(struct pr_json *j, const struct pr_model *m)
{
    bool open = false;
    pr_json_key(j, "measured");
    pr_json_open(j, '[');
    for (size_t i = 0; i < m->measured.count; i++) {
        const struct pr_model_words *w = &m->measured.items[i];
        if (w->title && open) {
            pr_json_close(j, ']');
            pr_json_close(j, '}');
        }
        if (w->title || !open) {
            pr_json_open(j, '{');
            pr_put_text(j, "title", w->title ? w->title : "");
            pr_json_key(j, "rows");
            pr_json_open(j, '[');
            open = true;
        }
        pair(j, w);
    }
    if (open) {
        pr_json_close(j, ']');
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
    pr_json_key(j, "facts");
    pr_json_open(j, '[');
    for (size_t i = 0; i < m->facts.count; i++)
        pair(j, &m->facts.items[i]);
    pr_json_close(j, ']');
}

static void run(struct pr_json *j, const struct pr_model *m)
{
    pr_json_open(j, '{');
    identity(j, m);
    findings(j, m);
    pr_put_curves(j, m);
    phases(j, m);
    events(j, m);
    processes(j, m);
    table(j, m, "matches", pr_match_columns, pr_match_column_count, m->matches.items,
          m->matches.count);
    table(j, m, "devices", pr_device_columns, pr_device_column_count, m->devices.items,
          m->devices.count);
    if (m->nodes.count)
        table(j, m, "nodes", pr_node_columns, pr_node_column_count, m->nodes.items, m->nodes.count);
    words(j, m);
    pr_json_key(j, "summary");
    bool there = m->summary.len && m->summary.len < SUMMARY_MOST;
    pr_json_raw(j, there ? m->summary.data : "null");
    pr_json_close(j, '}');
}

void pr_model_json(struct pr_buf *out, const struct pr_model *const *runs, size_t count)
{
    pr_model_json_compared(out, runs, count, "null");
}

void pr_model_json_compared(struct pr_buf *out, const struct pr_model *const *runs, size_t count,
                            const char *comparison)
{
    struct pr_json j = {.out = out};
    pr_json_open(&j, '{');
    pr_json_key(&j, "model");
    pr_json_int(&j, 1);
    pr_put_text(&j, "proctor", PROCTOR_VERSION);
    pr_put_text(&j, "title",
                count == 1 || runs[0]->nodes.count ? runs[0]->name : "proctor: several runs");
    pr_json_key(&j, "runs");
    pr_json_open(&j, '[');
    for (size_t i = 0; i < count; i++)
        run(&j, runs[i]);
    pr_json_close(&j, ']');
    pr_json_key(&j, "comparison");
    pr_json_raw(&j, comparison);
    pr_json_close(&j, '}');
}
