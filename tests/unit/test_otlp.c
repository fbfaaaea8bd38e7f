/* SPDX-License-Identifier: Apache-2.0 */
/* Where a collector is and what its answers say; tests/cli/test_otlp_collector.py has servers. */
#include <stdlib.h>

#include "publish/otlp_parts.h"
#include "tree.h"
#include "util/gzip.h"

static struct pr_otlp_setting s;
static struct proctor_error err;

static int clean(void **state)
{
    static const char *const names[] = {"ENDPOINT",    "HEADERS",           "PROTOCOL",
                                        "COMPRESSION", "TIMEOUT",           "CERTIFICATE",
                                        "CLIENT_KEY",  "CLIENT_CERTIFICATE"};
    char name[64];
    (void)state;
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "OTEL_EXPORTER_OTLP_%s%s", i % 2 ? "METRICS_" : "",
                 names[i / 2]);
        unsetenv(name);
    }
    unsetenv("OTEL_RESOURCE_ATTRIBUTES");
    unsetenv("OTEL_SERVICE_NAME");
    unsetenv("OTEL_SDK_DISABLED");
    return 0;
}

/* The variable behind OTEL_EXPORTER_OTLP_. */
static void set(const char *name, const char *value)
{
    char whole[64];
    snprintf(whole, sizeof whole, "OTEL_EXPORTER_OTLP_%s", name);
    setenv(whole, value, 1);
}

static void goes_to(const char *option, const char *url)
{
    assert_int_equal(pr_otlp_read(&s, option, &err), 0);
    assert_string_equal(s.url, url);
}

static void test_where_it_goes(void **state)
{
    (void)state;
    goes_to(NULL, "http://127.0.0.1:4318/v1/metrics");
    set("ENDPOINT", "http://all:4318/a/");
    goes_to(NULL, "http://all:4318/a/v1/metrics");
    set("METRICS_ENDPOINT", "https://metrics/as/is/");
    goes_to(NULL, "https://metrics/as/is/");
    goes_to("http://option:1", "http://option:1/v1/metrics");
    goes_to("http://option:1/v1/metrics", "http://option:1/v1/metrics");
    set("METRICS_ENDPOINT", "");
    goes_to(NULL, "http://all:4318/a/v1/metrics");
}

static void test_what_is_shown_has_no_secrets(void **state)
{
    (void)state;
    goes_to("http://me:p%40ss@h:1/x?token=hidden#f", "http://h:1/x/v1/metrics?token=hidden");
    assert_string_equal(s.shown, "http://h:1/x/v1/metrics");
    assert_string_equal(s.user, "me");
    assert_string_equal(s.password, "p@ss");
    pr_otlp_forget(&s);
    assert_string_equal(s.password, "");
    static const char *const bad[] = {"me:hidden@h:4318", "unix://hidden", "hidden"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pr_otlp_read(&s, bad[i], &err), -EINVAL);
        assert_null(strstr(err.message, "hidden"));
        assert_non_null(strstr(err.message, "http://HOST:4318"));
    }
}

static void test_what_is_said_for_metrics_wins(void **state)
{
    (void)state;
    set("PROTOCOL", "http/json");
    set("COMPRESSION", "gzip");
    set("TIMEOUT", "2500");
    set("CERTIFICATE", "ca");
    set("CLIENT_KEY", "key");
    set("CLIENT_CERTIFICATE", "own");
    set("HEADERS", "a=1");
    assert_int_equal(pr_otlp_read(&s, NULL, &err), 0);
    assert_true(s.json && s.gzip && s.timeout == 2.5);
    assert_string_equal(s.ca, "ca");
    assert_string_equal(s.key, "key");
    assert_string_equal(s.certificate, "own");
    assert_string_equal(s.headers, "a: 1\n");
    set("METRICS_PROTOCOL", "http/protobuf");
    set("METRICS_COMPRESSION", "none");
    set("METRICS_TIMEOUT", "100");
    set("METRICS_CERTIFICATE", "ca2");
    set("METRICS_HEADERS", " b = x%2Cy%20z , ,Authorization=Bearer t=");
    assert_int_equal(pr_otlp_read(&s, NULL, &err), 0);
    assert_true(!s.json && !s.gzip && s.timeout == 0.1);
    assert_string_equal(s.ca, "ca2");
    assert_string_equal(s.headers, "b: x,y z\nAuthorization: Bearer t=\n");
}

static void test_without_variables(void **state)
{
    (void)state;
    assert_int_equal(pr_otlp_read(&s, NULL, &err), 0);
    assert_true(!s.json && !s.gzip && !s.disabled && s.timeout == 10 && !*s.headers);
    assert_true(!s.ca && !s.key && !s.certificate && !s.attributes && !s.service);
    setenv("OTEL_SDK_DISABLED", "True", 1);
    assert_int_equal(pr_otlp_read(&s, NULL, &err), 0);
    assert_true(s.disabled);
}

