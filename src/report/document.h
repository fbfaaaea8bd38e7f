/* SPDX-License-Identifier: Apache-2.0 */
/* A report as a document to be read: Markdown or plain text, of the same parts in the same words.
 */
#pragma once
#include "report/by_name.h"
#include "report/model.h"

enum pr_document_form {
    DOCUMENT_TEXT,
    DOCUMENT_MARKDOWN,
    DOCUMENT_ALONE, /* Markdown without files beside it: curves are drawn with letters */
};

/* names: one for each run in Markdown, else NULL. files: where pictures are, relative to the
 * document, and how their names end; NULL where there are none. */
int pr_document(struct pr_buf *out, enum pr_document_form form, const struct pr_model *const *runs,
                const struct pr_by_name *names, size_t count, const char *files, const char *ending,
                struct proctor_error *err);
/* What the picture of a run is called, without its ending: plot -1 is the overview. */
void pr_document_file(struct pr_buf *out, size_t run, size_t count, int plot);
/* "1 h 12 m 04 s, node17, 64 cores, 2026-09-20 14:02 UTC". */
void pr_document_where(const struct pr_model *m, struct pr_buf *out);
