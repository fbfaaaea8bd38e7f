/* SPDX-License-Identifier: Apache-2.0 */
/* What stands first in a document: verdict, findings, figures, the picture; then all the rest. */
#include "report/document.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "report/document_parts.h"
#include "report/model_parts.h"
#include "report/svg.h"
#include "report/text_chart.h"

#define COUNT(list) (sizeof list / sizeof *list)

void pr_document_where(const struct pr_model *m, struct pr_buf *out)
{
    time_t began = (time_t)m->began;
    struct tm parts;
    char text[64] = "";
    if (!isnan(m->duration)) {
        pr_model_human(out, m->duration, UNIT_SECONDS);
        pr_buf_str(out, ", ");
    }
    if (m->host && *m->host)
        pr_buf_printf(out, "%s, ", m->host);
    if (gmtime_r(&began, &parts))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
    pr_buf_str(out, text);
}

void pr_document_file(struct pr_buf *out, size_t run, size_t count, int plot)
{
    if (count > 1)
        pr_buf_printf(out, "%zu_", run + 1);
    pr_buf_str(out, plot < 0 ? "overview" : pr_name_plots[plot].file);
}

void pr_document_picture(struct pr_doc *d, const struct pr_pictures *p, int plot)
{
    struct pr_buf path = {0};
    pr_buf_printf(&path, "%s/", p->files);
    pr_document_file(&path, p->run, p->runs, plot);
    pr_buf_str(&path, p->ending);
    pr_doc_picture(d, pr_buf_text(&path));
    pr_buf_done(&path);
}

/* --- the head ----------------------------------------------------------------------------------
 */

static void head(struct pr_doc *d, const struct pr_model *m)
{
    static const char *const words[] = {[SEVERITY_GOOD] = "Good",
                                        [SEVERITY_NOTE] = "Note",
                                        [SEVERITY_WARN] = "Warning",
                                        [SEVERITY_BAD] = "Trouble"};
    struct pr_buf where = {0};
    pr_doc_code(d, m->command, 0);
    pr_doc_heading(d, 1);
    pr_doc_strong(d, m->verdict);
    pr_document_where(m, &where);
    pr_doc_words(d, where.len ? ": " : "");
    pr_doc_words(d, pr_buf_text(&where));
    pr_doc_paragraph(d);
    for (size_t i = 0; i < m->findings.count; i++) {
        const struct pr_model_finding *f = &m->findings.items[i];
        pr_doc_strong(d, words[f->severity]);
        pr_doc_words(d, ": ");
        pr_doc_words(d, f->text);
        pr_doc_words(d, f->more ? " " : "");
        pr_doc_words(d, f->more ? f->more : "");
        pr_doc_item(d);
    }
    if (m->findings.count)
        pr_doc_space(d);
    pr_buf_done(&where);
}

/* --- figures -----------------------------------------------------------------------------------
 */

/* What is in the table, and what it is called. */
static const struct {
    enum pr_group group;
    const char *title, *behind; /* with the label of the series between them, or NULL without */
    enum pr_unit total;         /* of its integral; UNIT_COUNT: it has none */
} figures[] = {
    {GROUP_CPU, "CPU", NULL, UNIT_SECONDS},
    {GROUP_CPU_MACHINE, "CPU, whole machine", NULL, UNIT_COUNT},
    {GROUP_MEMORY, "memory, ", "", UNIT_COUNT},
    {GROUP_RSS, "memory, ", "", UNIT_COUNT},
    {GROUP_USS, "memory, ", "", UNIT_COUNT},
    {GROUP_GPU_UTIL, "", " busy", UNIT_COUNT},
    {GROUP_GPU_MEMORY, "", "", UNIT_COUNT},
    {GROUP_READ, "disk read", NULL, UNIT_BYTES},
    {GROUP_WRITE, "disk written", NULL, UNIT_BYTES},
    {GROUP_RECEIVE, "network received", NULL, UNIT_BYTES},
    {GROUP_SEND, "network sent", NULL, UNIT_BYTES},
    {GROUP_POWER, "power, ", "", UNIT_JOULES},
    {GROUP_PROCESSES, "processes", NULL, UNIT_COUNT},
};

