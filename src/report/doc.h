/* SPDX-License-Identifier: Apache-2.0 */
/* Writes what a document is made of, as Markdown or as plain text. Words come into a line first,
 * which then becomes a paragraph, an item of a list or a cell of a table. */
#pragma once
#include <stddef.h>

#include "util/buf.h"
#include "util/units.h"

#define DOC_COLUMNS 20

struct pr_doc {
    struct pr_buf *out, line;
    bool markdown;
};
struct pr_doc_column {
    const char *title;
    bool words; /* else figures, which stand at the right */
};
struct pr_doc_table {
    struct pr_doc_column columns[DOC_COLUMNS];
    size_t count, cells;
    struct pr_buf text; /* of cells, each with a NUL */
};

void pr_doc_done(struct pr_doc *d);

/* What a reader of Markdown would take for markup, a link, or somebody to be called is only signs;
 * so are those in more. */
void pr_doc_escape(struct pr_buf *out, const char *text, const char *more);

/* --- into the line ------------------------------------------------------------------------------
 */

/* Our own words, in which there may be some of a job: nothing in them is markup. */
void pr_doc_words(struct pr_doc *d, const char *text);
void pr_doc_strong(struct pr_doc *d, const char *text);
/* A text of a job, as it is, on one line. most: characters, 0 for all. */
void pr_doc_code(struct pr_doc *d, const char *text, size_t most);
/* A figure with its unit; a dash for what is not known. */
void pr_doc_human(struct pr_doc *d, double v, enum pr_unit unit);

/* --- what becomes of it -------------------------------------------------------------------------
 */

/* level 1 is the largest. */
void pr_doc_heading(struct pr_doc *d, int level);
void pr_doc_paragraph(struct pr_doc *d);
void pr_doc_item(struct pr_doc *d);
/* Behind the last item. */
void pr_doc_space(struct pr_doc *d);
/* Lines as they are, in letters of one width. */
void pr_doc_lines(struct pr_doc *d, const char *text);
/* A picture; the line says what is on it. */
void pr_doc_picture(struct pr_doc *d, const char *path);
/* What need not be seen at once: opened by its title. */
void pr_doc_open(struct pr_doc *d, const char *title);
void pr_doc_close(struct pr_doc *d);

void pr_doc_add_column(struct pr_doc_table *t, const char *title, bool words);
/* The line is its next cell, row by row. */
void pr_doc_cell(struct pr_doc *d, struct pr_doc_table *t);
/* Writes the table and ends it. In plain text one that is too wide becomes several, each with the
 * first column. */
void pr_doc_table(struct pr_doc *d, struct pr_doc_table *t);
