/* SPDX-License-Identifier: Apache-2.0 */
/* What a publisher decides by itself; tests/cli/test_mlflow.py has servers. */
#include <stdlib.h>

#include "publish/address.h"
#include "publish/mlflow.h"
#include "publish/publisher.h"
#include "tree.h"

static struct pr_mlflow_setting s;
static struct proctor_error err;

static int clean(void **state)
{
    static const char *const names[] = {"MLFLOW_TRACKING_URI",
                                        "MLFLOW_TRACKING_USERNAME",
                                        "MLFLOW_TRACKING_PASSWORD",
                                        "MLFLOW_TRACKING_TOKEN",
                                        "MLFLOW_TRACKING_AUTH",
                                        "MLFLOW_TRACKING_AWS_SIGV4",
                                        "MLFLOW_TRACKING_INSECURE_TLS",
                                        "MLFLOW_RUN_ID",
                                        "MLFLOW_EXPERIMENT_ID",
                                        "MLFLOW_EXPERIMENT_NAME",
                                        "MLFLOW_HTTP_REQUEST_TIMEOUT",
                                        "DATABRICKS_HOST",
                                        "DATABRICKS_TOKEN",
                                        "SLURM_NODEID",
                                        "SLURM_NNODES",
                                        "SLURM_JOB_NUM_NODES",
                                        "GROUP_RANK"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    return 0;
}

static int read_uri(const char *uri)
{
    return pr_mlflow_read(&s, uri, NULL, NULL, &err);
}

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *uri, *url, *user, *password;
    } rows[] = {
        {"http://h:5000", "http://h:5000", "", ""},
        {"http://h:5000///", "http://h:5000", "", ""},
        {"HTTPS://h/behind/a/prefix/", "HTTPS://h/behind/a/prefix", "", ""},
        {"http://me:p@ss@h/", "http://h", "me", "p@ss"},
        {"http://me@h/", "http://h", "me", ""},
        {"http://me:a/b#c@h/x", "http://h/x", "me", "a/b#c"},
        {"http://%41:%zz%4@h", "http://h", "A", "%zz%4"},
        {"http://h/a@b", "http://h/a@b", "", ""},
        {"http://h/?a=b#c", "http://h", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(read_uri(rows[i].uri), 0);
        assert_string_equal(s.url, rows[i].url);
        assert_string_equal(s.user, rows[i].user);
        assert_string_equal(s.password, rows[i].password);
    }
    assert_string_equal(s.prefix, "process/");
    assert_true(s.timeout == 30);
}

static void test_the_variable_where_there_is_no_option(void **state)
{
    (void)state;
    assert_int_equal(read_uri(NULL), -EINVAL);
    setenv("MLFLOW_TRACKING_URI", "http://there", 1);
    setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "7", 1);
    setenv("MLFLOW_RUN_ID", "r", 1);
    setenv("MLFLOW_TRACKING_INSECURE_TLS", "True", 1);
    assert_int_equal(read_uri(NULL), 0);
    assert_string_equal(s.url, "http://there");
    assert_string_equal(s.run, "r");
    assert_true(s.timeout == 7 && s.insecure);
    setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "0", 1); /* nobody could answer that */
    assert_int_equal(read_uri("http://here"), 0);
    assert_string_equal(s.url, "http://here");
    assert_true(s.timeout == 30);
}

static void test_what_needs_python_is_named_without_its_secrets(void **state)
{
    (void)state;
    assert_int_equal(read_uri("postgresql://u:hidden@h/db"), -EINVAL);
    assert_non_null(strstr(err.message, "postgresql:"));
    assert_null(strstr(err.message, "hidden"));
    assert_int_equal(read_uri("/a/path"), -EINVAL);
    assert_int_equal(read_uri(""), -EINVAL);
    assert_int_equal(read_uri("databricks"), -EINVAL);
    setenv("DATABRICKS_HOST", "host.example", 1);
    setenv("DATABRICKS_TOKEN", "t", 1);
    assert_int_equal(read_uri("databricks"), -EINVAL); /* which experiment? */
    setenv("MLFLOW_EXPERIMENT_ID", "1", 1);
    assert_int_equal(read_uri("databricks"), 0);
    assert_string_equal(s.url, "https://host.example");
    assert_string_equal(s.token, "t");
}

static void test_a_password_is_covered(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"http://me:pw@h/x", "http://me:**@h/x"},
                                          {"http://token@h", "http://*****@h"},
                                          {"http://h/a:b@c", "http://h/a:b@c"},
                                          {"http://me:a@b@h", "http://me:***@h"},
                                          {"http://me:a/b#c@h/x", "http://me:*****@h/x"},
                                          {"http://h:80/a:b@c", "http://h:80/a:b@c"},
                                          {"http://[::1]:80/a@c", "http://[::1]:80/a@c"},
                                          {"http://me:pw@h/x?key=a@b", "http://me:**@h/x?*******"},
                                          {"no address", "no address"}};
    char text[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "%s", rows[i][0]);
        pr_address_hide(text);
        assert_string_equal(text, rows[i][1]);
    }
}

static void test_names_that_mlflow_does_not_take(void **state)
{
    (void)state;
    static const char *const bad[] = {"/a", "a//b", "a/../b", "a?b", "\xc3\xa9", "a\nb"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(pr_mlflow_read(&s, "http://h", NULL, bad[i], &err), -EINVAL);
        assert_int_equal(pr_mlflow_read(&s, "http://h", bad[i], NULL, &err), -EINVAL);
    }
    assert_int_equal(pr_mlflow_read(&s, "http://h", "7", "a b/c:d-e.f_", &err), 0);
    assert_string_equal(s.node, "node_7");
    assert_int_equal(pr_mlflow_read(&s, "http://h", "rack-1", "", &err), 0);
    assert_string_equal(s.node, "rack-1");
}

static void test_waiting_doubles_up_to_a_minute(void **state)
{
    (void)state;
    static const double middle[] = {1, 2, 4, 8, 16, 32, 60, 60};
    for (unsigned i = 0; i < sizeof middle / sizeof *middle; i++) {
        assert_true(pr_publisher_backoff(i + 1, 0.5) == middle[i]);
        assert_true(pr_publisher_backoff(i + 1, 0) == middle[i] / 2);
        assert_true(pr_publisher_backoff(i + 1, 1) == middle[i] * 1.5);
    }
    assert_true(pr_publisher_backoff(4000000000U, 0.5) == 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_addresses, clean),
        cmocka_unit_test_setup(test_the_variable_where_there_is_no_option, clean),
        cmocka_unit_test_setup(test_what_needs_python_is_named_without_its_secrets, clean),
        cmocka_unit_test_setup(test_a_password_is_covered, clean),
        cmocka_unit_test_setup(test_names_that_mlflow_does_not_take, clean),
        cmocka_unit_test_setup(test_waiting_doubles_up_to_a_minute, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
