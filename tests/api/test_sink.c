/* SPDX-License-Identifier: Apache-2.0 */
/* A sink of the user's own: what it gets, when, in which thread, and what it cannot break. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <proctor/proctor.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct seen {
    struct proctor_monitor *m;
    atomic_int samples, lines, summaries, closed;
    char order[64]; /* the first letter of each call, once for several of a kind */
    pid_t thread;
    int deadlock, processes, devices, wrong;
    char phase[4096], event[4096];
    double rss, cores;
    atomic_bool hold; /* sample waits until this is false */
    int delay_ms;
};

static void note(struct seen *s, char what)
{
    size_t n = strlen(s->order);
    if ((n == 0 || s->order[n - 1] != what) && n + 1 < sizeof s->order)
        s->order[n] = what;
    if (s->thread && s->thread != gettid())
        s->wrong++;
    s->thread = gettid();
}

/* The process that we are: the only one, or the one with our pid. */
static void look_at_processes(const struct proctor_snapshot *s, struct seen *seen)
{
    double v;
    size_t n = proctor_snapshot_processes(s);
    seen->processes += (int)n;
    for (size_t i = 0; i < n; i++) {
        if (proctor_snapshot_process_pid(s, i) != getpid())
            continue;
        if (proctor_snapshot_process_value(s, i, "mem.rss", &v) == 0)
            seen->rss = v;
        seen->wrong += strcmp(proctor_snapshot_process_command(s, i), "test_sink") != 0;
        seen->wrong += proctor_snapshot_process_value(s, i, "no.such", &v) != -ENOENT;
        seen->wrong += proctor_snapshot_process_value(s, i, "system.mem.used", &v) != -ENOENT;
        seen->wrong += proctor_snapshot_process_value(s, i, "gpu.mem", &v) != -ENODATA;
    }
    seen->wrong += proctor_snapshot_process_value(s, n, "mem.rss", &v) != -EINVAL;
    seen->wrong += proctor_snapshot_process_pid(s, n) != -EINVAL;
    seen->wrong += proctor_snapshot_process_command(s, n) != NULL;
}

static void look_at_devices(const struct proctor_snapshot *s, struct seen *seen)
{
    double v, cores = 0;
    size_t n = proctor_snapshot_devices(s);
    seen->devices += (int)n;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(proctor_snapshot_device_kind(s, i), "core") != 0)
            continue;
        cores++;
        seen->wrong += *proctor_snapshot_device_name(s, i) == '\0';
        seen->wrong += proctor_snapshot_device_value(s, i, "system.cpu.user", &v) != 0 || v < 0;
        seen->wrong += proctor_snapshot_device_value(s, i, "mem.rss", &v) != -ENOENT;
        seen->wrong += proctor_snapshot_device_value(s, i, "no.such", &v) != -ENOENT;
    }
    seen->cores = cores > 0 ? cores : seen->cores;
    seen->wrong += proctor_snapshot_device_value(s, n, "system.cpu.user", &v) != -EINVAL;
    seen->wrong += proctor_snapshot_device_kind(s, n) || proctor_snapshot_device_name(s, n);
}

static void sample(const struct proctor_snapshot *s, void *data)
{
    struct seen *seen = data;
    struct proctor_error err;
    note(seen, 's');
    seen->samples++;
    look_at_processes(s, seen);
    look_at_devices(s, seen);
    seen->deadlock = proctor_monitor_mark(seen->m, "from the sink", NULL, &err);
    usleep((useconds_t)seen->delay_ms * 1000);
    while (seen->hold)
        usleep(1000);
}

static void line(const char *json, void *data)
{
    struct seen *seen = data;
    note(seen, 'l');
    seen->lines++;
    bool phase = strncmp(json, "{\"type\":\"phase\"", 15) == 0;
    snprintf(phase ? seen->phase : seen->event, sizeof seen->phase, "%s", json);
    seen->wrong += strchr(json, '\n') || json[strlen(json) - 1] != '}';
}

static void summary(const char *json, void *data)
{
    struct seen *seen = data;
    note(seen, 'S');
    seen->summaries++;
    seen->wrong += strncmp(json, "{\"schema\":1,", 12) != 0 || json[strlen(json) - 1] != '}';
}

