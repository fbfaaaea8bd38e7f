/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>

#include "tree.h"
#include "core/own_files.h"
#include "core/run_file.h"
#include "util/db.h"

static char dir[TREE_PATH], path[4096];
static struct proctor_error err;

static int setup(void **state)
{
    (void)state;
    tree_new(dir);
    setenv("PROCTOR_HOME", dir, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("PROCTOR_HOME");
    tree_done(dir);
    return 0;
}

/* --- the shape -------------------------------------------------------------------------------- */

static struct pr_db *make(void)
{
    struct pr_buf sql = {0};
    struct pr_db *db = NULL;
    char why[200];
    bool shown[METRIC_COUNT] = {true};
    assert_int_equal(pr_db_open(&db, ":memory:", DB_CREATE, why, sizeof why), 0);
    pr_run_file_schema(&sql);
    pr_run_file_metrics(&sql, shown);
    if (pr_db_run(db, pr_buf_text(&sql)) < 0)
        fail_msg("%s", pr_db_why(db));
    pr_buf_done(&sql);
    return db;
}

static int64_t number(struct pr_db *db, const char *sql)
{
    struct pr_query *q = NULL;
    if (pr_query_new(&q, db, sql) < 0)
        fail_msg("%s: %s", sql, pr_db_why(db));
    assert_int_equal(pr_query_step(q), 1);
    int64_t v = pr_query_get_int(q, 0);
    pr_query_free(q);
    return v;
}

static void test_every_metric_has_a_row(void **state)
{
    (void)state;
    struct pr_db *db = make();
    assert_int_equal(number(db, "SELECT count(*) FROM metrics"), METRIC_COUNT);
    assert_int_equal(number(db, "SELECT count(*) FROM metrics WHERE selected"), 1);
    assert_int_equal(number(db, "PRAGMA user_version"), RUN_FILE_VERSION);
    assert_int_equal(number(db, "PRAGMA application_id"), RUN_FILE_APPLICATION);
    pr_db_close(db);
}

/* What is put in through one statement comes back through the other, column by column. */
static void test_rows_go_in_and_come_out(void **state)
{
    (void)state;
    struct pr_db *db = make();
    assert_int_equal(pr_db_run(db, "INSERT INTO mark_sets VALUES(4, '{}')"), 0);
    for (int table = 0; table < RUN_TABLES; table++) {
        struct pr_run_columns columns;
        struct pr_buf sql = {0};
        struct pr_query *in = NULL, *out = NULL;
        int head = pr_run_table_head((enum pr_run_table)table);
        pr_run_table_columns((enum pr_run_table)table, &columns);
        assert_true(columns.count > 0);
        pr_run_table_insert(&sql, (enum pr_run_table)table);
        assert_int_equal(pr_query_new(&in, db, pr_buf_text(&sql)), 0);
        pr_buf_reset(&sql);
        pr_run_table_select(&sql, (enum pr_run_table)table, false);
        assert_int_equal(pr_query_new(&out, db, pr_buf_text(&sql)), 0);
        bool more = table == TABLE_JOB || table == TABLE_DEVICE + DEVICE_CORE;
        assert_int_equal(pr_query_columns(out), head + columns.count + more);
        for (int i = 1; i <= head + columns.count; i++)
            pr_query_number(in, i, i);
        assert_int_equal(pr_query_do(in), 0);
        assert_int_equal(pr_query_step(out), 1);
        for (int i = 0; i < head + columns.count; i++)
            assert_int_equal(pr_query_get_int(out, i), i + 1);
        if (table == TABLE_JOB)
            assert_string_equal(pr_query_get_text(out, head + columns.count), "{}");
        else if (more) /* of the job's row, which is there by now */
            assert_int_equal(pr_query_get_int(out, head + columns.count), 2);
        pr_query_free(in);
        pr_query_free(out);
        pr_buf_done(&sql);
    }
    pr_db_close(db);
}

/* Rates and ratios of processes and devices follow from what is kept. */
static void test_what_derives_is_not_kept_of_many(void **state)
{
    (void)state;
    for (int table = TABLE_PROCESS; table < RUN_TABLES; table++) {
        struct pr_run_columns columns;
        pr_run_table_columns((enum pr_run_table)table, &columns);
        for (int i = 0; i < columns.count; i++) {
            const struct pr_metric *m = &pr_metrics[columns.id[i]];
            assert_true(m->kind != KIND_RATE && m->kind != KIND_RATIO);
            assert_true(columns.slot[i] >= 0);
        }
    }
}

/* --- the place -------------------------------------------------------------------------------- */

static int create(struct pr_run_name name)
{
    int fd = pr_run_file_create(&name, path, sizeof path, &err);
    if (fd >= 0)
        pr_own_file_close(fd);
    return fd;
}

static void check_ends_in(const char *end)
{
    size_t len = strlen(path), tail = strlen(end);
    assert_true(len > tail);
    assert_string_equal(path + len - tail, end);
}

static void test_names_in_the_folder(void **state)
{
    (void)state;
    struct stat st;
    assert_true(create((struct pr_run_name){.id = "id"}) >= 0);
    check_ends_in("/runs/id.proctor");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(create((struct pr_run_name){.id = "id"}) >= 0);
    check_ends_in("/runs/id.2.proctor");
    assert_true(create((struct pr_run_name){.id = "id", .node = "n/1"}) >= 0);
    check_ends_in("/runs/id.n_1.proctor");
    assert_true(create((struct pr_run_name){.id = "../up"}) >= 0);
    check_ends_in("/runs/_._up.proctor");
}

static void test_what_is_left_of_another_is_not_touched(void **state)
{
    (void)state;
    char left[4096];
    assert_true(create((struct pr_run_name){.id = "id"}) >= 0);
    snprintf(left, sizeof left, "%s-journal", path);
    assert_int_equal(rename(path, left), 0);
    assert_true(create((struct pr_run_name){.id = "id"}) >= 0);
    check_ends_in("/runs/id.2.proctor");
    assert_int_equal(access(left, F_OK), 0);
}

static void test_a_named_file(void **state)
{
    (void)state;
    char mine[TREE_PATH + 32], log[TREE_PATH + 32];
    snprintf(mine, sizeof mine, "%s/mine", dir);
    snprintf(log, sizeof log, "%s/mine-wal", dir);
    struct pr_run_name name = {.path = mine, .id = "id"};
    assert_true(create(name) >= 0);
    assert_int_equal(create(name), -EEXIST);
    assert_non_null(strstr(err.message, "--force"));
    tree_write(dir, "mine-wal", "old");
    name.force = true;
    int fd = pr_run_file_create(&name, path, sizeof path, &err);
    assert_true(fd >= 0);
    assert_int_equal(create(name), -EBUSY); /* we record into it ourselves */
    pr_own_file_close(fd);
    assert_true(create(name) >= 0);
    assert_int_equal(access(log, F_OK), -1);
    name.path = dir;
    assert_int_equal(create(name), -EEXIST);
    name.path = "-";
    assert_int_equal(create(name), -EINVAL);
    assert_int_equal(pr_run_file_remove(mine), 0);
    assert_int_equal(pr_run_file_remove(mine), -ENOENT);
}

static void test_the_folder(void **state)
{
    (void)state;
    char text[256];
    setenv("PROCTOR_HOME", "", 1);
    setenv("XDG_STATE_HOME", "/state", 1);
    assert_true(pr_run_folder(text, sizeof text));
    assert_string_equal(text, "/state/proctor/runs");
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/home/x", 1);
    assert_true(pr_run_folder(text, sizeof text));
    assert_string_equal(text, "/home/x/.local/state/proctor/runs");
    assert_false(pr_run_folder(text, 10));
    unsetenv("HOME");
    assert_false(pr_run_folder(text, sizeof text));
    assert_int_equal(create((struct pr_run_name){.id = "id"}), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_metric_has_a_row),
        TEST(test_rows_go_in_and_come_out),
        TEST(test_what_derives_is_not_kept_of_many),
        TEST(test_names_in_the_folder),
        TEST(test_what_is_left_of_another_is_not_touched),
        TEST(test_a_named_file),
        TEST(test_the_folder),
    };
    return cmocka_run_group_tests_name("run_file", tests, NULL, NULL);
}
