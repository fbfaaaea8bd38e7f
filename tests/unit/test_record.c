/* SPDX-License-Identifier: Apache-2.0 */
/* The run file, statement by statement: whichever of them the disk has no room for, nothing else is
 * lost than the sample that was being written, and what is there says what was. */
#include "tree.h"
#include "core/phase.h"
#include "core/sink.h"
#include "util/db.h"

enum { SAMPLES = 8, PROCESSES = 3, FIRST = 100 };

static char dir[TREE_PATH], path[TREE_PATH + 32];
static struct pr_events events;
static struct pr_roll roll;
static struct pr_notes notes;
static struct proctor_error err;
static int calls, failing; /* the number of the statement that fails, 0 for none */

int __real_pr_query_do(struct pr_query *q);
int __wrap_pr_query_do(struct pr_query *q);

int __wrap_pr_query_do(struct pr_query *q)
{
    calls++;
    return calls == failing ? -ENOSPC : __real_pr_query_do(q);
}

/* --- what happens ----------------------------------------------------------------------------- */

/* Who is there: the first always, the second from sample 3 on, the third until sample 5. */
static bool is_there(int process, int sample)
{
    return process == 0 || (process == 1 && sample >= 3) || (process == 2 && sample <= 5);
}

/* It rests at every other sample. */
static double rss_of(int process, int sample)
{
    return 1e6 * (process + 1) + sample / 2 * 4096;
}

static void add_exit(int process, int64_t started)
{
    struct pr_roll_entry entry = {.pid = FIRST + process,
                                  .ppid = 1,
                                  .started = started,
                                  .ended = started + 5000000000,
                                  .cpu = 1.5,
                                  .peak = NAN,
                                  .io = {NAN, NAN, NAN, NAN},
                                  .status = 7 << 8,
                                  .way = ROLL_WAITED,
                                  .comm = "ended"};
    pr_roll_add(&roll, &entry);
}

static void note(enum pr_note_type type, int64_t elapsed, const char *members)
{
    pr_notes_add(&notes, (struct pr_note){type, elapsed}, members, strlen(members));
}

static int64_t started(int process)
{
    return INT64_C(1700000000000000000) + process * INT64_C(10000000);
}

static void happen(int sample)
{
    int64_t elapsed = sample * INT64_C(1000000000);
    if (sample == 2)
        note(NOTE_BEGIN, elapsed, "\"name\":\"p\",\"start\":1.25,\"seconds\":null,\"depth\":0");
    if (sample == 4)
        note(NOTE_PHASE, elapsed, "\"name\":\"p\",\"start\":1.25,\"seconds\":2.5,\"depth\":0");
    if (sample == 5)
        note(NOTE_EVENT, elapsed, "\"event\":\"mark\",\"name\":\"m\",\"data\":{\"a\":1}");
    if (sample == 3)
        pr_event_add(&events, EVENT_CLOCK, 3, 0, "the clock");
    if (sample == 6) {
        add_exit(2, started(2));
        add_exit(50, started(50)); /* nobody has sampled it */
    }
}

static void fill(struct proctor_snapshot *s, int sample)
{
    s->elapsed = sample * INT64_C(1000000000);
    s->time = INT64_C(1700000000000000000) + s->elapsed;
    s->interval = s->machine_interval = 1000000000;
    s->first = sample == 1;
    s->last = sample == SAMPLES;
    s->enrolled = roll.count;
    for (int id = 0; id < METRIC_COUNT; id++)
        s->value[id] = NAN;
    s->value[METRIC_CPU_TIME] = sample;
    s->value[METRIC_SYSTEM_LOAD1] = sample;
    s->mark[METRIC_CPU_TIME] = sample % 2 ? MARK_LOWER_BOUND : MARK_NONE;
    s->member_count = 0;
    for (int k = 0; k < PROCESSES; k++) {
        if (!is_there(k, sample))
            continue;
        struct pr_member *m = &s->members[s->member_count++];
        *m = (struct pr_member){.pid = FIRST + k, .ppid = 1, .started = started(k)};
        snprintf(m->comm, sizeof m->comm, "p%d%s", k, sample > 6 ? "x" : "");
        for (int id = 0; id < PROC_METRICS; id++)
            m->value[id] = NAN;
        m->value[METRIC_MEM_RSS] = rss_of(k, sample);
    }
    s->device_count = 1;
    s->devices[0] = (struct pr_device){.kind = DEVICE_CORE, .name = "0"};
    for (int slot = 0; slot < DEVICE_VALUES; slot++)
        s->devices[0].value[slot] = sample * 0.5;
}

static void record(void)
{
    struct pr_sink *sink = NULL;
    struct pr_sink_setting setting = {.path = path,
                                      .events = &events,
                                      .roll = &roll,
                                      .notes = &notes,
                                      .run = "\"id\":\"x\",\"interval\":1"};
    struct proctor_snapshot snap = {0};
    assert_true(pr_snapshot_reserve(&snap, PROCESSES, 1));
    for (int id = 0; id < METRIC_COUNT; id++)
        setting.select.shown[id] = true;
    setting.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(setting.fd >= 0);
    assert_int_equal(pr_record_open(&setting, &sink, &err), 0);
    for (int sample = 1; sample <= SAMPLES; sample++) {
        happen(sample);
        fill(&snap, sample);
        sink->ops->write(sink, &snap);
        sink->ops->notes(sink);
    }
    sink->ops->summary(sink, "\"exit\":{\"code\":3,\"signal\":null}");
    sink->ops->close(sink);
    pr_snapshot_done(&snap);
}

/* --- what is there ---------------------------------------------------------------------------- */

static struct pr_db *db;

