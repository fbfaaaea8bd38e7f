/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "report/template.h"

/* Where it is built in, it is a page with one place for the model and no way out. */
static void test_is_a_page(void **state)
{
    (void)state;
    assert_int_equal(strlen(pr_template), pr_template_len);
    if (!pr_template_len)
        return; /* built without it; tools/browser-tests says whether it can be made */
    const char *place = strstr(pr_template, "@MODEL@");
    assert_non_null(place);
    assert_null(strstr(place + 1, "@MODEL@"));
    assert_int_equal(strncmp(pr_template, "<!doctype html>", 15), 0);
    assert_non_null(strstr(pr_template, "default-src 'none'"));
    assert_null(strstr(pr_template, "@SCRIPT@"));
    assert_null(strstr(pr_template, "<link"));
    assert_null(strstr(pr_template, " src=\"http"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_is_a_page)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
