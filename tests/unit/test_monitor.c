/* SPDX-License-Identifier: Apache-2.0 */
/* What the public functions do when something goes wrong; tests/api has the rest. */
#include <signal.h>
#include <sys/wait.h>

#include "tree.h"
#include "proctor/proctor.h"
#include "util/db.h"

static struct proctor_error err;
static struct proctor_monitor *m;

static int setup(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    return proctor_monitor_new(&m, &err);
}

static int teardown(void **state)
{
    (void)state;
    proctor_monitor_free(m);
    return 0;
}

static void test_watching_nothing(void **state)
{
    (void)state;
    assert_int_equal(proctor_monitor_start(m, &err), -EINVAL);
    assert_contains(err.message, "watches nothing");
    assert_int_equal(proctor_monitor_collect(m, NULL), -EINVAL);
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    assert_null(proctor_monitor_summary_json(m));
}

static void test_no_such_process(void **state)
{
    (void)state;
    assert_int_equal(proctor_monitor_watch_pid(m, 0x3ffffff, 0, &err), -ESRCH);
    assert_int_equal(err.code, ESRCH);
    assert_int_equal(proctor_monitor_start(m, &err), -EINVAL);
}

static void test_unknown_option(void **state)
{
    (void)state;
    assert_int_equal(proctor_monitor_set(m, "nonsense", "1", &err), -EINVAL);
    assert_contains(err.message, "nonsense");
    assert_int_equal(proctor_monitor_set(m, "json", "true", &err), -EINVAL); /* not of attach */
    assert_int_equal(proctor_monitor_set(m, "interval", "x", NULL), -EINVAL);
}

/* An output that cannot be opened: the failure is told, and told again, not forgotten. */
static void test_a_failed_start_stays_failed(void **state)
{
    (void)state;
    assert_int_equal(proctor_monitor_watch_pid(m, getpid(), 0, &err), 0);
    assert_int_equal(proctor_monitor_set(m, "csv", "/nonexistent-dir/x.csv", &err), 0);
    assert_int_equal(proctor_monitor_start(m, &err), -ENOENT);
    assert_contains(err.message, "/nonexistent-dir/x.csv");
    assert_true(proctor_monitor_start(m, &err) < 0);
    assert_true(proctor_monitor_collect(m, &err) < 0);
}

