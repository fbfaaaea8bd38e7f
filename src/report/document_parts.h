/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a document, in their order. */
#pragma once
#include "report/by_name.h"
#include "report/doc.h"
#include "report/document.h"

/* Where the pictures of a run are. */
struct pr_pictures {
    const char *files, *ending; /* files NULL: there are none */
    size_t run, runs;
};

/* The sum of series of a group, as doc/report-model.md has it; figures are those of the run or of a
 * phase, one for each series of the model. NaN for unknown. */
struct pr_value_of;
double pr_document_value(const struct pr_model *m, const struct pr_value_of *v,
                         const struct pr_figures *figures, size_t stride);
void pr_document_phases(struct pr_doc *d, const struct pr_model *m);
void pr_document_tables(struct pr_doc *d, const struct pr_model *m);
void pr_document_names(struct pr_doc *d, const struct pr_by_name *n, const struct pr_pictures *p);
/* A picture of the run; the line says what is on it. */
void pr_document_picture(struct pr_doc *d, const struct pr_pictures *p, int plot);
