/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "report/model_parts.h"
#include "util/text.h"

#define WIDTH       100 /* of plain text */
#define PADDED_MOST 40  /* a longer cell of Markdown does not make its column wider */
#define JOINER      "\u2060"

void pr_doc_done(struct pr_doc *d)
{
    pr_buf_done(&d->line);
}

/* --- words -------------------------------------------------------------------------------------
 */

static bool in_word(const char *text, const char *p)
{
    return p > text && isalnum((unsigned char)p[-1]) && isalnum((unsigned char)p[1]);
}

void pr_doc_escape(struct pr_buf *out, const char *text, const char *more)
{
    for (const char *p = text; *p; p++) {
        bool link = (*p == ':' && p[1] == '/') ||
                    (*p == '.' && p >= text + 3 && strncasecmp(p - 3, "www", 3) == 0);
        if (strchr("\\`*[]<>~#$&", *p) || strchr(more, *p) || (*p == '_' && !in_word(text, p)) ||
            link)
            pr_buf_char(out, '\\');
        pr_buf_char(out, *p);
        if ((*p == '@' || *p == '#') && isalnum((unsigned char)p[1]))
            pr_buf_str(out, JOINER);
    }
}

void pr_doc_words(struct pr_doc *d, const char *text)
{
    struct pr_buf line = {0};
    pr_text_line(&line, text, 0);
    if (d->markdown)
        pr_doc_escape(&d->line, pr_buf_text(&line), "");
    else
        pr_buf_str(&d->line, pr_buf_text(&line));
    pr_buf_done(&line);
}

void pr_doc_strong(struct pr_doc *d, const char *text)
{
    pr_buf_str(&d->line, d->markdown ? "**" : "");
    pr_doc_words(d, text);
    pr_buf_str(&d->line, d->markdown ? "**" : "");
}

