/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for programs, and within a report. */
#include <math.h>
#include <string.h>

#include "report/compare_words.h"
#include "report/model_json.h"
#include "report/model_parts.h"

#define SCHEMA 1

static void put_bool(struct pr_json *j, const char *key, bool v)
{
    pr_json_key(j, key);
    pr_json_bool(j, v);
}

/* --- for programs ----------------------------------------------------------------------------- */

static void put_side(struct pr_json *j, const char *key, const struct pr_side *side)
{
    pr_json_key(j, key);
    pr_json_open(j, '[');
    for (size_t i = 0; i < side->count; i++) {
        const struct pr_case *k = &side->items[i];
        pr_json_open(j, '{');
        pr_put_text(j, "id", k->id);
        pr_put_text(j, "name", k->name);
        pr_put_text(j, "host", k->host);
        pr_put_text(j, "command", k->command);
        pr_put_text(j, "ended", k->ending);
        put_bool(j, "good", k->good);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
}

static void put_group(struct pr_json *j, const struct pr_comparison *c, const struct pr_row *r,
                      int side)
{
    pr_json_key(j, side ? "runs" : "baseline");
    pr_json_open(j, '{');
    pr_put_number(j, "median", r->median[side]);
    pr_put_number(j, "min", r->least[side]);
    pr_json_key(j, "values");
    pr_json_open(j, '[');
    for (size_t i = 0; i < c->side[side].count; i++)
        pr_json_number(j, pr_case_value(&c->side[side].items[i], r->phase, r->of));
    pr_json_close(j, ']');
    pr_json_close(j, '}');
}

static void put_row(struct pr_json *j, const struct pr_comparison *c, const struct pr_row *r)
{
    pr_json_open(j, '{');
    pr_put_text(j, "phase", r->phase);
    pr_put_text(j, "metric", r->of.id == METRIC_DURATION ? "duration" : pr_metrics[r->of.id].key);
    pr_put_text(j, "stat", pr_figure_stat(r->of));
    pr_put_text(j, "unit", pr_units_name(pr_figure_unit(r->of)));
    put_group(j, c, r, 0);
    put_group(j, c, r, 1);
    pr_put_number(j, "difference", r->median[1] - r->median[0]);
    pr_put_number(j, "ratio", r->median[1] / r->median[0] - 1);
    pr_put_number(j, "p", r->p);
    pr_json_key(j, "beyond_noise");
    if (isnan(r->p) || !r->can_tell)
        pr_json_null(j);
    else
        pr_json_bool(j, r->beyond);
    put_bool(j, "few_samples", r->few);
    put_bool(j, "estimated", r->estimated);
    pr_put_text(j, "severity", pr_severity_name(r->severity));
    pr_json_close(j, '}');
}

static void put_gate(struct pr_json *j, const struct pr_comparison *c, const struct pr_gate *g)
{
    struct pr_buf words = {0};
    pr_gate_words(&words, c, g);
    pr_json_open(j, '{');
    pr_put_text(j, "expr", g->text);
    pr_json_key(j, "holds");
    if (*g->why.message)
        pr_json_null(j);
    else
        pr_json_bool(j, g->holds);
    pr_put_number(j, "limit", g->limit);
    pr_put_text(j, "text", pr_buf_text(&words));
    pr_json_close(j, '}');
    pr_buf_done(&words);
}

void pr_compare_json(struct pr_buf *out, const struct pr_comparison *c)
{
    struct pr_json j = {.out = out, .indent = 2};
    bool failed = false;
    for (size_t i = 0; i < c->gates.count; i++)
        failed |= c->gates.items[i].holds;
    pr_json_open(&j, '{');
    pr_json_key(&j, "schema");
    pr_json_int(&j, SCHEMA);
    put_bool(&j, "failed", failed);
    pr_put_text(&j, "align", c->aligned ? "phase" : "start");
    pr_put_text(&j, "phase", c->aligned);
    put_side(&j, "baseline", &c->side[0]);
    put_side(&j, "runs", &c->side[1]);
    pr_json_key(&j, "gates");
    pr_json_open(&j, '[');
    for (size_t i = 0; i < c->gates.count; i++)
        put_gate(&j, c, &c->gates.items[i]);
    pr_json_close(&j, ']');
    pr_json_key(&j, "rows");
    pr_json_open(&j, '[');
    for (size_t i = 0; i < c->rows.count; i++)
        put_row(&j, c, &c->rows.items[i]);
    pr_json_close(&j, ']');
    pr_json_close(&j, '}');
    pr_buf_char(out, '\n');
}

/* --- within a report -------------------------------------------------------------------------- */

bool pr_comparison_nth(const struct pr_comparison *c, size_t n, int *ret_side, size_t *ret_at)
{
    size_t base = c->side[0].filed ? 0 : c->side[0].count, runs = c->side[1].count,
           before = base ? 1 : 0;
    *ret_side = n >= before && n < before + runs;
    *ret_at = *ret_side ? n - before : n ? n - runs : 0;
    return n < base + runs;
}

/* By how much the times of each run are moved, so that the phase begins when it does in the first.
 */
static void put_shifts(struct pr_json *j, const struct pr_comparison *c)
{
    const struct pr_case *first = &c->side[c->side[0].filed ? 1 : 0].items[0];
    int side;
    size_t at;
    pr_json_key(j, "shift");
    pr_json_open(j, '[');
    for (size_t i = 0; pr_comparison_nth(c, i, &side, &at); i++)
        pr_json_number(j, c->aligned ? pr_case_part(first, c->aligned)->begin -
                                           pr_case_part(&c->side[side].items[at], c->aligned)->begin
                                     : 0);
    pr_json_close(j, ']');
}

static void put_words(struct pr_json *j, const struct pr_comparison *c,
                      const struct pr_compare_table *t, const struct pr_row *r)
{
    struct pr_buf cell = {0};
    pr_json_open(j, '{');
    for (size_t k = 0; k < t->count; k++) {
        pr_buf_reset(&cell);
        pr_compare_cell(&cell, c, r, &t->columns[k]);
        pr_put_text(j, t->columns[k].key, pr_buf_text(&cell));
    }
    pr_put_text(j, "severity", pr_severity_name(r->severity));
    pr_json_close(j, '}');
    pr_buf_done(&cell);
}

static void put_note(struct pr_json *j, const struct pr_comparison *c)
{
    struct pr_buf note = {0};
    for (size_t i = 0; i < c->gates.count; i++) {
        pr_buf_str(&note, i ? ". " : "");
        pr_gate_words(&note, c, &c->gates.items[i]);
    }
    if (c->side[0].filed)
        pr_buf_str(&note, note.len ? ". The baseline is a file, which has no curves."
                                   : "The baseline is a file, which has no curves.");
    pr_put_text(j, "note", note.len ? pr_buf_text(&note) : NULL);
    pr_buf_done(&note);
}

void pr_compare_model(struct pr_buf *out, const struct pr_comparison *c)
{
    struct pr_json j = {.out = out};
    struct pr_compare_table t;
    pr_compare_columns(&t, c);
    pr_json_open(&j, '{');
    pr_put_number(&j, "baseline", c->side[0].filed ? NAN : 0);
    pr_put_text(&j, "align", c->aligned ? "phase" : "start");
    put_shifts(&j, c);
    pr_json_key(&j, "columns");
    pr_json_open(&j, '[');
    for (size_t k = 0; k < t.count; k++) {
        pr_json_open(&j, '{');
        pr_put_text(&j, "key", t.columns[k].key);
        pr_put_text(&j, "title", t.columns[k].title);
        pr_put_text(&j, "unit", NULL);
        pr_json_close(&j, '}');
    }
    pr_json_close(&j, ']');
    pr_json_key(&j, "rows");
    pr_json_open(&j, '[');
    for (size_t i = 0; i < c->rows.count; i++)
        put_words(&j, c, &t, &c->rows.items[i]);
    pr_json_close(&j, ']');
    put_note(&j, c);
    pr_put_text(&j, "overlay", NULL); /* all that both have */
    pr_json_close(&j, '}');
}

/* --- the finding ------------------------------------------------------------------------------ */

/* The condition that matters most: one that holds, else one that cannot be told; NULL for none. */
static const struct pr_gate *worst_gate(const struct pr_comparison *c, size_t *ret_more)
{
    const struct pr_gate *worst = NULL;
    *ret_more = 0;
    for (size_t i = 0; i < c->gates.count; i++) {
        const struct pr_gate *g = &c->gates.items[i];
        if (!g->holds && !*g->why.message)
            continue;
        *ret_more += worst != NULL;
        if (!worst || (g->holds && !worst->holds))
            worst = g;
    }
    return worst;
}

/* "Against the baseline 3 figures are worse and 1 better; most of all duration: 28 % more". */
static enum pr_severity put_outcome(struct pr_buf *out, const struct pr_comparison *c)
{
    const struct pr_compare_column name = {.kind = COLUMN_METRIC},
                                   difference = {.kind = COLUMN_DIFFERENCE};
    const struct pr_row *most = NULL;
    const struct pr_case *failed = pr_compare_failed(c);
    size_t worse = 0, better = 0;
    if (failed) {
        pr_buf_printf(out, "%s did not end well (%s): less than the baseline is no gain",
                      failed->id, failed->ending ? failed->ending : "its end is not known");
        return SEVERITY_WARN;
    }
    for (size_t i = 0; i < c->rows.count; i++) {
        const struct pr_row *r = &c->rows.items[i];
        worse += r->severity >= SEVERITY_WARN;
        better += r->severity == SEVERITY_GOOD;
        if (r->severity >= SEVERITY_WARN &&
            (!most || r->median[1] / r->median[0] > most->median[1] / most->median[0]))
            most = r;
    }
    if (!worse && !better) {
        pr_buf_str(out, "Nothing differs much from the baseline");
        return SEVERITY_NOTE;
    }
    pr_buf_printf(out, "Against the baseline %zu figure%s worse, %zu better", worse,
                  worse == 1 ? " is" : "s are", better);
    if (most) {
        pr_buf_str(out, "; most of all ");
        pr_compare_cell(out, c, most, &name);
        pr_buf_str(out, ": ");
        pr_compare_cell(out, c, most, &difference);
    }
    return worse ? SEVERITY_WARN : SEVERITY_GOOD;
}

void pr_compare_finding(struct pr_model *m, const struct pr_comparison *c)
{
    struct pr_buf text = {0};
    size_t more;
    const struct pr_gate *g = worst_gate(c, &more);
    enum pr_severity severity = SEVERITY_BAD;
    if (g)
        pr_gate_words(&text, c, g);
    else
        severity = put_outcome(&text, c);
    if (more)
        pr_buf_printf(&text, "; %zu more below", more);
    struct pr_model_finding *last = LIST_ADD(m, &m->findings);
    if (last) {
        struct pr_model_finding *all = m->findings.items;
        memmove(all + 1, all, (m->findings.count - 1) * sizeof *all);
        *all =
            (struct pr_model_finding){"comparison", pr_model_keep(m, &text), NULL, severity, NAN};
    }
    pr_buf_done(&text);
}
