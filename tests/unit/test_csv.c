/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "tree.h"
#include "core/config.h"
#include "core/sink.h"

/* --- a disk that can be full ------------------------------------------------------------------ */

static bool disk_is_full; /* then only `room` more bytes can be written */
static size_t room;

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);

ssize_t __wrap_write(int fd, const void *data, size_t len)
{
    if (!disk_is_full)
        return __real_write(fd, data, len);
    if (!room) {
        errno = ENOSPC;
        return -1;
    }
    len = len < room ? len : room;
    room -= len;
    return __real_write(fd, data, len);
}

/* --- reading CSV ------------------------------------------------------------------------------ */

static char dir[TREE_PATH], path[TREE_PATH + 32];
static struct pr_events events;
static struct pr_config config;
static struct proctor_error err;
static struct proctor_snapshot snap;
static char *text;

static int setup(void **state)
{
    (void)state;
    tree_new(dir);
    snprintf(path, sizeof path, "%s/run.csv", dir);
    pr_events_init(&events);
    pr_config_init(&config);
    disk_is_full = false;
    for (int i = 0; i < METRIC_COUNT; i++)
        snap.value[i] = NAN;
    snap.time = INT64_C(1700000000123456789);
    snap.elapsed = 2500000000;
    snap.interval = 1000000000;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_config_done(&config);
    pr_snapshot_done(&snap);
    free(text);
    text = NULL;
    tree_done(dir);
    return 0;
}

static char *file_text(const char *name)
{
    FILE *f = fopen(name, "r");
    if (!f)
        fail_msg("%s: %s", name, strerror(errno));
    free(text);
    text = calloc(1, 1 << 22);
    assert_true(fread(text, 1, (1 << 22) - 1, f) < (1 << 22) - 1);
    fclose(f);
    return text;
}

/* One record of RFC 4180 into fields, in place; returns how many. *rest is behind its newline. */
static size_t split(char *p, char **field, size_t most, char **rest)
{
    size_t n = 0;
    for (;;) {
        char *out = p;
        assert_true(n < most);
        field[n++] = out;
        if (*p == '"') {
            for (p++; *p && !(p[0] == '"' && p[1] != '"'); p++) {
                p += p[0] == '"';
                *out++ = *p;
            }
            assert_int_equal(*p++, '"');
        } else {
            for (; *p && *p != ',' && *p != '\n'; p++) {
                assert_int_not_equal(*p, '"');
                *out++ = *p;
            }
        }
        char end = *p;
        *out = '\0';
        if (end == ',') {
            p++;
            continue;
        }
        assert_int_equal(end, '\n'); /* and not \r\n */
        *rest = p + 1;
        return n;
    }
}

static struct pr_sink *open_sink(const char *name, bool processes)
{
    struct pr_sink_setting setting = {name, processes, pr_select_of(&config), &events};
    struct pr_sink *sink = NULL;
    int r = pr_csv_open(&setting, &sink, &err);
    if (r < 0)
        fail_msg("%s", err.message);
    return sink;
}

static void write_one(struct pr_sink *sink)
{
    sink->ops->write(sink, &snap);
}

static size_t column(char **header, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(header[i], name) == 0)
            return i;
    fail_msg("there is no column %s", name);
    return 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

static void test_header_then_rows(void **state)
{
    (void)state;
    char *header[100], *row[100], *p;
    snap.value[METRIC_CPU_TIME] = 1.25;
    snap.value[METRIC_MEM_RSS] = 4096;
    snap.value[METRIC_PROCS] = 3;
    snap.value[METRIC_CPU_PERCENT] = 0;
    struct pr_sink *sink = open_sink(path, false);
    write_one(sink);
    sink->ops->close(sink);
    size_t n = split(file_text(path), header, COUNT_OF(header), &p);
    assert_string_equal(header[0], "timestamp");
    assert_string_equal(header[1], "elapsed_seconds");
    assert_string_equal(header[2], "interval_seconds");
    assert_string_equal(header[3], "cpu_user_seconds"); /* in the order of metrics.def */
    assert_int_equal(split(p, row, COUNT_OF(row), &p), n);
    assert_string_equal(row[0], "1700000000.123");
    assert_near(atof(row[1]), 2.5, 1e-6);
    assert_near(atof(row[2]), 1, 1e-6);
    assert_string_equal(row[column(header, n, "cpu_time_seconds")], "1.25");
    assert_string_equal(row[column(header, n, "mem_rss_bytes")], "4096");
    assert_string_equal(row[column(header, n, "procs")], "3");
    assert_string_equal(row[column(header, n, "cpu_percent")], "0");  /* 0 is 0 */
    assert_string_equal(row[column(header, n, "mem_pss_bytes")], ""); /* absent is empty */
    assert_int_equal(*p, '\0');
    assert_int_equal(events.problems, 0);
}

