/* SPDX-License-Identifier: Apache-2.0 */
/* A run file that is made up, read back. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "check.h"
#include "core/own_files.h"
#include "core/run_file.h"
#include "store/change.h"
#include "store/find.h"
#include "store/replay_parts.h"
#include "util/clock.h"

#define SAMPLES 8
#define START   INT64_C(1794768458000000000)

static char folder[64], path[128];

/* One sample a second; the machine is read with each. */
static int make_file(void **state)
{
    (void)state;
    struct pr_db *db = NULL;
    struct pr_buf sql = {0};
    char why[160] = "";
    bool shown[METRIC_COUNT];
    for (int i = 0; i < METRIC_COUNT; i++)
        shown[i] = true;
    snprintf(folder, sizeof folder, "/tmp/proctor-test-store-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.proctor", folder);
    assert_int_equal(pr_db_open(&db, path, DB_CREATE, why, sizeof why), 0);
    pr_buf_str(&sql, "PRAGMA synchronous=OFF;"); /* no disk has to be waited for */
    pr_run_file_schema(&sql);
    pr_run_file_metrics(&sql, shown);
    pr_buf_printf(&sql,
                  "INSERT INTO run(id, host, started, interval, about) VALUES('a', 'h', %lld,"
                  " 1000000000, '{\"limits\":{\"cpu\":{\"cores\":4,\"source\":\"s\"}}}');",
                  (long long)START);
    pr_buf_str(&sql,
               "INSERT INTO mark_sets VALUES(1, '{}'), (2, '{\"mem.pss\":\"lower bound\"}');");
    for (int i = 1; i <= SAMPLES; i++)
        pr_buf_printf(&sql,
                      "INSERT INTO job_samples(sample, elapsed, interval, marks, cpu_time_seconds)"
                      " VALUES(%d, %d000000000, 1000000000, %d, %d);"
                      "INSERT INTO system_samples(sample, interval) VALUES(%d, 1000000000);",
                      i, i, i == 3 || i == 4 ? 2 : 1, i, i);
    assert_int_equal(pr_db_run(db, pr_buf_text(&sql)), 0);
    pr_buf_done(&sql);
    pr_db_close(db);
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    assert_int_equal(pr_run_file_remove(path), 0);
    return rmdir(folder);
}

static void add(const char *sql)
{
    struct pr_db *db = NULL;
    char why[160] = "";
    assert_int_equal(pr_db_open(&db, path, DB_CHANGE, why, sizeof why), 0);
    if (pr_db_run(db, "PRAGMA synchronous=OFF") < 0 || pr_db_run(db, sql) < 0)
        fail_msg("%s", pr_db_why(db));
    pr_db_close(db);
}

/* What comes back, sample by sample. */
static struct {
    int count, notes;
    double core[SAMPLES], usage[SAMPLES], cpu[SAMPLES], rate[SAMPLES], gpu[SAMPLES], job[SAMPLES];
    unsigned char mark[SAMPLES];
    char order[256]; /* what came when */
} got;

static double slot_of(const struct pr_device *d, enum pr_metric_id id)
{
    return d->value[pr_device_slot(d->kind, id)];
}

static void on_sample(void *of, const struct proctor_snapshot *s)
{
    (void)of;
    int i = got.count++;
    got.core[i] = got.usage[i] = got.cpu[i] = got.rate[i] = got.gpu[i] = NAN;
    got.job[i] = s->value[METRIC_CPU_TIME];
    got.mark[i] = s->mark[METRIC_MEM_PSS];
    assert_int_equal(s->time, START + s->elapsed);
    for (size_t k = 0; k < s->device_count; k++) {
        const struct pr_device *d = &s->devices[k];
        if (d->kind == DEVICE_CORE) {
            got.core[i] = slot_of(d, METRIC_SYSTEM_CPU_TIME);
            got.usage[i] = slot_of(d, METRIC_SYSTEM_CPU_USAGE);
        } else if (d->kind == DEVICE_GPU) {
            got.gpu[i] = slot_of(d, METRIC_GPU_POWER);
            assert_string_equal(d->uuid, "u");
        }
    }
    for (size_t k = 0; k < s->member_count; k++) {
        assert_string_equal(s->members[k].comm, "job");
        got.cpu[i] = s->members[k].value[METRIC_CPU_TIME];
        got.rate[i] = s->members[k].value[METRIC_CPU_USAGE];
    }
    snprintf(got.order + strlen(got.order), sizeof got.order - strlen(got.order), "%d ", i + 1);
}

