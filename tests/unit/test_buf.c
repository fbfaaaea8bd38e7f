/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

static bool memory_is_out;

void *__real_realloc(void *data, size_t size);
void *__wrap_realloc(void *data, size_t size);

void *__wrap_realloc(void *data, size_t size)
{
    return memory_is_out ? NULL : __real_realloc(data, size);
}

static void test_empty_is_empty_text(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    assert_string_equal(pr_buf_text(&b), "");
    pr_buf_add(&b, "x", 0);
    pr_buf_str(&b, "");
    assert_int_equal(b.len, 0);
    pr_buf_done(&b);
    pr_buf_done(&b);
}

static void test_appends(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    pr_buf_str(&b, "ab");
    pr_buf_char(&b, 'c');
    pr_buf_add(&b, "d\0e", 3);
    pr_buf_printf(&b, "-%d-%s", 42, "f");
    assert_int_equal(b.len, 11);
    assert_memory_equal(b.data, "abcd\0e-42-f", 11);
    assert_false(b.failed);
    pr_buf_done(&b);
}

static void test_grows_past_any_size(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    for (int i = 0; i < 5000; i++)
        pr_buf_printf(&b, "%d,", i % 10);
    assert_int_equal(b.len, 10000);
    assert_int_equal(strlen(pr_buf_text(&b)), 10000);
    for (size_t i = 0; i < b.len; i += 2)
        assert_int_equal(b.data[i], '0' + (int)(i / 2 % 10));
    pr_buf_done(&b);
}

static void test_text_of_a_full_buffer_has_room_for_its_nul(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    for (int i = 0; i < 600; i++) {
        pr_buf_char(&b, 'x');
        assert_int_equal(strlen(pr_buf_text(&b)), i + 1);
        assert_true(b.cap > b.len);
    }
    pr_buf_done(&b);
}

static void test_keeps_memory_across_resets(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    assert_true(pr_buf_reserve(&b, 4000));
    char *data = b.data;
    for (int i = 0; i < 10; i++) {
        pr_buf_reset(&b);
        for (int k = 0; k < 4000; k++)
            pr_buf_char(&b, 'y');
    }
    assert_ptr_equal(b.data, data);
    pr_buf_done(&b);
}

static void test_consume_takes_from_the_front(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    pr_buf_str(&b, "hello world");
    pr_buf_consume(&b, 6);
    assert_string_equal(pr_buf_text(&b), "world");
    pr_buf_consume(&b, 5);
    assert_string_equal(pr_buf_text(&b), "");
    pr_buf_done(&b);
}

static void test_out_of_memory_is_sticky_until_reset(void **state)
{
    (void)state;
    struct pr_buf b = {0};
    pr_buf_str(&b, "kept");
    memory_is_out = true;
    assert_false(pr_buf_reserve(&b, 100000));
    memory_is_out = false;
    assert_true(b.failed);
    pr_buf_str(&b, "dropped");
    pr_buf_printf(&b, "%d", 1);
    assert_int_equal(b.len, 4);
    pr_buf_reset(&b);
    pr_buf_str(&b, "again");
    assert_string_equal(pr_buf_text(&b), "again");
    pr_buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_is_empty_text),
        cmocka_unit_test(test_appends),
        cmocka_unit_test(test_grows_past_any_size),
        cmocka_unit_test(test_text_of_a_full_buffer_has_room_for_its_nul),
        cmocka_unit_test(test_keeps_memory_across_resets),
        cmocka_unit_test(test_consume_takes_from_the_front),
        cmocka_unit_test(test_out_of_memory_is_sticky_until_reset),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
