/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "util/text.h"

static size_t utf8(const char *text)
{
    return pr_text_utf8(text, text + strlen(text));
}

static void test_utf8(void **state)
{
    (void)state;
    assert_int_equal(utf8("a"), 1);
    assert_int_equal(utf8("\x7f"), 1);
    assert_int_equal(utf8("\xc2\x80"), 2);
    assert_int_equal(utf8("\xdf\xbf"), 2);
    assert_int_equal(utf8("\xe0\xa0\x80"), 3);
    assert_int_equal(utf8("\xed\x9f\xbf"), 3);
    assert_int_equal(utf8("\xee\x80\x80"), 3);
    assert_int_equal(utf8("\xf0\x90\x80\x80"), 4);
    assert_int_equal(utf8("\xf4\x8f\xbf\xbf"), 4);
    static const char *const broken[] = {"\x80",             /* continuation alone */
                                         "\xc0\x80",         /* overlong */
                                         "\xc1\xbf",         /* overlong */
                                         "\xe0\x9f\xbf",     /* overlong */
                                         "\xf0\x8f\xbf\xbf", /* overlong */
                                         "\xed\xa0\x80",     /* surrogate */
                                         "\xf4\x90\x80\x80", /* beyond U+10FFFF */
                                         "\xf5\x80\x80\x80",
                                         "\xff",
                                         "\xc3",
                                         "\xe2\x82",
                                         "\xf0\x9f\x98",
                                         "\xc3(",
                                         "\xe2(\x82"};
    for (size_t i = 0; i < COUNT_OF(broken); i++)
        assert_int_equal(utf8(broken[i]), 0);
}

static void test_safe(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"plain text", "plain text"},
        {"\x1b[31mred\x07", "\\x1b[31mred\\x07"},
        {"a\nb\tc\r", "a\\x0ab\\x09c\\x0d"},
        {"\x7f", "\\x7f"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m"}, /* C1: a control sequence in two bytes */
        {"\xc2\xa0", "\xc2\xa0"},
        {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"caf\xe9", "caf\\xe9"},
    };
    struct pr_buf b = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pr_text_safe(&b, cases[i].text);
        assert_buf(&b, cases[i].want);
    }
    pr_buf_done(&b);
}

static void test_csv(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"a b)", "a b)"},
        {"a,b", "\"a,b\""},
        {"say \"hi\"", "\"say \"\"hi\"\"\""},
        {"\"", "\"\"\"\""},
        {"a\nb", "a\\x0ab"},
        {"a\r\n,b", "\"a\\x0d\\x0a,b\""},
        {"\xff,", "\"\\xff,\""},
        {"\xc3\xa9", "\xc3\xa9"},
    };
    struct pr_buf b = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pr_text_csv(&b, cases[i].text);
        assert_buf(&b, cases[i].want);
    }
    pr_buf_done(&b);
}

static void test_tail(void **state)
{
    (void)state;
    static const char text[] = "/a/\u00e4\u00f6";
    assert_string_equal(pr_text_tail(text, 100), text);
    assert_string_equal(pr_text_tail(text, 7), text);
    assert_string_equal(pr_text_tail(text, 5), "/\u00e4\u00f6");
    assert_string_equal(pr_text_tail(text, 3), "\u00f6"); /* not in the middle of one */
    assert_string_equal(pr_text_tail(text, 0), "");
    assert_string_equal(pr_text_tail("\x80\x80\x80", 2), "");
}

/* One line of a document: nothing in it that cannot be seen. */
static void test_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
        size_t most;
    } cases[] = {
        {"train.py", "train.py", 0},
        {"a\nb\tc\rd", "a b c d", 0},
        {"\x1b[31mred", "\ufffd[31mred", 0},
        {"\xc2\x85x\xc2\x9f", "\ufffdx\ufffd", 0},
        {"\u202egnp.exe\u200b", "\ufffdgnp.exe\ufffd", 0},
        {"\ufeff\ufffe\uffff\u2060", "\ufffd\ufffd\ufffd\ufffd", 0},
        {"\xff\xc3", "\ufffd\ufffd", 0},
        {"\u00e4\u20ac\U0001f600", "\u00e4\u20ac\U0001f600", 3},
        {"\u00e4\u20ac\U0001f600", "\u00e4\u20ac\u2026", 2},
        {"", "", 3},
    };
    struct pr_buf b = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        pr_text_line(&b, cases[i].text, cases[i].most);
        assert_buf(&b, cases[i].want);
    }
    assert_int_equal(pr_text_length("\u00e4b\u20ac"), 3);
    pr_buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8), cmocka_unit_test(test_safe), cmocka_unit_test(test_csv),
        cmocka_unit_test(test_tail), cmocka_unit_test(test_line),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