static void figure_row(struct pr_doc *d, struct pr_doc_table *t, const struct pr_model_series *s,
                       size_t i)
{
    const struct pr_figures *f = &s->stats;
    pr_doc_words(d, figures[i].title);
    if (figures[i].behind) {
        pr_doc_words(d, s->label);
        pr_doc_words(d, figures[i].behind);
    }
    if (s->mark) {
        pr_doc_words(d, " (");
        pr_doc_words(d, s->mark);
        pr_doc_words(d, ")");
    }
    pr_doc_cell(d, t);
    pr_doc_human(d, f->mean, s->unit);
    pr_doc_cell(d, t);
    pr_doc_human(d, f->max, s->unit);
    pr_doc_cell(d, t);
    pr_doc_human(d, f->at, UNIT_SECONDS);
    pr_doc_cell(d, t);
    pr_doc_words(d, s->limit.text ? s->limit.text : s->host.text ? s->host.text : "");
    pr_doc_cell(d, t);
    if (figures[i].total != UNIT_COUNT)
        pr_doc_human(d, f->total, figures[i].total);
    pr_doc_cell(d, t);
}

static void figure_table(struct pr_doc *d, const struct pr_model *m)
{
    static const char *const titles[] = {"metric", "mean", "peak", "at", "limit", "total"};
    struct pr_doc_table t = {0};
    for (size_t i = 0; i < COUNT(titles); i++)
        pr_doc_add_column(&t, titles[i], i == 0 || i == 4);
    for (size_t i = 0; i < COUNT(figures); i++)
        for (size_t k = 0; k < m->series.count; k++)
            if (m->series.items[k].group == figures[i].group)
                figure_row(d, &t, &m->series.items[k], i);
    if (!t.cells) {
        pr_doc_words(d, "Nothing was measured: there is no sample in the record.");
        pr_doc_paragraph(d);
    }
    pr_doc_table(d, &t);
}

/* Who does not see the picture finds its figures in the table before it. */
static void overview(struct pr_doc *d, const struct pr_model *m, const struct pr_pictures *p)
{
    if (p->files) {
        size_t count = 0;
        for (size_t i = 0; i < pr_chart_count; i++)
            if (strcmp(pr_charts[i].place, "first") == 0) {
                pr_doc_words(d, count++ ? "; " : "");
                pr_doc_words(d, pr_charts[i].title);
            }
        pr_doc_words(d, " over time: the table above has the figures");
        pr_document_picture(d, p, -1);
        return;
    }
    struct pr_buf lines = {0};
    pr_text_charts(&lines, m);
    if (lines.len)
        pr_doc_lines(d, pr_buf_text(&lines));
    d->out->failed |= lines.failed;
    pr_buf_done(&lines);
}

/* --- all of it ---------------------------------------------------------------------------------
 */

int pr_document(struct pr_buf *out, enum pr_document_form form, const struct pr_model *const *runs,
                const struct pr_by_name *names, size_t count, const char *files, const char *ending,
                struct proctor_error *err)
{
    struct pr_doc d = {.out = out, .markdown = form != DOCUMENT_TEXT};
    for (size_t i = 0; i < count; i++) {
        const struct pr_pictures pictures = {files, ending, i, count};
        head(&d, runs[i]);
        figure_table(&d, runs[i]);
        overview(&d, runs[i], &pictures);
        pr_document_phases(&d, runs[i]);
        if (names)
            pr_document_names(&d, &names[i], &pictures);
        pr_document_tables(&d, runs[i]);
    }
    pr_doc_done(&d);
    return out->failed ? pr_error(err, ENOMEM, "out of memory") : 0;
}