static void note(const char *kind, const char *name)
{
    snprintf(got.order + strlen(got.order), sizeof got.order - strlen(got.order), "%s%s ", kind,
             name);
}

static void on_begin(void *of, const struct pr_replayed_phase *phase)
{
    (void)of;
    note("<", phase->name);
}

static void on_end(void *of, const struct pr_replayed_phase *phase)
{
    (void)of;
    note(">", phase->name);
}

static void on_mark(void *of, int64_t elapsed, const char *name, const char *data)
{
    (void)of;
    (void)elapsed;
    assert_string_equal(data, "{\"a\":1}");
    note("!", name);
}

static void on_event(void *of, const struct pr_event *e)
{
    (void)of;
    note("?", pr_event_type_name(e->type));
}

static void on_entry(void *of, const struct pr_roll_entry *e)
{
    (void)of;
    note("-", e->comm);
}

static int replay(struct proctor_error *err)
{
    static const struct pr_replay_to to = {true,    true,     on_sample, on_event,
                                           on_mark, on_begin, on_end,    on_entry};
    struct pr_stored *r = NULL;
    memset(&got, 0, sizeof got);
    int code = pr_stored_open(&r, path, STORED_READ, err);
    if (code == 0)
        code = pr_replay(r, &to, NULL, err);
    pr_stored_close(r);
    return code;
}

static void check(const double *is, const double *should)
{
    for (int i = 0; i < SAMPLES; i++)
        if (!(fabs(is[i] - should[i]) < 1e-9) && !(isnan(is[i]) && isnan(should[i])))
            fail_msg("sample %d: %g, not %g", i + 1, is[i], should[i]);
}

static void test_cores_are_on_lines(void **state)
{
    (void)state;
    add("INSERT INTO entities(id, kind, name, first, counted) VALUES(1, 'core', '0', 2, 1);"
        "INSERT INTO core_samples(sample, entity, system_cpu_time_seconds)"
        " VALUES(2, 1, 0), (3, 1, 1), (6, 1, 1.6);");
    assert_int_equal(replay(NULL), 0);
    assert_int_equal(got.count, SAMPLES);
    check(got.core, (double[]){NAN, 0, 1, 1.2, 1.4, 1.6, 1.8, 2.0}); /* and on behind the last */
    check(got.usage, (double[]){NAN, NAN, 1, 0.2, 0.2, 0.2, 0.2, 0.2});
}

static void test_a_process_is_as_it_was_until_it_is_gone(void **state)
{
    (void)state;
    add("INSERT INTO entities(id, kind, name, pid, ppid, started, first, last)"
        " VALUES(1, 'process', 'job', 7, 1, 1794768458000000000, 2, 6);"
        "INSERT INTO process_samples(sample, entity, cpu_time_seconds)"
        " VALUES(2, 1, 0.5), (4, 1, 1.5), (7, 1, 9), (8, 99, 9);");
    assert_int_equal(replay(NULL), 0);
    check(got.cpu, (double[]){NAN, 0.5, 0.5, 1.5, 1.5, 1.5, NAN, NAN});
    check(got.rate, (double[]){NAN, 0.5, 0, 1, 0, 0, NAN, NAN}); /* born inside: from nothing */
}

static void test_a_gpu_without_a_reading_is_not_there(void **state)
{
    (void)state;
    add("INSERT INTO entities(id, kind, name, first, uuid, counted) VALUES(1, 'gpu', 'gpu0', 1, "
        "'u',"
        " 1); INSERT INTO gpu_samples(sample, entity, gpu_power_watts)"
        " VALUES(1, 1, 100), (3, 1, NULL), (5, 1, 200);");
    assert_int_equal(replay(NULL), 0);
    check(got.gpu, (double[]){100, 100, NAN, NAN, 200, 200, 200, 200});
}

static void test_marks_are_of_their_sample(void **state)
{
    (void)state;
    assert_int_equal(replay(NULL), 0);
    for (int i = 0; i < SAMPLES; i++)
        assert_int_equal(got.mark[i], i == 2 || i == 3 ? MARK_LOWER_BOUND : MARK_NONE);
}

