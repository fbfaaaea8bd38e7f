/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "util/json.h"

static void test_nesting_and_commas(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    struct pr_json j = {.out = &b};
    pr_json_open(&j, '{');
    pr_json_key(&j, "a");
    pr_json_int(&j, -1);
    pr_json_key(&j, "b");
    pr_json_open(&j, '[');
    pr_json_close(&j, ']');
    pr_json_key(&j, "c");
    pr_json_open(&j, '[');
    pr_json_bool(&j, true);
    pr_json_bool(&j, false);
    pr_json_null(&j);
    pr_json_open(&j, '{');
    pr_json_key(&j, "d");
    pr_json_string(&j, "e");
    pr_json_close(&j, '}');
    pr_json_number(&j, 0.5);
    pr_json_close(&j, ']');
    pr_json_close(&j, '}');
    assert_buf(&b, "{\"a\":-1,\"b\":[],\"c\":[true,false,null,{\"d\":\"e\"},0.5]}");
    pr_buf_done(&b);
}

static void test_indent(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    struct pr_json j = {.out = &b, .indent = 2};
    pr_json_open(&j, '{');
    pr_json_key(&j, "a");
    pr_json_open(&j, '[');
    pr_json_int(&j, 1);
    pr_json_int(&j, 2);
    pr_json_close(&j, ']');
    pr_json_key(&j, "b");
    pr_json_open(&j, '{');
    pr_json_close(&j, '}');
    pr_json_close(&j, '}');
    assert_buf(&b, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
    pr_buf_done(&b);
}

static void test_strings(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"", "\"\""},
        {NULL, "null"},
        {"plain", "\"plain\""},
        {"a\"b\\c/", "\"a\\\"b\\\\c/\""},
        {"line\nnext", "\"line\\nnext\""},
        {"\t\r\x01\x1f\x7f", "\"\\u0009\\u000d\\u0001\\u001f\\u007f\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff", "\"\\ufffd\""},
        {"a\xc3", "\"a\\ufffd\""},
        {"\xc0\xaf", "\"\\ufffd\\ufffd\""},
        {"\xed\xa0\x80x", "\"\\ufffd\\ufffd\\ufffdx\""},
    };
    struct pr_buf b = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pr_json j = {.out = &b};
        pr_json_string(&j, cases[i].text);
        assert_buf(&b, cases[i].json);
    }
    struct pr_json j = {.out = &b};
    pr_json_open(&j, '{');
    pr_json_key(&j, "k\"\n");
    pr_json_null(&j);
    pr_json_close(&j, '}');
    assert_buf(&b, "{\"k\\\"\\n\":null}");
    pr_buf_done(&b);
}

/* JSON has neither NaN nor infinity: what is not a number must be null. */
static void test_numbers(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    struct pr_json j = {.out = &b};
    pr_json_open(&j, '[');
    pr_json_number(&j, NAN);
    pr_json_number(&j, 1.5);
    pr_json_number(&j, -3);
    pr_json_int(&j, INT64_MIN);
    pr_json_int(&j, INT64_MAX);
    pr_json_close(&j, ']');
    assert_buf(&b, "[null,1.5,-3,-9223372036854775808,9223372036854775807]");
    pr_buf_done(&b);
}

static void test_infinity_is_null(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    struct pr_json j = {.out = &b};
    pr_json_open(&j, '[');
    pr_json_number(&j, INFINITY);
    pr_json_number(&j, -INFINITY);
    pr_json_close(&j, ']');
    assert_buf(&b, "[null,null]");
    pr_buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nesting_and_commas),
        cmocka_unit_test(test_indent),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_infinity_is_null),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
