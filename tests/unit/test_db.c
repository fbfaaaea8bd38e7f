/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"
#include "util/db.h"

static char dir[TREE_PATH], path[TREE_PATH + 32], why[200];
static struct pr_db *db;

static int setup(void **state)
{
    (void)state;
    tree_new(dir);
    snprintf(path, sizeof path, "%s/a.db", dir);
    assert_int_equal(pr_db_open(&db, path, DB_CREATE, why, sizeof why), 0);
    assert_int_equal(pr_db_run(db, "CREATE TABLE t(a REAL, b INTEGER, c TEXT)"), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_db_close(db);
    tree_done(dir);
    return 0;
}

static struct pr_query *prepare(const char *sql)
{
    struct pr_query *q = NULL;
    if (pr_query_new(&q, db, sql) < 0)
        fail_msg("%s", pr_db_why(db));
    return q;
}

static void test_the_library_says_its_version(void **state)
{
    (void)state;
    assert_true(pr_db_version(why, sizeof why) > 3000000);
}

static void test_values_come_back(void **state)
{
    (void)state;
    struct pr_query *q = prepare("INSERT INTO t VALUES(?,?,?)");
    pr_query_number(q, 1, 1.5);
    pr_query_int(q, 2, INT64_C(1) << 60);
    pr_query_text(q, 3, "text");
    assert_int_equal(pr_query_do(q), 0);
    assert_int_equal(pr_db_changes(db), 1);
    pr_query_free(q);
    q = prepare("SELECT a, b, c FROM t");
    assert_int_equal(pr_query_columns(q), 3);
    assert_string_equal(pr_query_name(q, 2), "c");
    assert_int_equal(pr_query_step(q), 1);
    assert_true(pr_query_get_number(q, 0) == 1.5);
    assert_true(pr_query_get_int(q, 1) == INT64_C(1) << 60);
    assert_string_equal(pr_query_get_text(q, 2), "text");
    assert_int_equal(pr_query_step(q), 0);
    pr_query_free(q);
}

static void test_what_is_absent_is_null(void **state)
{
    (void)state;
    struct pr_query *q = prepare("INSERT INTO t VALUES(?,?,?)");
    pr_query_number(q, 1, NAN);
    pr_query_null(q, 2);
    pr_query_text(q, 3, NULL);
    assert_int_equal(pr_query_do(q), 0);
    pr_query_free(q);
    q = prepare("SELECT a, b, c FROM t WHERE a IS NULL AND b IS NULL AND c IS NULL");
    assert_int_equal(pr_query_step(q), 1);
    assert_true(isnan(pr_query_get_number(q, 0)) && pr_query_is_null(q, 1));
    assert_null(pr_query_get_text(q, 2));
    pr_query_free(q);
}

static void test_a_query_can_be_done_again(void **state)
{
    (void)state;
    struct pr_query *q = prepare("INSERT INTO t(b) VALUES(?)");
    for (int i = 0; i < 3; i++) {
        pr_query_int(q, 1, i);
        assert_int_equal(pr_query_do(q), 0);
    }
    pr_query_free(q);
    q = prepare("SELECT count(*) FROM t");
    assert_int_equal(pr_query_step(q), 1);
    assert_int_equal(pr_query_get_int(q, 0), 3);
    pr_query_reset(q);
    assert_int_equal(pr_query_step(q), 1);
    pr_query_free(q);
}

static void test_mistakes_have_a_code_and_a_reason(void **state)
{
    (void)state;
    struct pr_query *q = NULL;
    struct pr_db *other = NULL;
    assert_int_equal(pr_query_new(&q, db, "SELECT x FROM nowhere"), -EINVAL);
    assert_non_null(strstr(pr_db_why(db), "nowhere"));
    assert_int_equal(pr_db_run(db, "gibberish"), -EINVAL);
    assert_int_equal(pr_db_open(&other, "/no/such/file", DB_READ, why, sizeof why), -ENOENT);
    assert_true(*why);
    tree_write(dir, "no.db",
               "this is no database, and never was one; it is long enough for a header");
    snprintf(path, sizeof path, "%s/no.db", dir);
    assert_int_equal(pr_db_open(&other, path, DB_READ, why, sizeof why), 0);
    assert_int_equal(pr_db_run(other, "SELECT * FROM sqlite_master"), -EMEDIUMTYPE);
    pr_db_close(other);
}

static void test_somebody_else_holds_it(void **state)
{
    (void)state;
    struct pr_db *other = NULL;
    assert_int_equal(pr_db_open(&other, path, DB_CHANGE, why, sizeof why), 0);
    assert_int_equal(pr_db_run(other, "BEGIN EXCLUSIVE"), 0);
    pr_db_patience(db, 10);
    assert_int_equal(pr_db_run(db, "INSERT INTO t(b) VALUES(1)"), -EBUSY);
    assert_int_equal(pr_db_run(other, "COMMIT"), 0);
    assert_int_equal(pr_db_run(db, "INSERT INTO t(b) VALUES(1)"), 0);
    pr_db_close(other);
}

static void test_reading_changes_nothing(void **state)
{
    (void)state;
    struct pr_db *other = NULL;
    assert_int_equal(pr_db_open(&other, path, DB_READ, why, sizeof why), 0);
    assert_int_equal(pr_db_run(other, "INSERT INTO t(b) VALUES(1)"), -EROFS);
    pr_db_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_library_says_its_version),
        TEST(test_values_come_back),
        TEST(test_what_is_absent_is_null),
        TEST(test_a_query_can_be_done_again),
        TEST(test_mistakes_have_a_code_and_a_reason),
        TEST(test_somebody_else_holds_it),
        TEST(test_reading_changes_nothing),
    };
    return cmocka_run_group_tests_name("db", tests, NULL, NULL);
}
