/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded runs through the public API. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proctor/proctor.h"

static char folder[] = "/tmp/proctor-test-runs-XXXXXX", file[256];

/* This very process, recorded for some samples. */
static int record(void **state)
{
    (void)state;
    struct proctor_monitor *m = NULL;
    struct proctor_error err;
    if (!mkdtemp(folder))
        return -1;
    setenv("PROCTOR_HOME", folder, 1);
    snprintf(file, sizeof file, "%s/own.proctor", folder);
    bool good = proctor_monitor_new(&m, &err) == 0 &&
                proctor_monitor_watch_pid(m, getpid(), 0, &err) == 0 &&
                proctor_monitor_set(m, "interval", "10ms", &err) == 0 &&
                proctor_monitor_set(m, "output", file, &err) == 0 &&
                proctor_monitor_phase_begin(m, "first", &err) == 0 &&
                proctor_monitor_start(m, &err) == 0;
    for (volatile unsigned long i = 0; i < 50000000; i++)
        ;
    good = good && proctor_monitor_phase_end(m, "first", &err) == 0 &&
           proctor_monitor_stop(m, &err) == 0;
    if (!good)
        fprintf(stderr, "%s\n", err.message);
    proctor_monitor_free(m);
    return good ? 0 : -1;
}

static int clean(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder);
}

static struct proctor_run *opened(void)
{
    struct proctor_run *run = NULL;
    struct proctor_error err = {0};
    if (proctor_run_open(&run, file, &err) < 0)
        fail_msg("%s", err.message);
    return run;
}

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

struct seen {
    int count, inside;
    double elapsed, cpu;
    struct proctor_run *run;
};

static void on_sample(const struct proctor_snapshot *s, void *data)
{
    struct seen *seen = data;
    double v;
    assert_true(proctor_snapshot_elapsed(s) > seen->elapsed);
    seen->elapsed = proctor_snapshot_elapsed(s);
    if (proctor_snapshot_value(s, "cpu.time", &v) == 0)
        seen->cpu = v;
    seen->inside = proctor_run_samples(seen->run, on_sample, seen, NULL);
    seen->count++;
}

static void samples_come_back(void **state)
{
    (void)state;
    struct seen seen = {.run = opened()};
    double total, peak, v;
    const char *json = proctor_run_summary_json(seen.run, NULL);
    assert_non_null(json);
    assert_non_null(strstr(json, "\"first\""));
    assert_ptr_equal(json, proctor_run_summary_json(seen.run, NULL));
    for (int turn = 0; turn < 2; turn++) { /* again from the start */
        seen.count = 0;
        seen.elapsed = -1;
        assert_int_equal(proctor_run_samples(seen.run, on_sample, &seen, NULL), 0);
        assert_true(seen.count > 3);
        assert_int_equal(seen.inside, -EDEADLK);
    }
    assert_int_equal(proctor_run_total(seen.run, "cpu.time", &total), 0);
    assert_true(total > 0.001 && total - seen.cpu < 1e-6 && seen.cpu - total < 1e-6);
    assert_int_equal(proctor_run_peak(seen.run, "mem.rss", &peak), 0);
    assert_true(peak > 100000);
    assert_int_equal(proctor_run_total(seen.run, "mem.rss", &v), -ENODATA);
    assert_int_equal(proctor_run_peak(seen.run, "sched.delay", &v), -ENODATA);
    assert_int_equal(proctor_run_peak(seen.run, "nonsense", &v), -ENOENT);
    assert_true(strlen(proctor_run_id(seen.run)) > 10);
    proctor_run_free(seen.run);
    proctor_run_free(NULL);
}

static void what_is_no_run_is_said(void **state)
{
    (void)state;
    struct proctor_run *run = NULL;
    struct proctor_error err;
    assert_int_equal(proctor_run_open(&run, "nonsense", &err), -ENOENT);
    assert_int_equal(err.code, ENOENT);
    assert_non_null(strstr(err.message, "nonsense"));
    assert_int_equal(proctor_run_open(&run, "last", &err), -ENOENT);
    assert_int_equal(proctor_run_open(&run, "/proc/self/exe", &err), -EMEDIUMTYPE);
    assert_int_equal(proctor_run_open(&run, folder, &err), -EISDIR);
    assert_int_equal(proctor_run_open(&run, "", &err), -EINVAL);
    assert_int_equal(proctor_run_open(&run, "/no/such/file", NULL), -ENOENT);
    assert_null(run);
}

static bool begins_with(const char *path, const char *text)
{
    char line[64] = "";
    FILE *f = fopen(path, "r");
    if (f && !fgets(line, sizeof line, f))
        *line = '\0';
    if (f)
        fclose(f);
    unlink(path);
    return strncmp(line, text, strlen(text)) == 0;
}

static void reports_are_written(void **state)
{
    (void)state;
    struct proctor_error err;
    struct proctor_run *run = opened();
    char path[300];
    assert_string_equal(proctor_run_path(run), file);
    snprintf(path, sizeof path, "%s/report.svg", folder);
    assert_int_equal(proctor_run_report(run, path, &err), 0);
    assert_true(begins_with(path, "<svg"));
    snprintf(path, sizeof path, "%s/report.json", folder);
    assert_int_equal(proctor_run_report(run, path, &err), 0);
    assert_true(begins_with(path, "{"));
    assert_int_equal(proctor_run_report(run, "report.pdf", &err), -EINVAL);
    assert_non_null(strstr(err.message, "report.pdf"));
    assert_int_equal(proctor_run_report(run, "/no/such/folder/a.txt", &err), -ENOENT);
    snprintf(path, sizeof path, "%s/link.json", folder);
    assert_int_equal(symlink(file, path), 0);
    assert_int_equal(proctor_run_report(run, path, &err), -EINVAL); /* it is the run itself */
    unlink(path);
    proctor_run_free(run);
    run = opened(); /* and it is as it was */
    proctor_run_free(run);
}

