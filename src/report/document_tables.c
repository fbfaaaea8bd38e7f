/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a document: phases, devices, names, processes, events, and how it was measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/document_parts.h"
#include "report/model_parts.h"

#define COUNT(list)    (sizeof list / sizeof *list)
#define PHASES_MOST    50
#define PROCESSES_MOST 25
#define EVENTS_MOST    50
#define NAME_LETTERS   40
#define CALLED_LETTERS 60
#define CALLED_IN_TEXT 22

/* --- phases ------------------------------------------------------------------------------------
 */

double pr_document_value(const struct pr_model *m, const struct pr_value_of *v,
                         const struct pr_figures *all, size_t stride)
{
    double value = NAN;
    size_t count = 0;
    for (size_t i = 0; i < m->series.count; i++) {
        const struct pr_figures *f = (const struct pr_figures *)((const char *)all + i * stride);
        double one = v->stat == FIGURE_MEAN  ? f->mean
                     : v->stat == FIGURE_MAX ? f->max
                     : v->stat == FIGURE_MIN ? f->min
                                             : f->total;
        if (m->series.items[i].group != v->group || isnan(one))
            continue;
        count++;
        value = count == 1              ? one
                : v->stat == FIGURE_MAX ? fmax(value, one)
                : v->stat == FIGURE_MIN ? fmin(value, one)
                                        : value + one;
    }
    return v->stat == FIGURE_MEAN && count ? value / (double)count : value;
}

static void phase_row(struct pr_doc *d, struct pr_doc_table *t, const struct pr_model *m,
                      const struct pr_model_phase *p)
{
    for (int i = 0; i < p->level && i < 8; i++)
        pr_buf_str(&d->line, d->markdown ? "&nbsp; " : "  ");
    pr_doc_code(d, p->name, NAME_LETTERS);
    if (p->count > 1) {
        struct pr_buf times = {0};
        pr_buf_printf(&times, " (%d times)", p->count);
        pr_doc_words(d, pr_buf_text(&times));
        pr_buf_done(&times);
    }
    pr_doc_cell(d, t);
    pr_doc_human(d, p->begin, UNIT_SECONDS);
    pr_doc_cell(d, t);
    pr_doc_human(d, p->end - p->begin, UNIT_SECONDS);
    pr_doc_cell(d, t);
    for (size_t i = 0; i < pr_phase_column_count; i++) {
        const struct pr_value_of *v = &pr_phase_columns[i].value;
        if (!pr_model_find(m, v->group))
            continue;
        pr_doc_human(d, p->stats ? pr_document_value(m, v, p->stats, sizeof *p->stats) : NAN,
                     v->unit);
        pr_doc_cell(d, t);
    }
}

/* "and 12 more", where not all are shown. */
static void more(struct pr_doc *d, size_t shown, size_t all, const char *what)
{
    struct pr_buf text = {0};
    if (shown < all) {
        pr_buf_printf(&text, "These are %zu of %zu %s; all are in the record.", shown, all, what);
        pr_doc_words(d, pr_buf_text(&text));
        pr_doc_paragraph(d);
    }
    pr_buf_done(&text);
}

void pr_document_phases(struct pr_doc *d, const struct pr_model *m)
{
    struct pr_doc_table t = {0};
    size_t count = m->phases.count < PHASES_MOST ? m->phases.count : PHASES_MOST;
    if (!count)
        return;
    pr_doc_words(d, "Phases");
    pr_doc_heading(d, 2);
    pr_doc_add_column(&t, "phase", true);
    pr_doc_add_column(&t, "begins at", false);
    pr_doc_add_column(&t, "time", false);
    for (size_t i = 0; i < pr_phase_column_count; i++)
        if (pr_model_find(m, pr_phase_columns[i].value.group))
            pr_doc_add_column(&t, pr_phase_columns[i].title, false);
    for (size_t i = 0; i < count; i++)
        phase_row(d, &t, m, &m->phases.items[i]);
    pr_doc_table(d, &t);
    more(d, count, m->phases.count, "phases");
}

/* --- names and devices -------------------------------------------------------------------------
 */

static void rows(struct pr_doc *d, const struct pr_model *m, const char *title,
                 const struct pr_model_column *columns, size_t count,
                 const struct pr_model_row *list, size_t row_count)
{
    struct pr_doc_table t = {0};
    if (!row_count)
        return;
    pr_doc_words(d, title);
    pr_doc_heading(d, 2);
    for (size_t i = 0; i < count; i++)
        pr_doc_add_column(&t, pr_column_title(m, &columns[i]), columns[i].words);
    for (size_t k = 0; k < row_count; k++) {
        size_t words = 0, numbers = 0;
        for (size_t i = 0; i < count; i++) {
            if (columns[i].words)
                pr_doc_code(d, list[k].text[words++], NAME_LETTERS);
            else
                pr_doc_human(d, list[k].value[numbers++], columns[i].unit);
            pr_doc_cell(d, &t);
        }
    }
    pr_doc_table(d, &t);
}

/* --- processes ---------------------------------------------------------------------------------
 */