static void test_the_header_needs_no_sample(void **state)
{
    (void)state;
    struct pr_sink *sink = open_sink(path, false);
    sink->ops->close(sink);
    assert_non_null(strchr(file_text(path), '\n'));
}

static void test_each_row_is_written_at_once(void **state)
{
    (void)state;
    struct pr_sink *sink = open_sink(path, false);
    size_t len = strlen(file_text(path));
    for (int i = 0; i < 5; i++) {
        write_one(sink);
        size_t now = strlen(file_text(path));
        assert_true(now > len);
        assert_int_equal(text[now - 1], '\n');
        len = now;
    }
    sink->ops->close(sink);
}

static void test_columns_do_not_depend_on_values(void **state)
{
    (void)state;
    char *row[100], *p;
    struct pr_sink *sink = open_sink(path, false);
    write_one(sink);
    for (int i = 0; i < METRIC_COUNT; i++)
        snap.value[i] = i;
    write_one(sink);
    sink->ops->close(sink);
    size_t n = split(file_text(path), row, COUNT_OF(row), &p), single = 0;
    for (int i = 0; i < METRIC_COUNT; i++)
        single += pr_metric_is_single((enum pr_metric_id)i);
    assert_true(single > 0 && single < METRIC_COUNT); /* those of GPUs are series */
    assert_int_equal(n, single + 3);
    assert_int_equal(split(p, row, COUNT_OF(row), &p), n);
    assert_int_equal(split(p, row, COUNT_OF(row), &p), n);
}

static void test_only_selected_columns(void **state)
{
    (void)state;
    pr_config_set(&config, OPTION_SELECT, "mem.rss,cpu.ratio", ORIGIN_OPTION, "", NULL);
    struct pr_sink *sink = open_sink(path, true);
    sink->ops->close(sink);
    assert_string_equal(file_text(path),
                        "timestamp,elapsed_seconds,interval_seconds,cpu_ratio,mem_rss_bytes\n");
    snprintf(path, sizeof path, "%s/run.processes.csv", dir);
    assert_string_equal(file_text(path), "timestamp,elapsed_seconds,interval_seconds,pid,ppid,"
                                         "started,command,cpu_ratio,mem_rss_bytes\n");
}

static void test_a_file_is_replaced(void **state)
{
    (void)state;
    char old[10000];
    memset(old, 'x', sizeof old - 1);
    old[sizeof old - 1] = '\0';
    tree_write(dir, "run.csv", old);
    struct pr_sink *sink = open_sink(path, false);
    sink->ops->close(sink);
    assert_null(strstr(file_text(path), "xxxx"));
}

/* --- one row per process ---------------------------------------------------------------------- */

static void test_processes(void **state)
{
    (void)state;
    static const char *const names[] = {"plain", "a,b", "say \"hi\"", "new\nline", "\xff) R"};
    static const char *const want[] = {"plain", "a,b", "say \"hi\"", "new\\x0aline", "\\xff) R"};
    char *header[100], *row[100], *p;
    assert_true(pr_snapshot_reserve(&snap, COUNT_OF(names), 0));
    snap.member_count = COUNT_OF(names);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct pr_member *m = &snap.members[i];
        *m = (struct pr_member){
            .pid = 10 + (int)i, .ppid = 1, .started = INT64_C(1699999999500000000)};
        snprintf(m->comm, sizeof m->comm, "%s", names[i]);
        for (int id = 0; id < METRIC_COUNT; id++)
            m->value[id] = NAN;
        m->value[METRIC_MEM_RSS] = 100 * (double)i;
    }
    struct pr_sink *sink = open_sink(path, true);
    write_one(sink);
    write_one(sink);
    sink->ops->close(sink);
    snprintf(path, sizeof path, "%s/run.processes.csv", dir);
    size_t n = split(file_text(path), header, COUNT_OF(header), &p);
    assert_string_equal(header[3], "pid");
    assert_string_equal(header[6], "command");
    size_t rss = column(header, n, "mem_rss_bytes");
    for (size_t i = 0; i < n; i++)
        assert_string_not_equal(header[i], "procs"); /* not of a process */
    for (size_t k = 0; k < 2 * COUNT_OF(names); k++) {
        size_t i = k % COUNT_OF(names);
        assert_int_equal(split(p, row, COUNT_OF(row), &p), n);
        assert_string_equal(row[0], "1700000000.123");
        assert_int_equal(atoi(row[3]), 10 + (int)i);
        assert_int_equal(atoi(row[4]), 1);
        assert_string_equal(row[5], "1699999999.500");
        assert_string_equal(row[6], want[i]);
        assert_int_equal(atoi(row[rss]), 100 * (int)i);
    }
    assert_int_equal(*p, '\0');
}

