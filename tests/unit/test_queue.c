/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "core/queue.h"

/* --- events ----------------------------------------------------------------------------------- */

static char said[256];
static unsigned said_count;

static void say(const char *text, void *data)
{
    snprintf(said, sizeof said, "%s", text);
    said_count += *(unsigned *)data;
}

static void test_events(void **state)
{
    (void)state;
    struct pr_events e;
    unsigned one = 1;
    pr_events_init(&e);
    e.say = say;
    e.say_data = &one;
    said_count = 0;
    pr_event_add(&e, EVENT_GAP, 1.5, 2.5, "stopped by %s", "SIGTSTP");
    assert_int_equal(said_count, 0); /* only trouble is said */
    pr_event_problem(&e, 3, "%s: no space", "a.csv");
    assert_int_equal(said_count, 1);
    assert_string_equal(said, "a.csv: no space");
    assert_int_equal(e.count, 2);
    assert_int_equal(e.problems, 1);
    assert_int_equal(e.item[0].type, EVENT_GAP);
    assert_exactly(e.item[0].at, 1.5);
    assert_exactly(e.item[0].seconds, 2.5);
    assert_string_equal(e.item[0].text, "stopped by SIGTSTP");
    assert_string_equal(pr_event_type_name(EVENT_GAP), "gap");
    assert_string_equal(pr_event_type_name(EVENT_CLOCK), "clock");
    assert_string_equal(pr_event_type_name(EVENT_BUDGET), "budget");
    assert_string_equal(pr_event_type_name(EVENT_PROBLEM), "problem");
}

static void test_events_are_bounded(void **state)
{
    (void)state;
    struct pr_events e;
    pr_events_init(&e);
    for (int i = 0; i < 1000; i++)
        pr_event_problem(&e, i, "%0500d", i);
    assert_int_equal(e.count, EVENTS_KEPT);
    assert_int_equal(e.total, 1000);
    assert_int_equal(e.problems, 1000);
    assert_exactly(e.item[0].at, 0); /* the first ones stay: they say how it began */
    assert_int_equal(strlen(e.item[0].text), sizeof e.item[0].text - 1);
}

static void *add_many(void *data)
{
    for (int i = 0; i < 1000; i++)
        pr_event_problem(data, 0, "x");
    return NULL;
}

static void test_events_from_many_threads(void **state)
{
    (void)state;
    struct pr_events e;
    pthread_t threads[4];
    pr_events_init(&e);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_create(&threads[i], NULL, add_many, &e);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(e.total, 4000);
    assert_int_equal(e.problems, 4000);
}

/* --- what is allocated ------------------------------------------------------------------------ */

static atomic_size_t allocated;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *data, size_t size);
void *__real_reallocarray(void *data, size_t n, size_t size);
void __real_free(void *data);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *data, size_t size);
void *__wrap_reallocarray(void *data, size_t n, size_t size);
void __wrap_free(void *data);

static void *counted(void *data)
{
    allocated += malloc_usable_size(data);
    return data;
}