static int64_t number(const char *format, ...)
{
    char sql[500];
    va_list args;
    struct pr_query *q = NULL;
    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    if (pr_query_new(&q, db, sql) < 0)
        fail_msg("%s: %s", sql, pr_db_why(db));
    int64_t v = pr_query_step(q) == 1 ? pr_query_get_int(q, 0) : -1;
    pr_query_free(q);
    return v;
}

static void check_number(int64_t want, int64_t got, const char *what)
{
    if (want != got)
        fail_msg("statement %d fails: %s: %ld, not %ld", failing, what, (long)got, (long)want);
}

/* Of each sample that is there, what the last row of each process says. */
static void check_members(void)
{
    for (int sample = 1; sample <= SAMPLES; sample++) {
        bool written = number("SELECT count(*) FROM job_samples WHERE sample=%d", sample) == 1;
        for (int k = 0; k < PROCESSES && written; k++) {
            int64_t entity = number("SELECT id FROM entities WHERE pid=%d AND first<=%d AND"
                                    " %d<=ifnull(last,%d)",
                                    FIRST + k, sample, sample, SAMPLES);
            check_number(is_there(k, sample), entity > 0, "who is there");
            if (entity > 0)
                check_number((int64_t)rss_of(k, sample),
                             number("SELECT mem_rss_bytes FROM process_samples WHERE entity=%ld AND"
                                    " sample<=%d ORDER BY sample DESC LIMIT 1",
                                    (long)entity, sample),
                             "memory of a process");
        }
        if (written)
            check_number(sample % 2,
                         number("SELECT json<>'{}' FROM mark_sets JOIN job_samples ON"
                                " id=marks WHERE sample=%d",
                                sample),
                         "marks");
    }
}

static void check_others(bool summary)
{
    check_number(1, number("SELECT count(*) FROM run"), "run");
    check_number(4, number("SELECT count(*) FROM entities WHERE kind='process'"), "processes");
    check_number(1, number("SELECT count(*) FROM entities WHERE kind='core'"), "cores");
    check_number(2, number("SELECT count(*) FROM entities WHERE exit_code=7 AND ended"), "ends");
    check_number(1, number("SELECT count(*) FROM entities WHERE first IS NULL AND last IS NULL"),
                 "who was never sampled");
    check_number(1, number("SELECT count(*) FROM phases"), "phases");
    check_number(1, number("SELECT count(*) FROM phases WHERE seconds=2.5 AND start=1250000000"),
                 "a phase that has ended");
    check_number(1, number("SELECT count(*) FROM events WHERE event='mark' AND name='m'"), "marks");
    check_number(1, number("SELECT count(*) FROM events WHERE event='clock'"), "events");
    check_number(summary, number("SELECT count(*) FROM summary"), "summary");
    check_number(summary ? 3 : 0, number("SELECT exit_code FROM run"), "exit");
    check_number(0,
                 number("SELECT count(*) FROM job_samples j JOIN job_samples b ON b.sample ="
                        " (SELECT max(sample) FROM job_samples WHERE sample<j.sample)"
                        " WHERE j.elapsed-b.elapsed<>j.interval"),
                 "intervals");
}

static void check_all(void)
{
    char why[200];
    assert_int_equal(pr_db_open(&db, path, DB_READ, why, sizeof why), 0);
    int64_t there = number("SELECT count(*) FROM job_samples");
    bool summary = number("SELECT count(*) FROM summary") == 1;
    /* One sample, or notes that go with the next, or the summary; nobody else is touched. */
    if (there < SAMPLES - 1 || (there < SAMPLES && !summary))
        fail_msg("statement %d fails: %d samples", failing, (int)there);
    check_members();
    check_others(summary);
    pr_db_close(db);
}

static void start(void)
{
    tree_new(dir);
    snprintf(path, sizeof path, "%s/run.proctor", dir);
    pr_events_init(&events);
    pr_notes_init(&notes);
    notes.wanted = true;
    roll = (struct pr_roll){0};
    calls = 0;
}

static void end(void)
{
    pr_notes_done(&notes);
    pr_roll_done(&roll);
    tree_done(dir);
}

static void test_nothing_fails(void **state)
{
    (void)state;
    start();
    failing = 0;
    record();
    check_all();
    assert_int_equal(events.problems, 0);
    end();
}

static void test_each_statement_fails_once(void **state)
{
    (void)state;
    start();
    failing = 0;
    record();
    int all = calls;
    end();
    assert_true(all > 60);
    for (int i = 1; i <= all; i++) {
        start();
        failing = i;
        record();
        assert_true(events.problems >= 1 && events.problems <= 2);
        check_all();
        end();
    }
}

/* Rows of what does not change are not there. */
static void test_only_changes_have_rows(void **state)
{
    char why[200];
    (void)state;
    start();
    failing = 0;
    record();
    assert_int_equal(pr_db_open(&db, path, DB_READ, why, sizeof why), 0);
    check_number(5,
                 number("SELECT count(*) FROM process_samples JOIN entities ON id=entity"
                        " WHERE pid=100"),
                 "rows of the first");
    check_number(2, number("SELECT count(*) FROM mark_sets"), "sets of marks");
    check_number(3, number("SELECT count(*) FROM core_samples"), "a line: first, second, last");
    check_number(SAMPLES, number("SELECT count(*) FROM system_samples"), "the machine");
    check_number(1, number("SELECT count(*) FROM entities WHERE pid=100 AND name='p0x'"), "name");
    check_number(5, number("SELECT last FROM entities WHERE pid=102"), "last sample of the third");
    pr_db_close(db);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_fails),
        cmocka_unit_test(test_only_changes_have_rows),
        cmocka_unit_test(test_each_statement_fails_once),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