static void test_all_comes_in_its_order(void **state)
{
    (void)state;
    add("INSERT INTO phases(name, start, seconds, depth) VALUES('out', 1500000000, 3.0, 0),"
        " ('in', 2500000000, 2.0, 1), ('open', 5500000000, NULL, 0);"
        "INSERT INTO events(elapsed, event, name, text, data) VALUES(2600000000, 'mark', 'm', '',"
        " '{\"a\":1}'), (3100000000, 'oom', NULL, 'x', NULL), (3200000000, 'of the future', NULL,"
        " 'x', NULL), (99000000000, 'gap', NULL, 'late', NULL);"
        "INSERT INTO entities(id, kind, name, pid, started, ended) VALUES(1, 'process', 'gone', 5, "
        "0,"
        " 1794768461500000000), (2, 'process', 'here', 6, 0, NULL);");
    assert_int_equal(replay(NULL), 0);
    assert_string_equal(got.order, "1 <out 2 <in !m 3 ?oom ?problem -gone 4 >in >out 5 <open 6 7 8 "
                                   "?gap -here ");
}

static void test_columns_are_found_by_name(void **state)
{
    (void)state;
    add("ALTER TABLE job_samples ADD COLUMN of_a_later_version REAL DEFAULT 5;"
        "ALTER TABLE job_samples DROP COLUMN mem_rss_bytes;"
        "INSERT INTO entities(id, kind, name, first) VALUES(1, 'quantum', 'q', 1);");
    assert_int_equal(replay(NULL), 0);
    check(got.job, (double[]){1, 2, 3, 4, 5, 6, 7, 8});
}

static void test_a_gap_in_the_numbers(void **state)
{
    (void)state;
    add("DELETE FROM job_samples WHERE sample BETWEEN 3 AND 5;"
        "INSERT INTO entities(id, kind, name, pid, started, first) VALUES(1, 'process', 'job', 7,"
        " 1794768458000000000, 1);"
        "INSERT INTO process_samples(sample, entity, cpu_time_seconds) VALUES(1, 1, 1), (4, 1, "
        "4);");
    assert_int_equal(replay(NULL), 0);
    assert_int_equal(got.count, SAMPLES - 3);
    check(got.cpu, (double[]){1, 1, 4, 4, 4, 0, 0, 0}); /* the row between is not lost */
}

static void test_what_is_wrong_is_said(void **state)
{
    (void)state;
    struct proctor_error err;
    add("PRAGMA user_version=77");
    assert_int_equal(replay(&err), -EPROTO);
    assert_non_null(strstr(err.message, "77"));
    add("PRAGMA user_version=1; PRAGMA application_id=1");
    assert_int_equal(replay(&err), -EMEDIUMTYPE);
    add("PRAGMA application_id=1886544756; UPDATE mark_sets SET json = 'no json'");
    assert_int_equal(replay(&err), -EUCLEAN);
    assert_non_null(strstr(err.message, "a.proctor"));
    add("DELETE FROM run");
    assert_int_equal(replay(&err), -EUCLEAN);
}

static enum pr_run_state state_of(void)
{
    struct pr_run_row row;
    pr_run_row_read(&row, path);
    assert_null(row.trouble);
    enum pr_run_state state = row.state;
    pr_run_row_done(&row);
    return state;
}

static void test_who_records(void **state)
{
    (void)state;
    assert_int_equal(state_of(), RUN_ELSEWHERE); /* "h" is another machine */
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pr_own_file_record(fd), 0);
    assert_int_equal(state_of(), RUN_RUNNING); /* without a lock, too */
    struct pr_stored *r = NULL;
    assert_int_equal(pr_stored_open(&r, path, STORED_READ, NULL), 0);
    pr_own_file_close(fd);
    assert_true(fcntl(fd, F_GETFD) >= 0); /* somebody reads */
    assert_int_equal(state_of(), RUN_ELSEWHERE);
    pr_stored_close(r);
    assert_true(fcntl(fd, F_GETFD) < 0);
    int other = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_EX), 0);
    assert_int_equal(state_of(), RUN_RUNNING);
    close(other);
    add("UPDATE run SET host = NULL");
    assert_int_equal(state_of(), RUN_DIED);
}

