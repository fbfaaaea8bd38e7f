/* SPDX-License-Identifier: Apache-2.0 */
/* Whole sessions over trees that change between ticks. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "recording.h"

static struct recording r;

static int setup(void **state)
{
    (void)state;
    recording_new(&r);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    recording_done(&r);
    return 0;
}

static void begin(void)
{
    recording_begin(&r, (struct pr_target_setting){.root = 100});
}

static double ticks(double n)
{
    return n / (double)r.s.host.ticks_per_second;
}

/* --- captured trees --------------------------------------------------------------------------- */

/* A shell with dd and yes; then dd has ended, the shell has waited for it and started sleep. */
static void test_captured(void **state)
{
    (void)state;
    tree_swap(r.dir, "captured/t0");
    recording_begin(&r, (struct pr_target_setting){.root = 768});
    recording_tick(&r);
    assert_exactly(value_of(&r, CPU_TIME), 0); /* what they had used before does not count */
    assert_exactly(value_of(&r, IO_WCHAR), 0);
    assert_exactly(value_of(&r, PROCS), 3);
    assert_exactly(value_of(&r, MEM_RSS), (800 + 488 + 434) * (double)r.s.host.page_size);
    assert_exactly(value_of(&r, MEM_PSS), (595 + 404 + 270) * 1024);
    assert_absent(value_of(&r, CPU_USAGE)); /* no rate without an interval */

    tree_swap(r.dir, "captured/t1");
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(57 + 55), 1e-9);
    assert_near(value_of(&r, CPU_USER), ticks(4 + 15), 1e-9);
    assert_exactly(value_of(&r, IO_WCHAR), 45241180160.0);
    assert_exactly(value_of(&r, FAULTS_MINOR), 0);
    assert_near(value_of(&r, CPU_USAGE), ticks(112) / proctor_snapshot_interval(&r.s.now), 1e-6);

    tree_swap(r.dir, "captured/t2");
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(137 + 158 - 71), 1e-9);
    assert_exactly(value_of(&r, FAULTS_MINOR), 255);
    assert_exactly(value_of(&r, IO_WCHAR), 88945516648.0); /* dd's is in the shell's: once */
    assert_exactly(value_of(&r, MEM_RSS), 1800 * (double)r.s.host.page_size);
    assert_exactly(value_of(&r, MEM_PSS), 1693 * 1024);
    assert_exactly(value_of(&r, MEM_USS), 1140 * 1024);
    assert_exactly(value_of(&r, FDS), 9);
    assert_exactly(value_of(&r, THREADS), 3);
    assert_exactly(value_of(&r, PROCS), 3);
    assert_exactly(value_of(&r, PROCS_STARTED), 4);
    assert_exactly(value_of(&r, PROCS_EXITED), 1);
    assert_exactly(value_of(&r, MEM_RSS_PEAK), fmax(3728 * 1024, 1800 * 4096));
    assert_int_equal(r.s.ledger.unabsorbed, 0);
    assert_exactly(r.s.limits.total[LIMIT_CPU], 2);
    assert_exactly(r.s.limits.total[LIMIT_MEMORY], 24684100.0 * 1024);
    assert_near(value_of(&r, MEM_RATIO), 1693.0 / 24684100, 1e-12);
    pr_session_end(&r.s);
    assert_int_equal(r.s.taken, 4);
}

/* --- the account ------------------------------------------------------------------------------ */

static void test_child_reaped(void **state)
{
    (void)state;
    struct fake_process p = {.pid = 100, .ppid = 1, .minflt = 100, .utime = 10, .wchar = 1000};
    struct fake_process c = {.pid = 101, .ppid = 100, .minflt = 50, .utime = 40, .wchar = 500};
    tree_process(r.dir, p);
    recording_begin(&r, (struct pr_target_setting){.root = 100, .fresh = true});
    recording_tick(&r);
    tree_process(r.dir, c);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(50), 1e-9);
    assert_exactly(value_of(&r, IO_WCHAR), 1500);
    tree_remove(r.dir, 101);
    p.cminflt = 60;
    p.cutime = 44;
    p.wchar = 1600;
    tree_process(r.dir, p);
    for (int i = 0; i < 3; i++) {
        recording_tick(&r);
        assert_near(value_of(&r, CPU_TIME), ticks(54), 1e-9);
        assert_exactly(value_of(&r, IO_WCHAR), 1600);
        assert_exactly(value_of(&r, FAULTS_MINOR), 160);
    }
    assert_int_equal(r.s.ledger.unabsorbed, 0);
    pr_session_end(&r.s);
    assert_near(pr_stats_total(&r.s.stats, METRIC_CPU_TIME), ticks(54), 1e-9);
}