void *__wrap_malloc(size_t size)
{
    return counted(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *data, size_t size)
{
    allocated -= malloc_usable_size(data);
    return counted(__real_realloc(data, size));
}

void *__wrap_reallocarray(void *data, size_t n, size_t size)
{
    allocated -= malloc_usable_size(data);
    return counted(__real_reallocarray(data, n, size));
}

void __wrap_free(void *data)
{
    allocated -= malloc_usable_size(data);
    __real_free(data);
}

/* --- the queue -------------------------------------------------------------------------------- */

struct recorder {
    struct pr_sink sink;
    int gate[2]; /* a byte here lets one write go on; -1 without a gate */
    int64_t seen[1000];
    size_t member_count[1000];
    pid_t first_member[1000];
    size_t count;
    bool closed;
};

static void record_write(struct pr_sink *sink, const struct proctor_snapshot *s)
{
    struct recorder *r = (struct recorder *)sink;
    char c;
    if (r->gate[0] >= 0)
        while (read(r->gate[0], &c, 1) < 0)
            ;
    r->seen[r->count] = s->elapsed;
    r->member_count[r->count] = s->member_count;
    r->first_member[r->count] = s->member_count ? s->members[0].pid : 0;
    r->count++;
}

static void record_close(struct pr_sink *sink)
{
    ((struct recorder *)sink)->closed = true;
}

static const struct pr_sink_ops record_ops = {record_write, record_close};

static struct pr_queue *start(struct recorder *r, size_t count, struct pr_events *events)
{
    struct pr_sink **sinks = calloc(count, sizeof *sinks);
    for (size_t i = 0; i < count; i++) {
        r[i].sink.ops = &record_ops;
        sinks[i] = &r[i].sink;
    }
    pr_events_init(events);
    struct pr_queue *q = pr_queue_new(sinks, count, events);
    assert_non_null(q);
    return q;
}

static void test_all_arrive_in_order_at_every_sink(void **state)
{
    (void)state;
    static struct recorder r[2];
    struct pr_events events;
    struct proctor_snapshot s = {0};
    memset(r, 0, sizeof r);
    r[0].gate[0] = r[1].gate[0] = -1;
    struct pr_queue *q = start(r, 2, &events);
    for (int i = 0; i < 50; i++) {
        s.elapsed = i;
        pr_queue_push(q, &s);
    }
    assert_true(pr_queue_finish(q, 10, 0));
    for (int k = 0; k < 2; k++) {
        assert_int_equal(r[k].count, 50);
        assert_true(r[k].closed);
        for (int i = 0; i < 50; i++)
            assert_int_equal(r[k].seen[i], i);
    }
    assert_int_equal(events.problems, 0);
}

/* Snapshots are copies: what the sampler does to its own afterwards is not seen. */
static void test_copies(void **state)
{
    (void)state;
    static struct recorder r;
    struct pr_events events;
    struct proctor_snapshot s = {0};
    memset(&r, 0, sizeof r);
    assert_int_equal(pipe(r.gate), 0);
    struct pr_queue *q = start(&r, 1, &events);
    for (int i = 1; i <= 20; i++) {
        assert_true(pr_snapshot_reserve(&s, (size_t)i, 0));
        s.member_count = (size_t)i;
        s.members[0].pid = i;
        pr_queue_push(q, &s);
        s.members[0].pid = -1;
    }
    s.member_count = 0;
    assert_int_equal(write(r.gate[1], "....................", 20), 20);
    assert_true(pr_queue_finish(q, 10, 0));
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(r.member_count[i], i + 1);
        assert_int_equal(r.first_member[i], i + 1);
    }
    pr_snapshot_done(&s);
    close(r.gate[0]);
    close(r.gate[1]);
}

/* Pushing never waits: a blocked output loses samples, said once, and goes on when it can. */
static void test_a_blocked_output_loses_samples_not_time(void **state)
{
    (void)state;
    static struct recorder r;
    struct pr_events events;
    struct proctor_snapshot s = {0};
    memset(&r, 0, sizeof r);
    assert_int_equal(pipe(r.gate), 0);
    struct pr_queue *q = start(&r, 1, &events);
    for (int i = 0; i < 200; i++) {
        s.elapsed = i;
        pr_queue_push(q, &s);
    }
    assert_int_equal(events.problems, 1);
    assert_contains(events.item[0].text, "blocked");
    close(r.gate[1]); /* every read goes on from here */
    assert_true(pr_queue_finish(q, 10, 0));
    assert_true(r.count >= 64 && r.count < 200);
    for (size_t i = 0; i < r.count; i++)
        assert_int_equal(r.seen[i], i);
    assert_true(r.closed);
    close(r.gate[0]);
}

static void test_a_stuck_writer_is_left_behind(void **state)
{
    (void)state;
    static struct recorder r; /* the thread keeps it for ever */
    static struct pr_events events;
    struct proctor_snapshot s = {0};
    assert_int_equal(pipe(r.gate), 0);
    struct pr_queue *q = start(&r, 1, &events);
    pr_queue_push(q, &s);
    assert_false(pr_queue_finish(q, 0.02, 0));
    assert_int_equal(events.problems, 1);
    assert_contains(events.item[0].text, "blocked");
}

/* Pushes 200 snapshots, `small` of them with few members, all others with very many, at a writer
 * that does not move: what waits has a bound all the same, and it is as it was pushed. */