static void test_the_newest_summary_counts(void **state)
{
    (void)state;
    struct pr_run_row row;
    struct pr_buf text = {0};
    struct pr_stored *r = NULL;
    add("INSERT INTO summary VALUES('{\"run\":{\"duration\":3}}', 1), ('{\"run\":\n"
        "{\"duration\":1e0}}', 0)");
    pr_run_row_read(&row, path);
    assert_true(row.state == RUN_ENDED && !row.recovered && row.seconds == 1);
    pr_run_row_done(&row);
    assert_int_equal(pr_stored_open(&r, path, STORED_READ, NULL), 0);
    assert_int_equal(pr_stored_summary(r, &text, NULL), 0);
    assert_string_equal(pr_buf_text(&text), "{\"run\":{\"duration\":1e0}}");
    pr_stored_close(r);
    pr_buf_done(&text);
}

/* Another core has a row for each of many samples: they are not read for the one that has none. */
static void test_a_core_without_rows_costs_nothing(void **state)
{
    (void)state;
    struct pr_stored *r = NULL;
    struct pr_replayed_devices d;
    struct proctor_snapshot s = {.elapsed = NS_PER_S, .machine_interval = NS_PER_S};
    add("INSERT INTO entities(id, kind, name, first) VALUES(1, 'core', 'cpu0', 1),"
        " (2, 'core', 'cpu1', 1);"
        "WITH RECURSIVE n(i) AS (VALUES(9) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
        " INSERT INTO job_samples(sample, elapsed, interval) SELECT i, i * 1000000000, 1000000000"
        " FROM n;"
        "INSERT INTO core_samples(sample, entity, system_cpu_time_seconds) SELECT sample, 1, sample"
        " FROM job_samples");
    assert_int_equal(pr_stored_open(&r, path, STORED_READ, NULL), 0);
    pr_replayed_devices_open(&d, r);
    pr_replayed_devices_step(&d, 1, true, &s);
    assert_int_equal(d.code, 0);
    assert_int_equal(s.device_count, 1);
    assert_true(d.items[0].ahead_count < 1000 && d.items[0].ahead_count > 60);
    pr_replayed_devices_close(&d);
    pr_snapshot_done(&s);
    pr_stored_close(r);
}

static void test_a_died_run_is_completed_once(void **state)
{
    (void)state;
    struct pr_stored *r = NULL;
    struct pr_run_row row;
    add("PRAGMA journal_mode=WAL; UPDATE run SET host = NULL; INSERT INTO phases(name, start, "
        "depth) VALUES('a', 1000000000, "
        "0),"
        " ('b', 2000000000, 1)");
    pr_run_row_read(&row, path);
    assert_int_equal(row.state, RUN_DIED);
    assert_true(row.seconds == SAMPLES && row.samples == SAMPLES && row.cpu == SAMPLES);
    pr_run_row_done(&row);
    assert_int_equal(pr_stored_open(&r, path, STORED_CHANGE, NULL), 0);
    assert_int_equal(pr_stored_complete(r,
                                        "{\"run\":{\"duration\":8},\"phases\":[{\"name\":\"a\","
                                        "\"start\":1,\"seconds\":7}]}",
                                        NULL),
                     0);
    pr_stored_close(r);
    assert_int_equal(pr_stored_open(&r, path, STORED_READ, NULL), 0);
    assert_int_equal(r->state, RUN_ENDED);
    assert_true(r->recovered && r->ended == START + 8 * NS_PER_S);
    assert_true(pr_stored_number(r, r->about, "$.limits.cpu.cores") == 4 &&
                r->limits.total[LIMIT_CPU] == 4 && isnan(r->limits.total[LIMIT_MEMORY]));
    pr_stored_close(r);
    assert_int_equal(replay(NULL), 0);
    assert_string_equal(got.order, "<a 1 <b 2 3 4 5 6 7 >b >a 8 "); /* each has a length */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cores_are_on_lines, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_a_process_is_as_it_was_until_it_is_gone, make_file,
                                        remove_file),
        cmocka_unit_test_setup_teardown(test_a_gpu_without_a_reading_is_not_there, make_file,
                                        remove_file),
        cmocka_unit_test_setup_teardown(test_marks_are_of_their_sample, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_all_comes_in_its_order, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_columns_are_found_by_name, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_a_gap_in_the_numbers, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_what_is_wrong_is_said, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_who_records, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_the_newest_summary_counts, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_a_core_without_rows_costs_nothing, make_file,
                                        remove_file),
        cmocka_unit_test_setup_teardown(test_a_died_run_is_completed_once, make_file, remove_file),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
