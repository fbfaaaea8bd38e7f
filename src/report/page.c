/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "util/text.h"

#define LABEL_WIDTH 8
#define INDENT      (2 + LABEL_WIDTH) /* of what is folded: behind the label */

void pr_page_paint(struct pr_page *p, const char *code)
{
    if (p->look.color)
        pr_buf_printf(p->out, "\033[%sm", code);
}

void pr_page_label(struct pr_page *p, const char *name)
{
    p->line = p->out->len;
    pr_buf_str(p->out, "  ");
    pr_page_paint(p, "2");
    size_t begin = p->out->len;
    pr_text_safe(p->out, name); /* it may be one that a file says */
    while (p->out->len - begin < LABEL_WIDTH && !p->out->failed)
        pr_buf_char(p->out, ' ');
    pr_page_paint(p, "0");
}

void pr_page_human(struct pr_page *p, double v, enum pr_unit unit)
{
    pr_units_human(p->out, v, unit);
}

void pr_page_bytes(struct pr_page *p, const char *before, double v, const char *behind)
{
    pr_buf_str(p->out, before);
    pr_page_human(p, v, UNIT_BYTES);
    pr_buf_str(p->out, behind);
}

/* The length of an escape sequence at text, 0 where there is none. */
static size_t escape(const char *text)
{
    if (text[0] != '\033')
        return 0;
    size_t n = strcspn(text, "m");
    return n + (text[n] == 'm');
}

/* Columns of a text on the terminal: characters, not bytes, and no colours. */
static size_t columns(const char *text, const char *end)
{
    size_t count = 0;
    while (text < end) {
        size_t n = escape(text);
        count += !n && ((unsigned char)*text & 0xc0) != 0x80;
        text += n ? n : 1;
    }
    return count;
}

const char *pr_page_memory(const struct pr_stat *metrics, bool pss)
{
    bool estimated = pss && metrics[METRIC_MEM_PSS].said.peak == MARK_ESTIMATED;
    return estimated ? " PSS (" SAID_ESTIMATED ")" : pss ? " PSS" : " RSS";
}

static size_t columns_so_far(struct pr_page *p)
{
    const char *text = pr_buf_text(p->out);
    return columns(text + p->line, text + p->out->len);
}

const char *pr_page_level(const struct pr_page *p, double share)
{
    static const char *const blocks[][2] = {{"\u2581", "_"}, {"\u2582", "."}, {"\u2583", ":"},
                                            {"\u2584", "-"}, {"\u2585", "="}, {"\u2586", "+"},
                                            {"\u2587", "*"}, {"\u2588", "#"}};
    return blocks[(int)(fmin(1, fmax(0, share)) * 7.49)][p->look.bars ? 0 : 1];
}

void pr_page_curve(struct pr_page *p, const struct pr_spark *k, const char *code)
{
    double top = 0;
    if (!p->look.bars || k->used < 3 ||
        (p->look.width && columns_so_far(p) + 2 + k->used > p->look.width))
        return;
    for (unsigned i = 0; i < k->used; i++)
        top = fmax(top, k->point[i]);
    pr_buf_str(p->out, "  ");
    pr_page_paint(p, code);
    for (unsigned i = 0; i < k->used; i++)
        pr_buf_str(p->out, pr_page_level(p, top > 0 ? k->point[i] / top : 0));
    pr_page_paint(p, "0");
}

/* Words of `text` behind each other, a new line before one that does not fit any more. */
static void fold(struct pr_page *p, const char *text)
{
    size_t at = 0;
    for (const char *word = text; *word;) {
        size_t blanks = strspn(word, " "), n = strcspn(word + blanks, " ");
        size_t wide = columns(word, word + blanks + n);
        if (at > INDENT && at + wide > p->look.width) {
            pr_buf_printf(p->out, "\n%*s", INDENT, "");
            at = INDENT;
            word += blanks;
            blanks = 0;
            wide = columns(word, word + n);
        }
        pr_buf_add(p->out, word, blanks + n);
        at += wide;
        word += blanks + n;
    }
}

void pr_page_end(struct pr_page *p)
{
    if (p->look.width > 2 * INDENT && columns_so_far(p) > p->look.width) {
        struct pr_buf line = {0};
        pr_buf_str(&line, pr_buf_text(p->out) + p->line);
        p->out->len = p->line;
        fold(p, pr_buf_text(&line));
        pr_buf_done(&line);
    }
    pr_buf_char(p->out, '\n');
    p->line = p->out->len;
}

bool pr_page_items(struct pr_page *p, const char *name, const struct pr_page_item *items,
                   size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const struct pr_stat *v = &p->s->stats.metric[items[i].id];
        double value = items[i].peak ? v->max : v->last;
        if (isnan(value))
            continue;
        if (!any)
            pr_page_label(p, name);
        else
            pr_buf_str(p->out, ", ");
        any = true;
        pr_buf_str(p->out, items[i].before);
        pr_page_human(p, value, pr_metrics[items[i].id].unit);
        pr_buf_str(p->out, items[i].behind);
    }
    return any;
}