static void test_child_lost(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .minflt = 9, .utime = 10});
    tree_process(r.dir, (struct fake_process){.pid = 101, .ppid = 100, .minflt = 5, .utime = 40});
    recording_begin(&r, (struct pr_target_setting){.root = 100, .fresh = true});
    recording_tick(&r);
    tree_remove(r.dir, 101);
    for (int i = 0; i < 3; i++) {
        recording_tick(&r);
        assert_near(value_of(&r, CPU_TIME), ticks(50), 1e-9);
    }
    assert_int_equal(r.s.ledger.unabsorbed, 1);
}

static void test_no_children(void **state)
{
    (void)state;
    r.config.no_children = true;
    struct fake_process p = {.pid = 100, .ppid = 1, .utime = 10, .cutime = 1000, .cminflt = 7};
    tree_process(r.dir, p);
    tree_process(r.dir, (struct fake_process){.pid = 101, .ppid = 100, .utime = 500});
    begin();
    recording_tick(&r);
    p.utime = 15;
    p.cutime = 3000;
    tree_process(r.dir, p);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(5), 1e-9);
    assert_exactly(value_of(&r, PROCS), 1);
}

/* --- gauges ----------------------------------------------------------------------------------- */

static void test_peak_of_sums(void **state)
{
    (void)state;
    tree_process(r.dir,
                 (struct fake_process){.pid = 100, .ppid = 1, .rss_pages = 300, .hwm_kb = 1600});
    tree_process(r.dir,
                 (struct fake_process){.pid = 101, .ppid = 100, .rss_pages = 200, .hwm_kb = 900});
    begin();
    double page = (double)r.s.host.page_size;
    recording_tick(&r);
    assert_exactly(value_of(&r, MEM_RSS), 500 * page);
    assert_exactly(value_of(&r, MEM_RSS_PEAK), 500 * page); /* neither mark, nor their sum */
    tree_process(r.dir,
                 (struct fake_process){.pid = 100, .ppid = 1, .rss_pages = 100, .hwm_kb = 100000});
    recording_tick(&r);
    assert_exactly(value_of(&r, MEM_RSS), 300 * page);
    assert_exactly(value_of(&r, MEM_RSS_PEAK), 100000 * 1024.0);
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .rss_pages = 1, .hwm_kb = 9});
    recording_tick(&r);
    assert_exactly(value_of(&r, MEM_RSS_PEAK), 100000 * 1024.0); /* it never falls */
}

static void test_zombies_have_no_gauges(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .rss_pages = 300, .fds = 3});
    tree_process(r.dir, (struct fake_process){
                            .pid = 101, .ppid = 100, .rss_pages = 200, .utime = 5, .fds = 4});
    recording_begin(&r, (struct pr_target_setting){.root = 100, .fresh = true});
    recording_tick(&r);
    tree_process(r.dir, (struct fake_process){.pid = 101, .ppid = 100, .utime = 7, .state = 'Z'});
    recording_tick(&r);
    assert_exactly(value_of(&r, MEM_RSS), 300 * (double)r.s.host.page_size);
    assert_exactly(value_of(&r, PROCS), 1);
    assert_exactly(value_of(&r, FDS), 3);
    assert_near(value_of(&r, CPU_TIME), ticks(7), 1e-9);
    assert_int_equal(r.s.now.mark[METRIC_MEM_RSS], MARK_NONE);
}

/* The leader thread has called pthread_exit, the others go on: Z, and alive. */
static void test_a_process_whose_leader_has_ended_is_alive(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .threads = 4});
    begin();
    recording_tick(&r);
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .threads = 3, .state = 'Z'});
    recording_tick(&r);
    assert_false(pr_session_over(&r.s));
    assert_exactly(value_of(&r, PROCS), 1);
    assert_exactly(value_of(&r, THREADS), 3);
}

static void test_ratio_from_rss_where_there_is_no_pss(void **state)
{
    (void)state;
    option(&r, OPTION_MEMORY_TOTAL, "1000000");
    tree_process(r.dir,
                 (struct fake_process){
                     .pid = 100, .ppid = 1, .rss_pages = 10, .pss_kb = 20, .no_smaps = true});
    begin();
    recording_tick(&r);
    assert_absent(value_of(&r, MEM_PSS));
    assert_near(value_of(&r, MEM_RATIO), 10 * (double)r.s.host.page_size / 1e6, 1e-12);
    assert_int_equal(r.s.now.mark[METRIC_MEM_RATIO], MARK_FROM_RSS);
    assert_string_equal(r.s.limits.source[LIMIT_MEMORY], "--memory-total");
}