static void close_it(void *data)
{
    struct seen *seen = data;
    note(seen, 'c');
    seen->closed++;
}

static struct proctor_monitor *monitor(void)
{
    struct proctor_monitor *m = NULL;
    struct proctor_error err;
    assert_int_equal(proctor_monitor_new(&m, &err), 0);
    assert_int_equal(proctor_monitor_watch_pid(m, getpid(), 0, &err), 0);
    assert_int_equal(proctor_monitor_set(m, "interval", "10ms", &err), 0);
    return m;
}

static struct proctor_monitor *with_sink(struct seen *seen, unsigned wants)
{
    struct proctor_sink sink = {sizeof sink, wants, sample, line, summary, close_it};
    struct proctor_error err = {0};
    struct proctor_monitor *m = monitor();
    seen->m = m;
    if (proctor_monitor_add_sink(m, &sink, seen, &err) < 0)
        fail_msg("%s", err.message);
    memset(&sink, 0xff, sizeof sink); /* it was copied */
    return m;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void count(const struct proctor_snapshot *s, void *data)
{
    (void)s;
    ++*(atomic_int *)data;
}

/* --- what it gets ----------------------------------------------------------------------------- */

static void gets_what_a_file_gets(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct proctor_error err;
    struct proctor_monitor *m = with_sink(&seen, PROCTOR_WANT_PROCESSES | PROCTOR_WANT_DEVICES);
    assert_int_equal(proctor_monitor_start(m, &err), 0);
    assert_int_equal(proctor_monitor_phase_begin(m, "p", &err), 0);
    usleep(200000);
    assert_int_equal(proctor_monitor_mark(m, "m", "{\"a\": 1}", &err), 0);
    assert_int_equal(proctor_monitor_phase_end(m, "p", &err), 0);
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    assert_int_equal(seen.wrong, 0);
    assert_true(seen.samples > 5 && seen.processes >= seen.samples);
    assert_int_equal(seen.summaries, 1);
    assert_int_equal(seen.closed, 1);
    assert_int_equal(seen.deadlock, -EDEADLK);
    assert_true(seen.thread != gettid() && seen.thread > 0);
    assert_true(seen.rss > 500000);
    assert_true(seen.cores == (double)sysconf(_SC_NPROCESSORS_ONLN));
    assert_int_equal(seen.lines, 2);
    assert_non_null(strstr(seen.phase, "\"name\":\"p\""));
    assert_non_null(strstr(seen.phase, "\"p99\":"));
    assert_non_null(strstr(seen.event, "\"event\":\"mark\",\"name\":\"m\",\"data\":{\"a\": 1}"));
    assert_string_equal(seen.order + strlen(seen.order) - 2, "Sc");
    assert_true(seen.order[0] == 's'); /* nothing before the first sample: it says when that was */
    proctor_monitor_free(m);
    assert_int_equal(seen.closed, 1);
}

static void gets_no_more_than_it_wants(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct proctor_monitor *m = with_sink(&seen, 0);
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_int_equal(seen.samples, 2);
    assert_int_equal(seen.processes + seen.devices + seen.wrong, 0);
    proctor_monitor_free(m);
}

static void several_and_parts(void **state)
{
    (void)state;
    struct seen first = {0}, second = {0};
    struct proctor_sink only_close = {.size = sizeof only_close, .close = close_it};
    struct proctor_monitor *m = with_sink(&first, PROCTOR_WANT_PROCESSES);
    assert_int_equal(proctor_monitor_add_sink(m, &only_close, &second, NULL), 0);
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    assert_int_equal(proctor_monitor_mark(m, "m", NULL, NULL), 0);
    proctor_monitor_free(m);
    assert_true(first.samples >= 2 && first.lines == 1 && first.closed == 1);
    assert_string_equal(second.order, "c");
}

/* --- what it cannot break --------------------------------------------------------------------- */

static void a_slow_one_delays_nothing(void **state)
{
    (void)state;
    struct seen seen = {.delay_ms = 200};
    atomic_int taken = 0;
    struct proctor_monitor *m = with_sink(&seen, 0);
    assert_int_equal(proctor_monitor_on_sample(m, count, &taken), 0);
    assert_int_equal(proctor_monitor_set(m, "flush-timeout", "60s", NULL), 0);
    double began = now();
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    usleep(1000000);
    int while_it_sleeps = taken;
    double took = now() - began;
    seen.delay_ms = 0;
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    if (while_it_sleeps < took / 0.01 / 4)
        fail_msg("%d samples in %.2f s", while_it_sleeps, took);
    assert_true(seen.samples >= took / 0.01 / 4 && seen.samples <= taken);
    const char *json = proctor_monitor_summary_json(m);
    assert_true(seen.samples == taken || strstr(json, "an output is blocked"));
    proctor_monitor_free(m);
}

static void one_that_hangs_is_left(void **state)
{
    (void)state;
    static struct seen seen = {.hold = true}; /* its thread outlives the test */
    struct proctor_monitor *m = with_sink(&seen, 0);
    assert_int_equal(proctor_monitor_set(m, "flush-timeout", "100ms", NULL), 0);
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    usleep(50000);
    double began = now();
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    proctor_monitor_free(m);
    assert_true(now() - began < 5);
    assert_int_equal(seen.samples, 1);
    assert_int_equal(seen.closed, 0);
}

static void added_wrongly(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct proctor_error err;
    struct proctor_sink sink = {.sample = sample};
    struct proctor_monitor *m = monitor();
    assert_int_equal(proctor_monitor_add_sink(m, &sink, &seen, &err), -EINVAL);
    assert_non_null(strstr(err.message, "sizeof"));
    assert_int_equal(proctor_monitor_collect(m, &err), 0);
    sink.size = sizeof sink;
    assert_int_equal(proctor_monitor_add_sink(m, &sink, &seen, &err), -EBUSY);
    proctor_monitor_free(m);
    assert_int_equal(seen.samples, 0);
}

static void closed_though_nothing_began(void **state)
{
    (void)state;
    struct seen seen = {0}, failed = {0};
    struct proctor_error err;
    struct proctor_monitor *m = with_sink(&seen, 0);
    proctor_monitor_free(m);
    assert_string_equal(seen.order, "c");
    assert_int_equal(seen.closed, 1);
    m = with_sink(&failed, 0);
    assert_int_equal(proctor_monitor_set(m, "csv", "/no/such/place", &err), 0);
    assert_int_equal(proctor_monitor_start(m, &err), -ENOENT);
    proctor_monitor_free(m);
    assert_string_equal(failed.order, "c");
    assert_int_equal(failed.closed, 1);
}

/* In a forked child nobody is called, at whatever moment the fork came. */
static void dead_in_a_forked_child(void **state)
{
    (void)state;
    for (int moment = 0; moment < 20; moment++) {
        struct seen seen = {0};
        int status = -1;
        struct proctor_sink sink = {.size = sizeof sink, .sample = sample};
        struct proctor_monitor *m = with_sink(&seen, PROCTOR_WANT_PROCESSES);
        if (moment % 3 == 1)
            assert_int_equal(proctor_monitor_collect(m, NULL), 0);
        if (moment % 3 == 2)
            assert_int_equal(proctor_monitor_start(m, NULL), 0);
        usleep((useconds_t)moment * 300);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(10);
            int before = seen.samples + seen.closed;
            bool dead = proctor_monitor_add_sink(m, &sink, &seen, NULL) == -ECHILD;
            proctor_monitor_free(m);
            _exit(dead && seen.samples + seen.closed == before ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        proctor_monitor_free(m);
        assert_int_equal(seen.closed, 1);
    }
}

int main(void)
{
    prctl(PR_SET_NAME, "test_sink");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gets_what_a_file_gets),  cmocka_unit_test(gets_no_more_than_it_wants),
        cmocka_unit_test(several_and_parts),      cmocka_unit_test(a_slow_one_delays_nothing),
        cmocka_unit_test(added_wrongly),          cmocka_unit_test(closed_though_nothing_began),
        cmocka_unit_test(dead_in_a_forked_child), cmocka_unit_test(one_that_hangs_is_left),
    };
    return cmocka_run_group_tests_name("sink", tests, NULL, NULL);
}
