/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "util/scan.h"

static struct pr_scan of(const char *text)
{
    return pr_scan_of(text, strlen(text));
}

static void test_u64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        uint64_t value;
        const char *rest;
    } cases[] = {
        {"0", true, 0, ""},
        {"42 rest", true, 42, " rest"},
        {" \t7\n", true, 7, "\n"},
        {"007", true, 7, ""},
        {"18446744073709551615", true, UINT64_MAX, ""},
        {"18446744073709551616", true, UINT64_MAX, ""},
        {"99999999999999999999999999 1", true, UINT64_MAX, " 1"},
        {"", false, 0, ""},
        {"   ", false, 0, ""},
        {"  -1", false, 0, "-1"},
        {"x1", false, 0, "x1"},
        {"\n1", false, 0, "\n1"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pr_scan s = of(cases[i].text);
        uint64_t v = 77;
        assert_int_equal(pr_scan_u64(&s, &v), cases[i].good);
        assert_true(v == (cases[i].good ? cases[i].value : 77));
        assert_string_equal(s.p, cases[i].rest);
    }
}

static void test_i64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {
        {"-1", true, -1},
        {"  -20 ", true, -20},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", true, INT64_MAX},
        {"-9223372036854775808", true, -INT64_MAX},
        {"-", false, 0},
        {"- 1", false, 0},
        {"--1", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pr_scan s = of(cases[i].text);
        int64_t v = 77;
        assert_int_equal(pr_scan_i64(&s, &v), cases[i].good);
        assert_true(v == (cases[i].good ? cases[i].value : 77));
    }
}

/* The text behind the end is never looked at: kernel texts are not NUL-terminated everywhere. */
static void test_never_past_the_end(void **state)
{
    (void)state;
    const char text[] = "12345";
    struct pr_scan s = pr_scan_of(text, 2), w;
    uint64_t v;
    assert_true(pr_scan_u64(&s, &v));
    assert_int_equal(v, 12);
    s = pr_scan_of(text, 3);
    assert_true(pr_scan_word(&s, &w));
    assert_int_equal(w.end - w.p, 3);
    s = pr_scan_of(text, 3);
    assert_false(pr_scan_prefix(&s, "1234"));
    assert_true(pr_scan_equals(s, "123"));
    assert_false(pr_scan_equals(s, "12"));
}

static void test_words_end_with_the_line(void **state)
{
    (void)state;
    struct pr_scan s = of(" a\tbc  d\ne"), w;
    const char *const want[] = {"a", "bc", "d"};
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        assert_true(pr_scan_word(&s, &w));
        assert_true(pr_scan_equals(w, want[i]));
    }
    assert_false(pr_scan_word(&s, &w));
    assert_int_equal(*s.p, '\n');
}

static void test_lines(void **state)
{
    (void)state;
    struct pr_scan s = of("one\n\ntwo"), line;
    assert_true(pr_scan_line(&s, &line));
    assert_true(pr_scan_equals(line, "one"));
    assert_true(pr_scan_line(&s, &line));
    assert_true(line.p == line.end);
    assert_true(pr_scan_line(&s, &line));
    assert_true(pr_scan_equals(line, "two"));
    assert_false(pr_scan_line(&s, &line));
    s = of("");
    assert_false(pr_scan_line(&s, &line));
    s = of("a\n");
    assert_true(pr_scan_line(&s, &line));
    assert_false(pr_scan_line(&s, &line));
}

static const struct pr_scan_row rows[] = {
    {"A:", 0, 1}, {"Private_Clean:", 1, 1024}, {"Private_Dirty:", 1, 1024}, {"Z:", 2, 1}};

static void scan(const char *text, double *values)
{
    for (int i = 0; i < 3; i++)
        values[i] = -1;
    pr_scan_keyed(text, strlen(text), rows, COUNT_OF(rows), values);
}

static void test_keyed(void **state)
{
    (void)state;
    double v[3];
    scan("A:\t 5\nAA: 6\nB: 7\nPrivate_Clean: 2 kB\nPrivate_Dirty: 3 kB\n", v);
    assert_exactly(v[0], 5);
    assert_exactly(v[1], 5 * 1024);
    assert_exactly(v[2], -1); /* no line: untouched */
    /* A second text starts anew: it does not add to the first. */
    pr_scan_keyed("Private_Dirty: 1", 16, rows, COUNT_OF(rows), v);
    assert_exactly(v[1], 1024);
}

static void test_keyed_takes_what_is_whole(void **state)
{
    (void)state;
    double v[3];
    scan("", v);
    assert_exactly(v[0], -1);
    scan("A:", v);
    assert_exactly(v[0], -1);
    scan("A: many\nZ: 9", v);
    assert_exactly(v[0], -1);
    assert_exactly(v[2], 9);
    scan(" A: 5\nxA: 6\n", v);
    assert_exactly(v[0], -1);
    scan("A: 18446744073709551615\n", v);
    assert_exactly(v[0], 18446744073709551615.0);
}

static double fraction_of(const char *text)
{
    struct pr_scan s = pr_scan_of(text, strlen(text));
    double v;
    return pr_scan_fraction(&s, &v) ? v : NAN;
}

static void test_fraction(void **state)
{
    (void)state;
    assert_exactly(fraction_of("5"), 0.5);
    assert_exactly(fraction_of("25s"), 0.25);
    assert_exactly(fraction_of("007"), 0.007);
    assert_exactly(fraction_of("000000000000000001"), 1e-18);
    assert_absent(fraction_of("0000000000000000001"));
    assert_absent(fraction_of(""));
    assert_absent(fraction_of(" 5"));
    assert_absent(fraction_of("-5"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u64),
        cmocka_unit_test(test_i64),
        cmocka_unit_test(test_never_past_the_end),
        cmocka_unit_test(test_words_end_with_the_line),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_keyed),
        cmocka_unit_test(test_keyed_takes_what_is_whole),
        cmocka_unit_test(test_fraction),
    };
    return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
