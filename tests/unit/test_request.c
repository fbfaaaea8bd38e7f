/* SPDX-License-Identifier: Apache-2.0 */
/* What may come over the socket, the JSON in it, and the ring that it goes on through. */
#include "check.h"
#include "core/notes.h"
#include "core/request.h"
#include "util/json_check.h"

static void test_lines(void **state)
{
    (void)state;
    struct pr_request r;
    static const struct {
        const char *line, *name, *data;
        int verb;
    } rows[] = {
        {"begin a", "a", "", REQUEST_BEGIN},
        {"end  two  blanks ", " two  blanks ", "", REQUEST_END},
        {"during \xc3\xa9", "\xc3\xa9", "", REQUEST_DURING},
        {"mark m", "m", "", REQUEST_MARK},
        {"mark m\t{\"a\":1}", "m", "{\"a\":1}", REQUEST_MARK},
        {"mark m\t{\t}", "m", "{ }", REQUEST_MARK},
    };
    static const char *const bad[] = {
        "",         "begin",      "begin ",    "Begin a",   " begin a", "begin\ta",   "begin a\t{}",
        "mark m\t", "mark m\t[]", "mark m\t{", "mark \t{}", "beginn a", "mark m\x01", "end \x7f"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_true(pr_request_parse(&r, rows[i].line, strlen(rows[i].line)));
        assert_int_equal(r.verb, rows[i].verb);
        assert_string_equal(r.name, rows[i].name);
        assert_string_equal(r.data, rows[i].data);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (pr_request_parse(&r, bad[i], strlen(bad[i])))
            fail_msg("'%s' is taken", bad[i]);
    assert_false(pr_request_parse(&r, "mark a\0b", 8));
}

static void test_lengths(void **state)
{
    (void)state;
    struct pr_request r;
    char name[REQUEST_NAME + 2], data[REQUEST_LINE + 1];
    memset(name, 'n', sizeof name);
    name[REQUEST_NAME] = '\0';
    assert_true(pr_request_make(&r, REQUEST_BEGIN, name, NULL));
    name[REQUEST_NAME] = 'n';
    name[REQUEST_NAME + 1] = '\0';
    assert_false(pr_request_make(&r, REQUEST_BEGIN, name, NULL));
    memset(data, ' ', sizeof data);
    data[0] = '{';
    data[REQUEST_LINE - 2] = '}';
    data[REQUEST_LINE - 1] = '\0';
    assert_true(pr_request_make(&r, REQUEST_MARK, "m", data));
    data[REQUEST_LINE - 1] = ' ';
    data[REQUEST_LINE] = '\0';
    assert_false(pr_request_make(&r, REQUEST_MARK, "m", data));
    assert_true(pr_request_make(&r, REQUEST_MARK, "m", "{\n\"a\": 1\r\n}"));
    assert_string_equal(r.data, "{ \"a\": 1  }");
}

static void test_json(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{}", " {\"a\" : [1, -2.5e+3, {}, [], \"\\u00e9\\n\"], \"\":null} ", "{\"\xc3\xa9\":true}"};
    static const char *const bad[] = {"",
                                      "[]",
                                      "{",
                                      "{}x",
                                      "{\"a\"}",
                                      "{a:1}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{\"a\":01}",
                                      "{\"a\":1.}",
                                      "{\"a\":+1}",
                                      "{\"a\":\"\n\"}",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":\"\\u12\"}",
                                      "{\"\xff\":1}",
                                      "{\"a\":tru}",
                                      "{\"a\":[1,]}",
                                      "{\"a\":[}"};
    static const char *const plain[] = {"0",    "-1",    "1.5",  "1e9",
                                        "true", "false", "null", "-0.0E-1"};
    static const char *const text[] = {"",    "01", "0x1",  "1.",  ".5", "+1",    "nan",
                                       "inf", "1 ", "True", "--1", "1e", "truey", "{}"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(pr_json_is_object(good[i], strlen(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (pr_json_is_object(bad[i], strlen(bad[i])))
            fail_msg("'%s' is taken", bad[i]);
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        assert_true(pr_json_is_plain(plain[i], strlen(plain[i])));
    for (size_t i = 0; i < COUNT_OF(text); i++)
        if (pr_json_is_plain(text[i], strlen(text[i])))
            fail_msg("'%s' is taken", text[i]);
}

static void test_nesting_has_an_end(void **state)
{
    (void)state;
    char text[512] = "{\"a\":";
    for (int depth = 30; depth < 33; depth++) {
        size_t n = 5;
        memset(text + n, '[', (size_t)depth);
        memset(text + n + depth, ']', (size_t)depth);
        text[n + 2 * (size_t)depth] = '}';
        assert_int_equal(pr_json_is_object(text, n + 2 * (size_t)depth + 1), depth < 32);
    }
}

static void add(struct pr_notes *n, int64_t number, size_t len)
{
    char text[5000];
    memset(text, 'a' + (int)(number % 26), sizeof text);
    pr_notes_add(n, (struct pr_note){NOTE_EVENT, number}, text, len);
}

static void test_the_ring_loses_the_oldest_and_says_how_many(void **state)
{
    (void)state;
    struct pr_notes n;
    struct pr_notes_place place = {0}, other = {0};
    struct pr_note note;
    struct pr_buf out = {0};
    const int64_t count = 10000;
    pr_notes_init(&n);
    add(&n, 0, 10); /* nobody wants it */
    assert_null(n.ring);
    n.wanted = true;
    for (int64_t i = 0; i < count; i++) {
        size_t len = 10 + (size_t)i % 1990;
        add(&n, i, len);
        assert_true(pr_notes_next(&n, &place, &note, &out)); /* one who keeps up loses nothing */
        assert_int_equal(note.elapsed, i);
        assert_int_equal(out.len, len);
        assert_true(out.data[0] == 'a' + i % 26 && out.data[len - 1] == 'a' + i % 26);
    }
    assert_int_equal(place.lost, 0);
    int64_t found = 0;
    while (pr_notes_next(&n, &other, &note, &out))
        assert_int_equal(note.elapsed, count - ((int64_t)(n.head_line - n.tail_line) - found++));
    assert_true(found > 1000 && found < count);
    assert_int_equal(other.lost, count - found);
    pr_buf_done(&out);
    pr_notes_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_nesting_has_an_end),
        cmocka_unit_test(test_the_ring_loses_the_oldest_and_says_how_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
