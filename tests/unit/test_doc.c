/* SPDX-License-Identifier: Apache-2.0 */
/* What a document is made of: as Markdown, in which nothing of a job is markup, and as plain text.
 */
#include "report/doc.h"

#include <math.h>
#include <string.h>

#include "check.h"

static void words(struct pr_doc *d, const char *text, const char *want)
{
    pr_doc_words(d, text);
    assert_buf(&d->line, want);
}

static void test_words_are_not_markup(void **state)
{
    (void)state;
    struct pr_buf out = {0};
    struct pr_doc d = {.out = &out, .markdown = true};
    words(&d, "a_b 1.5 GiB, 96 %", "a_b 1.5 GiB, 96 %");
    words(&d, "_x_ *y* `z`", "\\_x\\_ \\*y\\* \\`z\\`");
    words(&d, "<b>&amp;[l](u)", "\\<b\\>\\&amp;\\[l\\](u)");
    words(&d, "see http://x and www.y.z", "see http\\://x and www\\.y.z");
    words(&d, "@me #12 a@b", "@\u2060me \\#\u206012 a@\u2060b");
    words(&d, "a\nb\\", "a b\\\\");
    d.markdown = false;
    words(&d, "_x_ *y* <b> @me\n", "_x_ *y* <b> @me ");
    pr_doc_done(&d);
}

static void code(struct pr_doc *d, const char *text, size_t most, const char *want)
{
    pr_doc_code(d, text, most);
    assert_buf(&d->line, want);
}

static void test_code_stays_as_it_is(void **state)
{
    (void)state;
    struct pr_buf out = {0};
    struct pr_doc d = {.out = &out, .markdown = true};
    code(&d, "a|b <c>", 0, "`a|b <c>`");
    code(&d, "x `y` ``z", 0, "``` x `y` ``z ```");
    code(&d, "abcdef", 3, "`abc\u2026`");
    code(&d, "", 0, "\u2013");
    code(&d, " \n", 0, "\u2013");
    d.markdown = false;
    code(&d, "x `y`", 0, "x `y`");
    pr_doc_done(&d);
}

static void fill(struct pr_doc *d, struct pr_doc_table *t)
{
    *t = (struct pr_doc_table){0};
    pr_doc_add_column(t, "name", true);
    pr_doc_add_column(t, "CPU time", false);
    pr_doc_code(d, "a|b", 0);
    pr_doc_cell(d, t);
    pr_doc_human(d, 12.4, UNIT_SECONDS);
    pr_doc_cell(d, t);
    pr_doc_words(d, "c|d");
    pr_doc_cell(d, t);
    pr_doc_human(d, NAN, UNIT_SECONDS);
    pr_doc_cell(d, t);
}

static void test_tables(void **state)
{
    (void)state;
    struct pr_buf out = {0};
    struct pr_doc d = {.out = &out, .markdown = true};
    struct pr_doc_table t;
    fill(&d, &t);
    pr_doc_table(&d, &t);
    assert_buf(&out, "| name   | CPU time |\n"
                     "| ------ | -------: |\n"
                     "| `a\\|b` |   12.4 s |\n"
                     "| c\\|d   |        \u2013 |\n\n");
    d.markdown = false;
    fill(&d, &t);
    pr_doc_table(&d, &t);
    assert_buf(&out, "name  CPU time\n"
                     "----  --------\n"
                     "a|b     12.4 s\n"
                     "c|d          \u2013\n\n");
    t = (struct pr_doc_table){0};
    pr_doc_add_column(&t, "name", true);
    pr_doc_table(&d, &t); /* no rows: no table */
    assert_buf(&out, "");
    pr_buf_done(&out);
    pr_doc_done(&d);
}

/* Too wide: in parts, each with the first column; no line is longer than the page. */
static void test_wide_tables_are_divided(void **state)
{
    (void)state;
    struct pr_buf out = {0};
    struct pr_doc d = {.out = &out};
    struct pr_doc_table t = {0};
    pr_doc_add_column(&t, "name", true);
    for (int i = 0; i < 12; i++)
        pr_doc_add_column(&t, "a rather long title", false);
    for (int i = 0; i < 13; i++) {
        pr_doc_words(&d, i ? "1" : "first");
        pr_doc_cell(&d, &t);
    }
    pr_doc_table(&d, &t);
    int parts = 0, ones = 0;
    for (char *line = strtok((char *)pr_buf_text(&out), "\n"); line; line = strtok(NULL, "\n")) {
        assert_true(strlen(line) <= 100);
        parts += strncmp(line, "first", 5) == 0;
        for (const char *p = line; (p = strchr(p, '1')); p++)
            ones++;
    }
    assert_int_equal(parts, 3);
    assert_int_equal(ones, 12);
    pr_buf_done(&out);
    pr_doc_done(&d);
}

static void test_blocks(void **state)
{
    (void)state;
    struct pr_buf out = {0};
    struct pr_doc d = {.out = &out, .markdown = true};
    pr_doc_words(&d, "Title");
    pr_doc_heading(&d, 2);
    pr_doc_strong(&d, "one");
    pr_doc_item(&d);
    pr_doc_words(&d, "Next");
    pr_doc_heading(&d, 3); /* a blank line before it */
    pr_doc_words(&d, "a [picture]");
    pr_doc_picture(&d, "my (files)/x.svg");
    assert_buf(&out, "## Title\n\n- **one**\n\n### Next\n\n"
                     "![a \\[picture\\]](my%20%28files%29/x.svg)\n\n");
    d.markdown = false;
    pr_doc_words(&d, "Title");
    pr_doc_heading(&d, 2);
    for (int i = 0; i < 15; i++)
        pr_doc_words(&d, "nine long ");
    pr_doc_item(&d);
    pr_doc_lines(&d, "a\n  b\n");
    const char *text = pr_buf_text(&out);
    assert_memory_equal(text, "Title\n-----\n\n- nine", 19);
    assert_non_null(strstr(text, "\n  long nine")); /* folded, behind the dash */
    assert_non_null(strstr(text, "\na\n  b\n\n"));
    pr_buf_done(&out);
    pr_doc_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_not_markup),
        cmocka_unit_test(test_code_stays_as_it_is),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_wide_tables_are_divided),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests_name("doc", tests, NULL, NULL);
}