/* --- absent is not zero ----------------------------------------------------------------------- */

/* What cannot be read is a directory here: reading it is EISDIR for whoever we are. */
static void test_unreadable_io(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .no_io = true, .utime = 5});
    tree_write(r.dir, "proc/100/io/x", "");
    recording_begin(&r, (struct pr_target_setting){.root = 100, .fresh = true});
    recording_tick(&r);
    recording_tick(&r);
    assert_absent(value_of(&r, IO_WCHAR));
    assert_absent(value_of(&r, IO_READ_RATE));
    assert_near(value_of(&r, CPU_TIME), ticks(5), 1e-9);
    assert_contains(r.s.reason[METRIC_IO_WCHAR], "io of process 100");
    assert_int_equal(r.s.io_unreadable, 1); /* one member, however often it was tried */
}

/* The kernel is too old for it: that is a reason too, and not that the job was too short. */
static void test_no_smaps_rollup_has_a_reason(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .no_smaps = true});
    begin();
    recording_tick(&r);
    recording_tick(&r);
    assert_absent(value_of(&r, MEM_PSS));
    assert_contains(r.s.reason[METRIC_MEM_PSS], "smaps_rollup");
}

static void test_empty_files(void **state)
{
    (void)state;
    static const char *const names[] = {"statm", "io", "status", "smaps_rollup"};
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .utime = 5});
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char name[64];
        snprintf(name, sizeof name, "proc/100/%s", names[i]);
        tree_write(r.dir, name, "");
    }
    begin();
    recording_tick(&r);
    recording_tick(&r);
    assert_absent(value_of(&r, MEM_RSS));
    assert_absent(value_of(&r, MEM_PSS));
    assert_absent(value_of(&r, IO_RCHAR));
    assert_absent(value_of(&r, MEM_RSS_PEAK));
    assert_exactly(value_of(&r, PROCS), 1);
}

static void test_not_selected_is_absent(void **state)
{
    (void)state;
    option(&r, OPTION_SELECT, "cpu.usage,procs");
    struct fake_process p = {.pid = 100, .ppid = 1, .rss_pages = 5};
    tree_process(r.dir, p);
    begin();
    recording_tick(&r);
    p.utime = 100;
    tree_process(r.dir, p);
    recording_tick(&r);
    assert_absent(value_of(&r, MEM_RSS)); /* not even read */
    assert_true(value_of(&r, CPU_USAGE) > 0);
    assert_exactly(value_of(&r, PROCS), 1);
    /* Its mean is known although its counter is not among what goes out. */
    assert_true(pr_stats_mean(&r.s.stats, METRIC_CPU_USAGE) > 0);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void test_the_last_sample(void **state)
{
    (void)state;
    struct fake_process p = {.pid = 100, .ppid = 1, .utime = 5, .rss_pages = 10, .hwm_kb = 80};
    tree_process(r.dir, p);
    tree_process(r.dir,
                 (struct fake_process){.pid = 101, .ppid = 100, .comm = "stays", .utime = 1});
    recording_begin(&r, (struct pr_target_setting){.root = 100, .fresh = true});
    recording_tick(&r);
    tree_remove(r.dir, 100);
    tree_process(r.dir, (struct fake_process){.pid = 101, .ppid = 1, .comm = "stays", .utime = 2});
    recording_tick(&r);
    assert_true(pr_session_over(&r.s));
    pr_session_end(&r.s);
    assert_true(r.s.now.last);
    assert_near(value_of(&r, CPU_TIME), ticks(7), 1e-9); /* counters are final */
    assert_absent(value_of(&r, MEM_RSS));                /* gauges absent */
    assert_absent(value_of(&r, PROCS));
    assert_absent(value_of(&r, THREADS));
    assert_true(value_of(&r, MEM_RSS_PEAK) >= 80 * 1024);
    assert_int_equal(r.s.left_count, 1);
    assert_int_equal(r.s.left[0].pid, 101);
    assert_string_equal(r.s.left[0].comm, "stays");
    unsigned long taken = r.s.taken;
    pr_session_end(&r.s); /* a second end does nothing */
    assert_int_equal(r.s.taken, taken);
}

static void test_stopped_before_the_job(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1, .rss_pages = 10});
    begin();
    recording_tick(&r);
    assert_false(pr_session_over(&r.s));
    pr_session_end(&r.s);
    assert_exactly(value_of(&r, MEM_RSS), 10 * (double)r.s.host.page_size);
    assert_int_equal(r.s.left_count, 0);
}