static int more_cpu_first(const void *a, const void *b)
{
    const struct pr_model_process *x = *(const struct pr_model_process *const *)a,
                                  *y = *(const struct pr_model_process *const *)b;
    double i = pr_value_known(x->cpu), k = pr_value_known(y->cpu);
    return i != k ? (i < k ? 1 : -1) : x->pid - y->pid;
}

/* What it was called with, without the folder of its program; plain text has little room. */
static void called(struct pr_doc *d, const struct pr_model_process *p)
{
    const char *text = p->command ? p->command : p->name,
               *slash = memrchr(text, '/', strcspn(text, " "));
    pr_doc_code(d, slash && slash[1] && slash[1] != ' ' ? slash + 1 : text,
                d->markdown ? CALLED_LETTERS : CALLED_IN_TEXT);
}

static void process_row(struct pr_doc *d, struct pr_doc_table *t, const struct pr_model_process *p)
{
    const struct {
        double value;
        enum pr_unit unit;
    } cells[] = {{p->cpu, UNIT_SECONDS},   {p->peak, UNIT_BYTES},
                 {p->read, UNIT_BYTES},    {p->written, UNIT_BYTES},
                 {p->begin, UNIT_SECONDS}, {p->end - p->begin, UNIT_SECONDS}};
    called(d, p);
    pr_doc_cell(d, t);
    pr_doc_human(d, p->pid, UNIT_COUNT);
    pr_doc_cell(d, t);
    for (size_t i = 0; i < COUNT(cells); i++) {
        pr_doc_human(d, cells[i].value, cells[i].unit);
        pr_doc_cell(d, t);
    }
    pr_doc_words(d, p->exit ? p->exit : isnan(p->end) ? "still there" : "");
    pr_doc_cell(d, t);
}

static void processes(struct pr_doc *d, const struct pr_model *m)
{
    static const char *const titles[] = {"process", "pid",       "CPU time", "peak RSS", "read",
                                         "written", "begins at", "time",     "end"};
    const struct pr_model_process *list[MODEL_PROCESSES];
    struct pr_doc_table t = {0};
    size_t count = m->processes.count;
    if (!count)
        return;
    for (size_t i = 0; i < count; i++)
        list[i] = &m->processes.items[i];
    qsort(list, count, sizeof *list, more_cpu_first);
    pr_doc_open(d, "Processes with the most CPU time");
    for (size_t i = 0; i < COUNT(titles); i++)
        pr_doc_add_column(&t, titles[i], i == 0 || i + 1 == COUNT(titles));
    count = count < PROCESSES_MOST ? count : PROCESSES_MOST;
    for (size_t i = 0; i < count; i++)
        process_row(d, &t, list[i]);
    pr_doc_table(d, &t);
    more(d, count, m->seen >= (double)count ? (size_t)m->seen : count, "processes");
    pr_doc_close(d);
}

/* --- words -------------------------------------------------------------------------------------
 */

static void events(struct pr_doc *d, const struct pr_model *m)
{
    struct pr_doc_table t = {0};
    size_t count = 0, notes = 0;
    if (!m->events.count)
        return;
    pr_doc_open(d, "Events");
    pr_doc_add_column(&t, "at", false);
    pr_doc_add_column(&t, "kind", true);
    pr_doc_add_column(&t, "what", true);
    for (size_t i = 0; i < m->events.count; i++) {
        const struct pr_model_event *e = &m->events.items[i];
        if (e->severity <= SEVERITY_NOTE && notes++ >= EVENTS_MOST) /* trouble is all there */
            continue;
        count++;
        pr_doc_human(d, e->at, UNIT_SECONDS);
        pr_doc_cell(d, &t);
        pr_doc_words(d, e->kind);
        pr_doc_cell(d, &t);
        pr_doc_code(d, e->text, 200);
        pr_doc_cell(d, &t);
    }
    pr_doc_table(d, &t);
    more(d, count, m->happened, "events");
    pr_doc_close(d);
}

static void pairs(struct pr_doc *d, const char *title, const struct pr_model_pairs *list, bool code)
{
    if (!list->count)
        return;
    pr_doc_open(d, title);
    for (size_t i = 0; i < list->count; i++) {
        const struct pr_model_words *w = &list->items[i];
        if (w->title) {
            pr_doc_words(d, w->title);
            pr_doc_heading(d, 3);
        }
        pr_doc_strong(d, w->what);
        pr_doc_words(d, ": ");
        if (code)
            pr_doc_code(d, w->words, 2000);
        else
            pr_doc_words(d, w->words);
        pr_doc_item(d);
    }
    pr_doc_space(d);
    pr_doc_close(d);
}

void pr_document_tables(struct pr_doc *d, const struct pr_model *m)
{
    rows(d, m, "Nodes", pr_node_columns, pr_node_column_count, m->nodes.items, m->nodes.count);
    rows(d, m, "Devices", pr_device_columns, pr_device_column_count, m->devices.items,
         m->devices.count);
    if (!d->markdown) /* Markdown has more of them already */
        rows(d, m, "Names", pr_match_columns, pr_match_column_count, m->matches.items,
             m->matches.count);
    processes(d, m);
    events(d, m);
    pairs(d, "How it was measured", &m->measured, false);
    pairs(d, "The run", &m->facts, true);
}