static void test_name_of_the_processes_file(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"a.csv", "a.processes.csv"},         {"a.b.csv", "a.b.processes.csv"},
        {"plain", "plain.processes"},         {".hidden", ".hidden.processes"},
        {"d.d/plain", "d.d/plain.processes"}, {"d.d/.csv", "d.d/.csv.processes"}};
    tree_write(dir, "d.d/x", "");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char other[TREE_PATH + 64];
        snprintf(path, sizeof path, "%s/%s", dir, cases[i][0]);
        snprintf(other, sizeof other, "%s/%s", dir, cases[i][1]);
        struct pr_sink *sink = open_sink(path, true);
        sink->ops->close(sink);
        assert_contains(file_text(path), "timestamp,");
        assert_contains(file_text(other), ",pid,ppid,");
    }
}

/* --- what can go wrong ------------------------------------------------------------------------ */

static void refuse(const char *name, bool processes, int code, const char *part)
{
    struct pr_sink_setting setting = {name, processes, pr_select_of(&config), &events};
    struct pr_sink *sink = NULL;
    assert_int_equal(pr_csv_open(&setting, &sink, &err), -code);
    assert_contains(err.message, part);
    assert_null(sink);
}

static void test_cannot_open(void **state)
{
    (void)state;
    refuse("/nonexistent-dir/x.csv", false, ENOENT, "/nonexistent-dir/x.csv");
    refuse(dir, false, EISDIR, dir);
    refuse("-", true, EINVAL, "--csv FILE");
    tree_write(dir, "run.processes.csv/dir", "");
    refuse(path, true, EISDIR, "run.processes.csv");
}

static void test_dev_full(void **state)
{
    (void)state;
    struct pr_sink *sink = open_sink("/dev/full", false);
    for (int i = 0; i < 100; i++)
        write_one(sink);
    assert_int_equal(events.problems, 1); /* said once, not a hundred times */
    assert_contains(events.item[0].text, "/dev/full");
    assert_contains(events.item[0].text, "No space");
    sink->ops->close(sink);
    assert_int_equal(events.problems, 2);
    assert_contains(events.item[1].text, "lost");
}

static void test_rows_kept_back_are_written_when_there_is_room(void **state)
{
    (void)state;
    char *row[100], *p;
    struct pr_sink *sink = open_sink(path, false);
    write_one(sink);
    disk_is_full = true;
    room = 25; /* the next row goes half way */
    for (int i = 0; i < 10; i++) {
        snap.value[METRIC_PROCS] = i;
        write_one(sink);
    }
    assert_int_equal(events.problems, 1);
    disk_is_full = false;
    write_one(sink);
    sink->ops->close(sink);
    size_t n = split(file_text(path), row, COUNT_OF(row), &p);
    for (int i = 0; i < 12; i++)
        assert_int_equal(split(p, row, COUNT_OF(row), &p), n);
    assert_int_equal(*p, '\0');
    assert_int_equal(events.problems, 1);
}

/* What is kept back is bounded, and what is dropped is dropped by whole rows. */
static void test_a_long_full_disk(void **state)
{
    (void)state;
    char *row[100], *p;
    struct pr_sink *sink = open_sink(path, false);
    disk_is_full = true;
    room = 10;
    for (int i = 0; i < 40000; i++)
        write_one(sink);
    disk_is_full = false;
    write_one(sink);
    sink->ops->close(sink);
    size_t n = split(file_text(path), row, COUNT_OF(row), &p), rows = 0;
    assert_true(strlen(p) > 500000 && strlen(p) < 2500000);
    for (; *p; rows++)
        assert_int_equal(split(p, row, COUNT_OF(row), &p), n);
    assert_true(rows > 1000 && rows < 40000);
    assert_int_equal(events.problems, 2);
    assert_contains(events.item[1].text, "lost");
}