/* The process ended between watch and start: an error each time, and no crash. */
static void test_the_process_ended_before_the_start(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    assert_int_equal(proctor_monitor_watch_pid(m, child, 0, &err), 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(proctor_monitor_collect(m, &err), -ESRCH);
    assert_int_equal(proctor_monitor_collect(m, &err), -ESRCH);
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    assert_null(proctor_monitor_summary_json(m));
}

/* A label that was refused is not in the summary, and the summary can be made. */
static void test_a_refused_label_is_forgotten(void **state)
{
    (void)state;
    assert_int_equal(proctor_monitor_set(m, "label", "bad", &err), -EINVAL);
    assert_int_equal(proctor_monitor_set(m, "label", "good=1", &err), 0);
    assert_int_equal(proctor_monitor_watch_pid(m, getpid(), 0, &err), 0);
    assert_int_equal(proctor_monitor_collect(m, &err), 0);
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    const char *json = proctor_monitor_summary_json(m);
    assert_non_null(json);
    assert_contains(json, "\"good\": \"1\"");
    assert_null(strstr(json, "\"bad"));
}

static void test_in_a_forked_child_the_handle_is_dead(void **state)
{
    (void)state;
    int status;
    assert_int_equal(proctor_monitor_watch_pid(m, getpid(), 0, &err), 0);
    assert_int_equal(proctor_monitor_start(m, &err), 0);
    pid_t child = fork();
    if (child == 0) {
        double v;
        int good = proctor_monitor_stop(m, NULL) == -ECHILD &&
                   proctor_monitor_collect(m, NULL) == -ECHILD &&
                   proctor_monitor_total(m, "cpu.time", &v) == -ECHILD &&
                   proctor_monitor_summary_json(m) == NULL;
        proctor_monitor_free(m);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
}

static int64_t count(struct pr_db *db, const char *sql)
{
    struct pr_query *q = NULL;
    assert_int_equal(pr_query_new(&q, db, sql), 0);
    assert_int_equal(pr_query_step(q), 1);
    int64_t v = pr_query_get_int(q, 0);
    pr_query_free(q);
    return v;
}

/* The child frees a handle that SQLite is at work behind, and ends as any program does. */
static void test_a_run_file_outlives_a_forked_child(void **state)
{
    (void)state;
    char dir[TREE_PATH], path[TREE_PATH + 32], why[200];
    int status;
    struct pr_db *db = NULL;
    tree_new(dir);
    snprintf(path, sizeof path, "%s/run.proctor", dir);
    assert_int_equal(proctor_monitor_set(m, "output", path, &err), 0);
    assert_int_equal(proctor_monitor_set(m, "interval", "2ms", &err), 0);
    assert_int_equal(proctor_monitor_watch_pid(m, getpid(), 0, &err), 0);
    assert_int_equal(proctor_monitor_start(m, &err), 0);
    for (int i = 0; i < 10; i++) {
        usleep(5000);
        pid_t child = fork();
        if (child == 0) {
            proctor_monitor_free(m);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    assert_int_equal(pr_db_open(&db, path, DB_READ, why, sizeof why), 0);
    assert_int_equal(count(db, "SELECT count(*) FROM pragma_integrity_check"), 1);
    assert_int_equal(count(db, "SELECT count(*) FROM summary"), 1);
    assert_int_equal(count(db, "SELECT max(sample)-count(*) FROM job_samples"), 0);
    pr_db_close(db);
    tree_done(dir);
}

static void test_nothing_is_recorded_unasked(void **state)
{
    (void)state;
    char dir[TREE_PATH], path[TREE_PATH + 32];
    tree_new(dir);
    snprintf(path, sizeof path, "%s/runs", dir);
    setenv("PROCTOR_HOME", dir, 1);
    assert_int_equal(proctor_monitor_watch_pid(m, getpid(), 0, &err), 0);
    assert_int_equal(proctor_monitor_start(m, &err), 0);
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    assert_int_equal(access(path, F_OK), -1);
    unsetenv("PROCTOR_HOME");
    tree_done(dir);
}

static void most_procs(const struct proctor_snapshot *s, void *data)
{
    double procs;
    if (proctor_snapshot_value(s, "procs", &procs) == 0 && procs > *(double *)data)
        *(double *)data = procs;
}

/* The thread that samples has a number between those of processes, and the kernel takes it for the
 * process when it asks itself. */
static void test_own_group_without_the_thread_that_samples(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct proctor_monitor *own;
        double most = 0;
        setpgid(0, 0);
        bool good = proctor_monitor_new(&own, NULL) == 0 &&
                    proctor_monitor_watch_group(own, getpgrp(), NULL) == 0 &&
                    proctor_monitor_set(own, "interval", "20ms", NULL) == 0 &&
                    proctor_monitor_on_sample(own, most_procs, &most) == 0 &&
                    proctor_monitor_start(own, NULL) == 0;
        usleep(300 * 1000);
        good = good && proctor_monitor_stop(own, NULL) == 0;
        _exit(good ? (int)most : 100);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_watching_nothing),
        TEST(test_no_such_process),
        TEST(test_unknown_option),
        TEST(test_a_failed_start_stays_failed),
        TEST(test_the_process_ended_before_the_start),
        TEST(test_a_refused_label_is_forgotten),
        TEST(test_in_a_forked_child_the_handle_is_dead),
        TEST(test_a_run_file_outlives_a_forked_child),
        TEST(test_nothing_is_recorded_unasked),
        TEST(test_own_group_without_the_thread_that_samples),
    };
    return cmocka_run_group_tests_name("monitor", tests, NULL, NULL);
}