static void test_wrong_variables_are_named_with_a_remedy(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *remedy;
    } rows[] = {{"PROTOCOL", "grpc", "4318"},
                {"METRICS_PROTOCOL", "http", "http/json"},
                {"COMPRESSION", "zstd", "gzip"},
                {"TIMEOUT", "10s", "milliseconds"},
                {"TIMEOUT", "0", "milliseconds"},
                {"HEADERS", "hidden", "NAME=VALUE"},
                {"HEADERS", "a=1,b:c=hidden", "NAME=VALUE"},
                {"METRICS_HEADERS", "a=hidden%0d%0aHost: x", "NAME=VALUE"},
                {"ENDPOINT", "localhost:4317", "http://HOST:4318"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set(rows[i].name, rows[i].value);
        assert_int_equal(pr_otlp_read(&s, NULL, &err), -EINVAL);
        assert_non_null(strstr(err.message, rows[i].name));
        assert_non_null(strstr(err.message, rows[i].remedy));
        assert_null(strstr(err.message, "hidden"));
        assert_string_equal(s.headers, "");
        clean(NULL);
    }
    setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b,c", 1);
    assert_int_equal(pr_otlp_read(&s, NULL, &err), -EINVAL);
}

/* --- answers ---------------------------------------------------------------------------------- */

static struct pr_db *json;

static int open_json(void **state)
{
    char why[100];
    (void)state;
    return pr_db_open(&json, ":memory:", DB_CREATE, why, sizeof why);
}

static int close_json(void **state)
{
    (void)state;
    pr_db_close(json);
    return 0;
}

static bool answered(struct pr_otlp_answer *a, bool success, bool as_json, const void *data,
                     size_t n)
{
    struct pr_buf body = {.data = malloc(n + 1), .len = n, .cap = n + 1};
    memcpy(body.data, data, n);
    bool good = pr_otlp_answered(a, success, &body, as_json, json);
    pr_buf_done(&body);
    return good;
}

static void test_protobuf_answers(void **state)
{
    (void)state;
    struct pr_otlp_answer a;
    static const unsigned char partial[] = {0x0a, 0x09, 0x08, 0xac, 0x02, 0x12,
                                            0x04, 'n',  'o',  '\n', '!'};
    static const unsigned char status[] = {0x08, 0x03, 0x12, 0x02, 'i', 'f', 0x1a,
                                           0x01, 'x',  0x2d, 1,    2,   3,   4};
    assert_true(answered(&a, true, false, "", 0));
    assert_true(a.number == 0 && !*a.text);
    assert_true(answered(&a, true, false, partial, sizeof partial));
    assert_int_equal(a.number, 300);
    assert_string_equal(a.text, "no !");
    assert_true(answered(&a, false, false, status, sizeof status));
    assert_int_equal(a.number, 3);
    assert_string_equal(a.text, "if");
    for (size_t n = 1; n < sizeof partial; n++)
        assert_false(answered(&a, true, false, partial, n));
    assert_false(answered(&a, true, false, "<html>", 6));
    assert_true(answered(&a, false, false, "{\"message\":\"json\"}", 18));
    assert_string_equal(a.text, "json");
}

static void test_json_answers(void **state)
{
    (void)state;
    struct pr_otlp_answer a;
    static const struct {
        const char *text;
        bool success, good;
        int number;
        const char *said;
    } rows[] = {
        {"{}", true, true, 0, ""},
        {"{\"partialSuccess\":{}}", true, true, 0, ""},
        {"{\"partialSuccess\":{\"rejectedDataPoints\":\"7\",\"errorMessage\":\"old\"}}", true, true,
         7, "old"},
        {"{\"partialSuccess\":{\"rejectedDataPoints\":7}}", true, true, 7, ""},
        {"{\"partialSuccess\":[{}]}", true, true, 0, ""},
        {" {\"code\":3,\"message\":\"bad\"}", false, true, 3, "bad"},
        {"{\"code\":", false, false, 0, ""},
        {"{{{{", true, false, 0, ""},
        {" []", true, false, 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(answered(&a, rows[i].success, true, rows[i].text, strlen(rows[i].text)) ==
                    rows[i].good);
        assert_int_equal(a.number, rows[i].number);
        assert_string_equal(a.text, rows[i].said);
    }
}

/* Whatever comes, it ends and stays within its bytes, which the sanitizers watch. */
static void test_any_bytes(void **state)
{
    (void)state;
    struct pr_otlp_answer a;
    unsigned char data[40];
    srandom(1);
    for (int round = 0; round < 20000; round++) {
        size_t n = (size_t)random() % sizeof data;
        for (size_t i = 0; i < n; i++)
            data[i] = (unsigned char)(random() % (round % 2 ? 256 : 24));
        answered(&a, round % 3 != 0, round % 5 == 0, data, n);
        assert_true(memchr(a.text, '\0', sizeof a.text) != NULL);
    }
}

static void test_gzip(void **state)
{
    (void)state;
    struct pr_buf out = {0};
    static char text[10000];
    memset(text, 'a', sizeof text);
    assert_int_equal(pr_gzip(&out, text, sizeof text), 0);
    assert_true(out.len > 18 && out.len < 100);
    assert_memory_equal(out.data, "\x1f\x8b\x08", 3);
    assert_memory_equal(out.data + out.len - 4, "\x10\x27\0\0", 4); /* how long it was */
    pr_buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_where_it_goes, clean),
        cmocka_unit_test_setup(test_what_is_shown_has_no_secrets, clean),
        cmocka_unit_test_setup(test_what_is_said_for_metrics_wins, clean),
        cmocka_unit_test_setup(test_without_variables, clean),
        cmocka_unit_test_setup(test_wrong_variables_are_named_with_a_remedy, clean),
        cmocka_unit_test_setup_teardown(test_protobuf_answers, open_json, close_json),
        cmocka_unit_test_setup_teardown(test_json_answers, open_json, close_json),
        cmocka_unit_test_setup_teardown(test_any_bytes, open_json, close_json),
        cmocka_unit_test(test_gzip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