static void test_a_full_disk_at_the_header(void **state)
{
    (void)state;
    char *row[100], *p;
    disk_is_full = true;
    room = 0;
    struct pr_sink *sink = open_sink(path, false);
    disk_is_full = false;
    write_one(sink);
    sink->ops->close(sink);
    size_t n = split(file_text(path), row, COUNT_OF(row), &p);
    assert_string_equal(row[0], "timestamp");
    assert_int_equal(split(p, row, COUNT_OF(row), &p), n);
}

/* Standard output is a pipe whose reader is gone. The writer's thread has signals blocked. */
static void test_closed_pipe(void **state)
{
    (void)state;
    int ends[2], saved = dup(STDOUT_FILENO);
    sigset_t pipe_only, old;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDOUT_FILENO);
    struct pr_sink *sink = open_sink("-", false);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(ends[1]);
    close(ends[0]);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &old);
    for (int i = 0; i < 10; i++)
        write_one(sink);
    sink->ops->close(sink);
    struct timespec now = {0};
    while (sigtimedwait(&pipe_only, NULL, &now) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    assert_int_equal(events.problems, 1);
    assert_contains(events.item[0].text, "Broken pipe");
}

/* The library in a host process: opening an output must not kill the host. */
static void test_opening_a_closed_pipe_kills_nobody(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        int ends[2];
        struct pr_sink *sink = NULL;
        struct pr_sink_setting setting = {"-", false, pr_select_of(&config), &events};
        signal(SIGPIPE, SIG_DFL);
        if (pipe(ends) < 0)
            _exit(9);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        pr_csv_open(&setting, &sink, &err);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFSIGNALED(status));
}

static void *drain(void *data)
{
    char room_for[700];
    size_t *total = data;
    int fd = (int)*total;
    *total = 0;
    for (ssize_t n; (n = read(fd, room_for, sizeof room_for)) > 0; *total += (size_t)n)
        usleep(50);
    return NULL;
}

/* Somebody else has made the pipe on standard output non-blocking: that is no reason to give up. */
static void test_a_non_blocking_pipe(void **state)
{
    (void)state;
    int ends[2], saved = dup(STDOUT_FILENO);
    pthread_t reader;
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    size_t got = (size_t)ends[0];
    dup2(ends[1], STDOUT_FILENO);
    struct pr_sink *sink = open_sink("-", false);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(ends[1]);
    pthread_create(&reader, NULL, drain, &got);
    snap.value[METRIC_CPU_TIME] = 12345.678;
    for (int i = 0; i < 500; i++)
        write_one(sink);
    sink->ops->close(sink);
    pthread_join(reader, NULL);
    close(ends[0]);
    assert_int_equal(events.problems, 0);
    assert_true(got > 500 * 50);
}

static void test_a_fifo_without_a_reader_does_not_block(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    struct pr_sink *sink = open_sink(path, false);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    write_one(sink);
    char some[64];
    assert_int_equal(read(fd, some, 9), 9);
    assert_memory_equal(some, "timestamp", 9);
    sink->ops->close(sink);
    close(fd);
}

/* One output in trouble does not touch the other. */
static void test_outputs_are_independent(void **state)
{
    (void)state;
    char *row[100], *p;
    struct pr_sink *bad = open_sink("/dev/full", false), *good = open_sink(path, false);
    for (int i = 0; i < 5; i++) {
        write_one(bad);
        write_one(good);
    }
    bad->ops->close(bad);
    good->ops->close(good);
    size_t n = split(file_text(path), row, COUNT_OF(row), &p), rows = 0;
    for (; *p; rows++)
        assert_int_equal(split(p, row, COUNT_OF(row), &p), n);
    assert_int_equal(rows, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_header_then_rows),
        TEST(test_the_header_needs_no_sample),
        TEST(test_each_row_is_written_at_once),
        TEST(test_columns_do_not_depend_on_values),
        TEST(test_only_selected_columns),
        TEST(test_a_file_is_replaced),
        TEST(test_processes),
        TEST(test_name_of_the_processes_file),
        TEST(test_cannot_open),
        TEST(test_dev_full),
        TEST(test_rows_kept_back_are_written_when_there_is_room),
        TEST(test_a_long_full_disk),
        TEST(test_a_full_disk_at_the_header),
        TEST(test_closed_pipe),
        TEST(test_opening_a_closed_pipe_kills_nobody),
        TEST(test_a_non_blocking_pipe),
        TEST(test_a_fifo_without_a_reader_does_not_block),
        TEST(test_outputs_are_independent),
    };
    return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