static void listed(const char *json, void *data)
{
    int *count = data;
    *count += *json == '{' && strstr(json, file) != NULL && strstr(json, "\"status\":") != NULL;
}

static void runs_are_listed(void **state)
{
    (void)state;
    char runs[300], name[600];
    int count = 0;
    assert_int_equal(proctor_runs_list(listed, &count, NULL), 0); /* there is no folder yet */
    assert_int_equal(count, 0);
    snprintf(runs, sizeof runs, "%s/runs", folder);
    assert_int_equal(mkdir(runs, 0700), 0);
    snprintf(name, sizeof name, "%s/own.proctor", runs);
    assert_int_equal(rename(file, name), 0);
    char kept[sizeof file];
    memcpy(kept, file, sizeof kept);
    snprintf(file, sizeof file, "%.255s", name);
    assert_int_equal(proctor_runs_list(listed, &count, NULL), 0);
    assert_int_equal(count, 1);
    memcpy(file, kept, sizeof kept);
    assert_int_equal(rename(name, file), 0);
    assert_int_equal(rmdir(runs), 0);
}

/* Has this process a lock of SQLite's on the file? */
static bool is_locked(const char *path)
{
    struct stat st;
    char line[256], pid[32], inode[32];
    bool found = false;
    FILE *f = fopen("/proc/locks", "re");
    assert_non_null(f);
    assert_int_equal(stat(path, &st), 0);
    snprintf(pid, sizeof pid, " %d ", getpid());
    snprintf(inode, sizeof inode, ":%lu ", (unsigned long)st.st_ino);
    while (fgets(line, sizeof line, f))
        found |= strstr(line, " POSIX ") && strstr(line, pid) && strstr(line, inode);
    fclose(f);
    return found;
}

static void wait_for_lock(const char *path)
{
    for (int i = 0; i < 500 && !is_locked(path); i++)
        usleep(10000);
    assert_true(is_locked(path));
}

/* SQLite has it open; "last" looks at all files of the folder. */
static void reading_takes_no_locks_of_the_recorder(void **state)
{
    (void)state;
    struct proctor_monitor *m = NULL;
    struct proctor_run *run = NULL, *again = NULL;
    struct proctor_error err = {0};
    char runs[300], path[320];
    snprintf(runs, sizeof runs, "%s/runs", folder);
    snprintf(path, sizeof path, "%s/live.proctor", runs);
    assert_int_equal(mkdir(runs, 0700), 0);
    assert_int_equal(proctor_monitor_new(&m, &err), 0);
    assert_int_equal(proctor_monitor_watch_pid(m, getpid(), 0, &err), 0);
    assert_int_equal(proctor_monitor_set(m, "output", path, &err), 0);
    assert_int_equal(proctor_monitor_start(m, &err), 0);
    wait_for_lock(path);
    for (int i = 0; i < 500 && proctor_run_open(&run, path, &err) < 0; i++)
        usleep(10000); /* it is locked a moment before there is something in it */
    proctor_run_free(run);
    int fds = 0;
    const char *const names[] = {path, "last"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(proctor_run_open(&run, names[i], &err), 0);
        assert_int_equal(proctor_run_open(&again, names[i], &err), 0);
        assert_true(is_locked(path));
        proctor_run_free(again);
        assert_true(is_locked(path));
        proctor_run_free(run);
        assert_true(is_locked(path));
        /* SQLite keeps those of the first turn for as long as it has locks, and takes them again */
        if (i > 0)
            assert_int_equal(open_descriptors(), fds);
        fds = open_descriptors();
    }
    assert_int_equal(proctor_run_open(&run, path, &err), 0); /* beyond the end of the recorder */
    assert_int_equal(proctor_monitor_stop(m, &err), 0);
    proctor_monitor_free(m);
    assert_non_null(proctor_run_summary_json(run, &err));
    proctor_run_free(run);
    static const char *const endings[] = {"", "-wal", "-shm"}; /* left, as somebody was reading */
    for (size_t i = 0; i < 3; i++) {
        char name[330];
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
    assert_int_equal(rmdir(runs), 0);
}

static void a_forked_handle_is_dead(void **state)
{
    (void)state;
    struct proctor_run *run = opened();
    struct seen seen = {.run = run, .elapsed = -1};
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct proctor_error err;
        double v;
        int fds = open_descriptors();
        bool dead = proctor_run_samples(run, on_sample, &seen, &err) == -ECHILD &&
                    proctor_run_total(run, "cpu.time", &v) == -ECHILD &&
                    proctor_run_peak(run, "mem.rss", &v) == -ECHILD && !proctor_run_id(run) &&
                    !proctor_run_path(run) && proctor_run_report(run, "a.txt", &err) == -ECHILD &&
                    !proctor_run_summary_json(run, &err) && err.code == ECHILD;
        proctor_run_free(run);
        _exit(dead && seen.count == 0 && open_descriptors() == fds ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(proctor_run_samples(run, on_sample, &seen, NULL), 0); /* ours goes on */
    assert_true(seen.count > 3);
    proctor_run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_back),
        cmocka_unit_test(what_is_no_run_is_said),
        cmocka_unit_test(reports_are_written),
        cmocka_unit_test(runs_are_listed),
        cmocka_unit_test(reading_takes_no_locks_of_the_recorder),
        cmocka_unit_test(a_forked_handle_is_dead),
    };
    return cmocka_run_group_tests_name("api_runs", tests, record, clean);
}