static void test_mark_of_the_ratio_reaches_the_summary(void **state)
{
    (void)state;
    option(&r, OPTION_MEMORY_TOTAL, "1M");
    tree_process(r.dir,
                 (struct fake_process){.pid = 100, .ppid = 1, .rss_pages = 10, .no_smaps = true});
    begin();
    recording_tick(&r);
    tree_remove(r.dir, 100);
    recording_tick(&r);
    pr_session_end(&r.s);
    assert_true(r.s.stats.metric[METRIC_MEM_RATIO].max > 0);
    assert_int_equal(pr_said_mark(&r.s.stats.metric[METRIC_MEM_RATIO].said), MARK_FROM_RSS);
}

static void test_a_member_that_cannot_be_read_for_once(void **state)
{
    (void)state;
    struct fake_process p = {.pid = 100, .ppid = 1, .utime = 5};
    tree_process(r.dir, p);
    recording_begin(&r, (struct pr_target_setting){.root = 100, .fresh = true});
    recording_tick(&r);
    tree_write(r.dir, "proc/100/stat", ""); /* cannot be: but nothing may come of it */
    recording_tick(&r);
    p.utime = 9;
    tree_process(r.dir, p);
    recording_tick(&r);
    assert_near(value_of(&r, CPU_TIME), ticks(9), 1e-9);
    assert_false(pr_session_over(&r.s));
}

/* --- outputs ---------------------------------------------------------------------------------- */

static size_t lines_of(const char *name)
{
    char path[TREE_PATH];
    size_t lines = 0;
    snprintf(path, sizeof path, "%s/%s", r.dir, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;)
        lines += c == '\n';
    fclose(f);
    return lines;
}

static void csv_to(const char *name)
{
    char path[TREE_PATH];
    snprintf(path, sizeof path, "%s/%s", r.dir, name);
    option(&r, OPTION_CSV, path);
}

static void test_rows_of_a_run(void **state)
{
    (void)state;
    csv_to("a.csv");
    csv_to("b.csv");
    r.config.processes = true;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1});
    tree_process(r.dir, (struct fake_process){.pid = 101, .ppid = 100});
    begin();
    for (int i = 0; i < 5; i++)
        recording_tick(&r);
    pr_session_end(&r.s);
    assert_int_equal(lines_of("a.csv"), 1 + 5 + 1);
    assert_int_equal(lines_of("b.csv"), 1 + 5 + 1);
    assert_int_equal(lines_of("a.processes.csv"), 1 + 2 * 6);
    assert_int_equal(r.s.events.problems, 0);
}

static int published;
static double last_rss;

static void on_sample(const struct proctor_snapshot *s, void *data)
{
    (void)data;
    published++;
    last_rss = s->value[METRIC_MEM_RSS];
}

static void test_average(void **state)
{
    (void)state;
    option(&r, OPTION_AVERAGE, "3");
    csv_to("a.csv");
    published = 0;
    for (int i = 1; i <= 7; i++) {
        tree_process(
            r.dir, (struct fake_process){.pid = 100, .ppid = 1, .rss_pages = 100ul * (unsigned)i});
        if (i == 1) {
            begin();
            r.s.on_sample = on_sample;
        }
        recording_tick(&r);
        assert_int_equal(published, i / 3);
        if (i == 6)
            assert_exactly(last_rss, 500 * (double)r.s.host.page_size);
    }
    pr_session_end(&r.s);
    assert_int_equal(published, 3); /* the end does not wait for three */
    assert_int_equal(lines_of("a.csv"), 1 + 3);
    assert_exactly(r.s.stats.metric[METRIC_MEM_RSS].max, 700 * (double)r.s.host.page_size);
}