static void check_memory_of_the_ring(int small)
{
    enum { PUSHED = 200, FEW = 10, MANY = 20000, BOUND = 64 * 1024 * 1024 };
    static struct recorder r;
    struct pr_events events;
    struct proctor_snapshot few = {0}, many = {0};
    memset(&r, 0, sizeof r);
    assert_int_equal(pipe(r.gate), 0);
    assert_true(pr_snapshot_reserve(&few, FEW, 0) && pr_snapshot_reserve(&many, MANY, 0));
    few.member_count = FEW;
    many.member_count = MANY;
    struct pr_queue *q = start(&r, 1, &events);
    size_t before = allocated, most = 0;
    for (int i = 0; i < PUSHED; i++) {
        struct proctor_snapshot *s = i < small ? &few : &many;
        s->elapsed = i;
        s->members[0].pid = i + 1;
        pr_queue_push(q, s);
        most = allocated > before + most ? allocated - before : most;
    }
    if (most > BOUND)
        fail_msg("%zu bytes are allocated for the ring", most);
    close(r.gate[1]); /* every read goes on from here */
    assert_true(pr_queue_finish(q, 10, 0));
    assert_true(r.count >= 4 && r.count < PUSHED && events.problems >= 1);
    for (size_t i = 0; i < r.count; i++) {
        assert_int_equal(r.first_member[i], r.seen[i] + 1);
        assert_true(r.member_count[i] == (r.seen[i] < small ? FEW : MANY));
    }
    assert_true(allocated <= before);
    pr_snapshot_done(&few);
    pr_snapshot_done(&many);
    close(r.gate[0]);
}

static void test_memory_for_many_members_is_bounded(void **state)
{
    (void)state;
    check_memory_of_the_ring(0);
}

/* The job grows while the writer is busy with the first of its snapshots. */
static void test_memory_of_a_job_that_grows_is_bounded(void **state)
{
    (void)state;
    check_memory_of_the_ring(3);
}

static void test_cpu_of_the_writer(void **state)
{
    (void)state;
    static struct recorder r;
    struct pr_events events;
    struct proctor_snapshot s = {0};
    memset(&r, 0, sizeof r);
    r.gate[0] = -1;
    struct pr_queue *q = start(&r, 1, &events);
    int64_t before = pr_queue_cpu(q);
    assert_int_equal(pr_queue_opening(q), 0);
    pr_queue_push(q, &s);
    for (int i = 0; i < 10000 && !pr_queue_opening(q); i++)
        usleep(1000);
    int64_t opening = pr_queue_opening(q);
    for (int i = 0; i < 500; i++)
        pr_queue_push(q, &s);
    int64_t after = pr_queue_cpu(q);
    assert_true(before >= 0 && after >= before && after < 10 * INT64_C(1000000000));
    assert_true(opening > 0 && opening <= after);
    assert_int_equal(pr_queue_opening(q), opening);
    assert_true(pr_queue_finish(q, 10, 0));
}

/* --- snapshots -------------------------------------------------------------------------------- */

static void test_snapshot_values_by_key(void **state)
{
    (void)state;
    struct proctor_snapshot s = {.time = 7, .elapsed = 1500000000, .interval = 500000000};
    double v = -1;
    s.value[METRIC_CPU_TIME] = 3;
    s.value[METRIC_MEM_PSS] = NAN;
    s.mark[METRIC_CPU_TIME] = MARK_LOWER_BOUND;
    assert_int_equal(proctor_snapshot_value(&s, "cpu.time", &v), 0);
    assert_exactly(v, 3);
    v = -1;
    assert_int_equal(proctor_snapshot_value(&s, "mem.pss", &v), -ENODATA);
    assert_int_equal(proctor_snapshot_value(&s, "nonsense", &v), -ENOENT);
    assert_exactly(v, -1); /* untouched on failure */
    assert_string_equal(proctor_snapshot_mark(&s, "cpu.time"), "lower bound");
    assert_null(proctor_snapshot_mark(&s, "mem.pss"));
    assert_null(proctor_snapshot_mark(&s, "nonsense"));
    const char *marks[METRIC_COUNT];
    assert_int_equal(proctor_snapshot_marks(&s, marks, METRIC_COUNT), METRIC_COUNT);
    for (int id = 0; id < METRIC_COUNT; id++)
        assert_true(!marks[id] == (id != METRIC_CPU_TIME));
    assert_string_equal(marks[METRIC_CPU_TIME], "lower bound");
    assert_exactly(proctor_snapshot_elapsed(&s), 1.5);
    assert_exactly(proctor_snapshot_interval(&s), 0.5);
    assert_int_equal(proctor_snapshot_time(&s), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_events_are_bounded),
        cmocka_unit_test(test_events_from_many_threads),
        cmocka_unit_test(test_all_arrive_in_order_at_every_sink),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_a_blocked_output_loses_samples_not_time),
        cmocka_unit_test(test_a_stuck_writer_is_left_behind),
        cmocka_unit_test(test_memory_for_many_members_is_bounded),
        cmocka_unit_test(test_memory_of_a_job_that_grows_is_bounded),
        cmocka_unit_test(test_cpu_of_the_writer),
        cmocka_unit_test(test_snapshot_values_by_key),
    };
    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
