/* SPDX-License-Identifier: Apache-2.0 */
/* What each name used: a table, the total footprint, six plots. */
#include <math.h>

#include "report/document_parts.h"
#include "report/model_parts.h"
#include "report/svg.h"

#define COUNT(list)  (sizeof list / sizeof *list)
#define NAME_LETTERS 40

static const struct {
    const char *title;
    enum pr_unit unit;
} columns[] = {
    {"processes", UNIT_COUNT},         {"samples", UNIT_COUNT},
    {"peak USS of one", UNIT_BYTES},   {"peak USS together", UNIT_BYTES},
    {"peak RSS together", UNIT_BYTES}, {"peak PSS together", UNIT_BYTES},
    {"peak CPU of one", UNIT_CORES},   {"CPU user", UNIT_SECONDS},
    {"CPU system", UNIT_SECONDS},      {"CPU time", UNIT_SECONDS},
    {"mean USS of one", UNIT_BYTES},   {"mean CPU of one", UNIT_CORES},
    {"seen for", UNIT_SECONDS},
};

static void table(struct pr_doc *d, const struct pr_by_name *n)
{
    struct pr_doc_table t = {0};
    pr_doc_add_column(&t, "name", true);
    for (size_t i = 0; i < COUNT(columns); i++)
        pr_doc_add_column(&t, columns[i].title, false);
    for (size_t k = 0; k < n->count; k++) {
        const struct pr_name_use *u = &n->items[k];
        const double values[COUNT(columns)] = {(double)u->instances,
                                               (double)u->samples,
                                               u->one_uss,
                                               u->uss,
                                               u->rss,
                                               u->pss,
                                               u->one_cpu,
                                               u->user,
                                               u->system,
                                               u->time,
                                               u->mean_uss,
                                               u->mean_cpu,
                                               u->last - u->first};
        pr_doc_code(d, u->name, NAME_LETTERS);
        pr_doc_cell(d, &t);
        for (size_t i = 0; i < COUNT(columns); i++) {
            pr_doc_human(d, values[i], columns[i].unit);
            pr_doc_cell(d, &t);
        }
    }
    pr_doc_table(d, &t);
}

static void total(struct pr_doc *d, const struct pr_by_name *n)
{
    struct pr_buf text = {0};
    if (isnan(n->peak)) {
        pr_buf_printf(&text, "The peak of the total USS is not known: %s.", n->absent);
    } else {
        pr_buf_str(&text, "Peak total USS: ");
        pr_model_human(&text, n->peak, UNIT_BYTES);
        pr_buf_str(&text, " at ");
        pr_model_human(&text, n->at, UNIT_SECONDS);
        if (n->memory > 0) {
            pr_buf_str(&text, ", ");
            pr_model_human(&text, n->peak / n->memory, UNIT_RATIO);
            pr_buf_str(&text, " of system memory (");
            pr_model_human(&text, n->memory, UNIT_BYTES);
            pr_buf_char(&text, ')');
        }
        pr_buf_char(&text, '.');
    }
    pr_doc_words(d, pr_buf_text(&text));
    pr_doc_paragraph(d);
    pr_buf_done(&text);
}

static void plots(struct pr_doc *d, const struct pr_by_name *n, const struct pr_pictures *p)
{
    for (int i = 0; i < NAME_PLOTS; i++) {
        const char *absent = pr_svg_name_absent(n, i);
        pr_doc_words(d, pr_name_plots[i].title);
        pr_doc_heading(d, 3);
        if (absent) {
            pr_doc_words(d, "There is no plot: ");
            pr_doc_words(d, absent);
            pr_doc_words(d, ".");
            pr_doc_paragraph(d);
            continue;
        }
        pr_doc_words(d, pr_name_plots[i].note);
        pr_doc_paragraph(d);
        pr_doc_words(d, pr_name_plots[i].title);
        pr_document_picture(d, p, i);
    }
}

void pr_document_names(struct pr_doc *d, const struct pr_by_name *n, const struct pr_pictures *p)
{
    if (!n->count)
        return;
    pr_doc_words(d, n->rules ? "Processes by --match" : "Processes by command");
    pr_doc_heading(d, 2);
    total(d, n);
    table(d, n);
    pr_doc_words(d,
                 "USS is memory that a process shares with nobody: what would be free if it ended. "
                 "RSS counts shared pages once for each process. Figures are of samples: what a "
                 "process used after its last one is in the total of the job alone.");
    pr_doc_paragraph(d);
    if (p->files)
        plots(d, n, p);
}