static void test_members_have_their_own_rates(void **state)
{
    (void)state;
    r.config.processes = true;
    struct fake_process p = {.pid = 100, .ppid = 1, .utime = 500, .comm = "p)"};
    tree_process(r.dir, p);
    begin();
    recording_tick(&r);
    p.utime = 510;
    tree_process(r.dir, p);
    tree_process(r.dir, (struct fake_process){.pid = 101, .ppid = 100, .utime = 20});
    recording_tick(&r);
    double dt = proctor_snapshot_interval(&r.s.now);
    assert_int_equal(r.s.now.member_count, 2);
    assert_string_equal(r.s.now.members[0].comm, "p)");
    assert_near(r.s.now.members[0].value[METRIC_CPU_USAGE], ticks(10) / dt, 1e-6);
    assert_near(r.s.now.members[1].value[METRIC_CPU_USAGE], ticks(20) / dt, 1e-6);
    assert_near(value_of(&r, CPU_USAGE), ticks(30) / dt, 1e-6);
}

/* --- for real: reaped by us ------------------------------------------------------------------- */

static void write_bytes(size_t n)
{
    static char block[65536];
    int fd = open("/dev/null", O_WRONLY);
    for (; n >= sizeof block; n -= sizeof block)
        if (write(fd, block, sizeof block) < 0)
            _exit(1);
    close(fd);
}

/* It waits until *ret_gate is closed. */
static pid_t child_that_writes(size_t n, int *ret_gate)
{
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char c;
        close(gate[1]);
        if (read(gate[0], &c, 1) == 0)
            write_bytes(n);
        _exit(0);
    }
    close(gate[0]);
    *ret_gate = gate[1];
    return pid;
}

/* Children that this process waited for before the job began, perhaps before it was proctor (an
 * exec keeps the counters), have left their I/O in our own counters. It is not the job's. */
static void test_io_reaped_before_is_not_the_jobs(void **state)
{
    (void)state;
    struct rusage u;
    int status, gate;
    pid_t before = child_that_writes(40 << 20, &gate);
    close(gate);
    assert_int_equal(waitpid(before, &status, 0), before);
    option(&r, OPTION_ROOT, "/");
    pid_t job = child_that_writes(1 << 20, &gate);
    recording_begin(&r, (struct pr_target_setting){
                            .root = job, .fresh = true, .self = getpid(), .adopter = getpid()});
    recording_tick(&r);
    close(gate);
    assert_int_equal(wait4(job, &status, 0, &u), job);
    double usage[PROC_METRICS];
    for (int i = 0; i < PROC_METRICS; i++)
        usage[i] = NAN;
    usage[METRIC_FAULTS_MINOR] = (double)u.ru_minflt;
    pr_session_reaped(&r.s, job, usage, 0, 0);
    r.s.gone = true;
    pr_session_end(&r.s);
    assert_true(value_of(&r, IO_WCHAR) >= 1 << 20);
    assert_true(value_of(&r, IO_WCHAR) < 2 << 20);
}

static void test_name(void **state)
{
    (void)state;
    tree_process(r.dir, (struct fake_process){.pid = 100, .ppid = 1});
    option(&r, OPTION_RUN_ID, "my-run");
    begin();
    assert_string_equal(r.s.run_id, "my-run");
    pr_session_done(&r.s);
    pr_config_done(&r.config);
    pr_config_init(&r.config);
    option(&r, OPTION_ROOT, r.dir);
    begin();
    /* YYYYMMDDTHHMMSSZ-8hex */
    assert_int_equal(strlen(r.s.run_id), 25);
    assert_int_equal(r.s.run_id[8], 'T');
    assert_int_equal(r.s.run_id[15], 'Z');
    assert_int_equal(r.s.run_id[16], '-');
    assert_int_equal(strspn(r.s.run_id + 17, "0123456789abcdef"), 8);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_captured),
        TEST(test_child_reaped),
        TEST(test_child_lost),
        TEST(test_no_children),
        TEST(test_peak_of_sums),
        TEST(test_zombies_have_no_gauges),
        TEST(test_a_process_whose_leader_has_ended_is_alive),
        TEST(test_ratio_from_rss_where_there_is_no_pss),
        TEST(test_unreadable_io),
        TEST(test_no_smaps_rollup_has_a_reason),
        TEST(test_empty_files),
        TEST(test_not_selected_is_absent),
        TEST(test_the_last_sample),
        TEST(test_stopped_before_the_job),
        TEST(test_mark_of_the_ratio_reaches_the_summary),
        TEST(test_a_member_that_cannot_be_read_for_once),
        TEST(test_rows_of_a_run),
        TEST(test_average),
        TEST(test_members_have_their_own_rates),
        TEST(test_io_reaped_before_is_not_the_jobs),
        TEST(test_name),
    };
    return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