/* Between more backquotes than there are in it. */
static void put_code(struct pr_buf *out, const char *text)
{
    size_t longest = 0, run = 0;
    for (const char *p = text; *p; p++) {
        run = *p == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (size_t i = 0; i <= longest; i++)
        pr_buf_char(out, '`');
    pr_buf_str(out, longest ? " " : "");
    pr_buf_str(out, text);
    pr_buf_str(out, longest ? " " : "");
    for (size_t i = 0; i <= longest; i++)
        pr_buf_char(out, '`');
}

void pr_doc_code(struct pr_doc *d, const char *text, size_t most)
{
    struct pr_buf line = {0};
    pr_text_line(&line, text, most);
    const char *p = pr_buf_text(&line);
    if (!p[strspn(p, " ")])
        pr_buf_str(&d->line, d->markdown ? "\u2013" : "-");
    else if (d->markdown)
        put_code(&d->line, p);
    else
        pr_buf_str(&d->line, p);
    pr_buf_done(&line);
}

void pr_doc_human(struct pr_doc *d, double v, enum pr_unit unit)
{
    if (isnan(v))
        pr_buf_str(&d->line, "\u2013");
    else
        pr_model_human(&d->line, v, unit);
}

/* --- blocks ------------------------------------------------------------------------------------
 */

static void repeat(struct pr_buf *out, const char *text, size_t times)
{
    while (times-- > 0)
        pr_buf_str(out, text);
}

/* The line, broken at blanks where plain text would be too wide, then ended. */
static void flush(struct pr_doc *d, const char *before, const char *indent)
{
    size_t at = pr_text_length(before);
    pr_buf_str(d->out, before);
    for (const char *word = pr_buf_text(&d->line); *word;) {
        size_t blanks = strspn(word, " "), n = strcspn(word + blanks, " "), wide = blanks;
        for (size_t i = 0; i < n; i++)
            wide += ((unsigned char)word[blanks + i] & 0xc0) != 0x80;
        if (!d->markdown && at + wide > WIDTH && at > pr_text_length(indent)) {
            pr_buf_printf(d->out, "\n%s", indent);
            at = pr_text_length(indent);
            word += blanks;
            wide -= blanks;
            blanks = 0;
        }
        pr_buf_add(d->out, word, blanks + n);
        at += wide;
        word += blanks + n;
    }
    pr_buf_char(d->out, '\n');
    d->out->failed |= d->line.failed;
    pr_buf_reset(&d->line);
}

void pr_doc_heading(struct pr_doc *d, int level)
{
    if (d->out->len && d->out->data[d->out->len - 1] == '\n' && d->out->len > 1 &&
        d->out->data[d->out->len - 2] != '\n')
        pr_buf_char(d->out, '\n');
    if (d->markdown) {
        repeat(d->out, "#", (size_t)level);
        flush(d, " ", "");
    } else {
        size_t wide = pr_text_length(pr_buf_text(&d->line));
        flush(d, "", "");
        repeat(d->out, level == 1 ? "=" : "-", level == 3 ? 0 : wide < WIDTH ? wide : WIDTH);
        pr_buf_str(d->out, level == 3 ? "" : "\n");
    }
    pr_buf_char(d->out, '\n');
}

void pr_doc_paragraph(struct pr_doc *d)
{
    flush(d, "", "");
    pr_buf_char(d->out, '\n');
}

void pr_doc_item(struct pr_doc *d)
{
    flush(d, "- ", "  ");
}

void pr_doc_space(struct pr_doc *d)
{
    pr_buf_char(d->out, '\n');
}

void pr_doc_lines(struct pr_doc *d, const char *text)
{
    pr_buf_printf(d->out, d->markdown ? "```text\n%s```\n\n" : "%s\n", text);
}

/* A name of a file, as an address has it. */
static void put_address(struct pr_buf *out, const char *path)
{
    for (const char *p = path; *p; p++)
        if (isalnum((unsigned char)*p) || strchr("-._~/", *p))
            pr_buf_char(out, *p);
        else
            pr_buf_printf(out, "%%%02X", (unsigned char)*p);
}

void pr_doc_picture(struct pr_doc *d, const char *path)
{
    pr_buf_printf(d->out, "![%s](", pr_buf_text(&d->line));
    put_address(d->out, path);
    pr_buf_str(d->out, ")\n\n");
    pr_buf_reset(&d->line);
}

void pr_doc_open(struct pr_doc *d, const char *title)
{
    if (d->markdown) {
        pr_buf_printf(d->out, "<details><summary>%s</summary>\n\n", title);
    } else {
        pr_doc_words(d, title);
        pr_doc_heading(d, 2);
    }
}

void pr_doc_close(struct pr_doc *d)
{
    pr_buf_str(d->out, d->markdown ? "</details>\n\n" : "");
}

/* --- tables ------------------------------------------------------------------------------------
 */

void pr_doc_add_column(struct pr_doc_table *t, const char *title, bool words)
{
    if (t->count < DOC_COLUMNS)
        t->columns[t->count++] = (struct pr_doc_column){title, words};
}

void pr_doc_cell(struct pr_doc *d, struct pr_doc_table *t)
{
    for (const char *p = pr_buf_text(&d->line); *p; p++) {
        if (*p == '|' && d->markdown) /* it would end the cell, even within code */
            pr_buf_char(&t->text, '\\');
        pr_buf_char(&t->text, *p);
    }
    pr_buf_char(&t->text, '\0');
    t->cells++;
    d->out->failed |= d->line.failed;
    pr_buf_reset(&d->line);
}

static void put_cell(struct pr_doc *d, const struct pr_doc_table *t, const char *text,
                     size_t column, const size_t *wide)
{
    size_t length = pr_text_length(text), pad = length < wide[column] ? wide[column] - length : 0;
    if (!t->columns[column].words)
        repeat(d->out, " ", pad);
    pr_buf_str(d->out, text);
    if (t->columns[column].words)
        repeat(d->out, " ", pad);
}

static bool shown(size_t column, size_t from, size_t to)
{
    return column == 0 || (column >= from && column < to);
}

/* One row: its first column, and those of the part. */
static void put_row(struct pr_doc *d, const struct pr_doc_table *t, const char *const *cells,
                    const size_t *wide, size_t from, size_t to)
{
    pr_buf_str(d->out, d->markdown ? "| " : "");
    for (size_t i = 0; i < t->count; i++) {
        if (!shown(i, from, to))
            continue;
        if (i)
            pr_buf_str(d->out, d->markdown ? " | " : "  ");
        put_cell(d, t, cells[i], i, wide);
    }
    while (!d->markdown && d->out->len && d->out->data[d->out->len - 1] == ' ')
        d->out->len--;
    pr_buf_str(d->out, d->markdown ? " |\n" : "\n");
}

static void put_rule(struct pr_doc *d, const struct pr_doc_table *t, const size_t *wide,
                     size_t from, size_t to)
{
    pr_buf_str(d->out, d->markdown ? "|" : "");
    for (size_t i = 0; i < t->count; i++) {
        if (!shown(i, from, to))
            continue;
        if (d->markdown) {
            pr_buf_char(d->out, ' ');
            repeat(d->out, "-", wide[i] - !t->columns[i].words);
            pr_buf_str(d->out, t->columns[i].words ? " |" : ": |");
        } else {
            pr_buf_str(d->out, i ? "  " : "");
            repeat(d->out, "-", wide[i]);
        }
    }
    pr_buf_char(d->out, '\n');
}

static void put_part(struct pr_doc *d, const struct pr_doc_table *t, const size_t *wide,
                     size_t from, size_t to)
{
    const char *cells[DOC_COLUMNS], *p = t->text.data;
    for (size_t i = 0; i < t->count; i++)
        cells[i] = t->columns[i].title;
    put_row(d, t, cells, wide, from, to);
    put_rule(d, t, wide, from, to);
    for (size_t row = 0; row < t->cells / t->count; row++) {
        for (size_t i = 0; i < t->count; i++, p += strlen(p) + 1)
            cells[i] = p;
        put_row(d, t, cells, wide, from, to);
    }
    pr_buf_char(d->out, '\n');
}

void pr_doc_table(struct pr_doc *d, struct pr_doc_table *t)
{
    size_t wide[DOC_COLUMNS], column = 0;
    const char *p = t->text.data;
    for (size_t i = 0; i < t->count; i++)
        wide[i] = pr_text_length(t->columns[i].title) < 3 ? 3 : pr_text_length(t->columns[i].title);
    for (size_t i = 0; i < t->cells && !t->text.failed; i++, p += strlen(p) + 1) {
        size_t length = pr_text_length(p);
        if (d->markdown && length > PADDED_MOST)
            length = PADDED_MOST;
        column = i % t->count;
        wide[column] = length > wide[column] ? length : wide[column];
    }
    for (size_t from = t->count > 1, to; !t->text.failed && t->cells; from = to) {
        size_t all = wide[0];
        for (to = from; to < t->count && (d->markdown || to == from || all + 2 + wide[to] <= WIDTH);
             to++)
            all += 2 + wide[to];
        put_part(d, t, wide, from, to);
        if (to >= t->count)
            break;
    }
    d->out->failed |= t->text.failed;
    pr_buf_done(&t->text);
}
