/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "util/message.h"

static struct pr_buf out;

static int teardown(void **state)
{
    (void)state;
    pr_buf_done(&out);
    out = (struct pr_buf){0};
    return 0;
}

static void write_all(bool as_json)
{
    pr_buf_reset(&out);
    struct pr_message m = pr_message_of(&out, as_json);
    pr_message_list(&m, "items");
    for (int i = 0; i < 2; i++) {
        pr_message_open(&m, 1, NULL);
        pr_message_fixed64(&m, 2, "at", UINT64_C(0x8000000000000001));
        pr_message_close(&m);
    }
    pr_message_list_end(&m);
    pr_message_open(&m, 16, "part");
    pr_message_text(&m, 1, "text", "a\xff");
    pr_message_double(&m, 2, "number", 1.5);
    pr_message_enum(&m, 3, "kind", 300);
    pr_message_bool(&m, 4, "yes", true);
    pr_message_int(&m, 5, "whole", INT64_C(1) << 60);
    pr_message_close(&m);
    pr_message_end(&m);
}

static void test_json(void **state)
{
    (void)state;
    write_all(true);
    assert_string_equal(pr_buf_text(&out),
                        "{\"items\":[{\"at\":\"9223372036854775809\"},{\"at\":"
                        "\"9223372036854775809\"}],\"part\":{\"text\":\"a\\ufffd\",\"number\":1.5,"
                        "\"kind\":300,\"yes\":true,\"whole\":\"1152921504606846976\"}}");
}

/* By hand, from the description of the encoding. */
static void test_protobuf(void **state)
{
    (void)state;
    static const unsigned char want[] = {
        0x0a, 0x89, 0x80, 0x80, 0x00,                                /* 1: 9 bytes */
        0x11, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80,        /*   2: 64 bits */
        0x0a, 0x89, 0x80, 0x80, 0x00,                                /* and once more */
        0x11, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80,        /* */
        0x82, 0x01, 0xa1, 0x80, 0x80, 0x00,                          /* 16: 33 bytes */
        0x0a, 0x84, 0x80, 0x80, 0x00, 'a',  0xef, 0xbf, 0xbd,        /*   1: 4 bytes */
        0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f,        /*   2: 1.5 */
        0x18, 0xac, 0x02, 0x20, 0x01,                                /*   3: 300, 4: true */
        0x28, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10}; /* 5: 2 to the 60th */
    write_all(false);
    assert_int_equal(out.len, sizeof want);
    assert_memory_equal(out.data, want, sizeof want);
}

static void test_long_parts(void **state)
{
    (void)state;
    char text[20001];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct pr_message m = pr_message_of(&out, false);
    pr_message_open(&m, 1, NULL);
    pr_message_text(&m, 1, "text", text);
    pr_message_close(&m);
    static const unsigned char want[] = {0x0a, 0xa5, 0x9c, 0x81, 0x00, 0x0a,
                                         0xa0, 0x9c, 0x81, 0x00, 'x'};
    assert_int_equal(out.len, 20010);
    assert_memory_equal(out.data, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_json, teardown),
        cmocka_unit_test_teardown(test_protobuf, teardown),
        cmocka_unit_test_teardown(test_long_parts, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
