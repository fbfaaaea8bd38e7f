/* SPDX-License-Identifier: Apache-2.0 */
/* Phases and marks through the public API. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <proctor/proctor.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct proctor_monitor *monitor_of(pid_t pid, const char *interval)
{
    struct proctor_monitor *m = NULL;
    assert_int_equal(proctor_monitor_new(&m, NULL), 0);
    assert_int_equal(proctor_monitor_watch_pid(m, pid, 0, NULL), 0);
    assert_int_equal(proctor_monitor_set(m, "interval", interval, NULL), 0);
    return m;
}

static double burn(double seconds)
{
    struct timespec t;
    double now, began = -1;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
        began = began < 0 ? now : began;
    } while (now < began + seconds);
    return now - began;
}

/* The total of cpu.time in the first phase of this name. */
static double cpu_of(struct proctor_monitor *m, const char *name)
{
    char text[64];
    double total = -1;
    snprintf(text, sizeof text, "\"name\": \"%s\"", name);
    const char *json = proctor_monitor_summary_json(m);
    const char *phase = json ? strstr(json, text) : NULL;
    const char *key = phase ? strstr(phase, "\"cpu.time\": {") : NULL;
    const char *value = key ? strstr(key, "\"total\": ") : NULL;
    assert_non_null(value);
    sscanf(value, "\"total\": %lf", &total);
    return total;
}

static void summary_has(struct proctor_monitor *m, const char *text)
{
    const char *json = proctor_monitor_summary_json(m);
    if (!json || !strstr(json, text))
        fail_msg("'%s' is not in %s", text, json ? json : "(nothing)");
}

static void each_phase_has_its_own_account(void **state)
{
    (void)state;
    struct proctor_monitor *m = monitor_of(getpid(), "10s");
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    burn(0.1);
    assert_int_equal(proctor_monitor_phase_begin(m, "outer", NULL), 0);
    double before = burn(0.1);
    assert_int_equal(proctor_monitor_phase_begin(m, "inner", NULL), 0);
    double inside = burn(0.2);
    assert_int_equal(proctor_monitor_mark(m, "here", "{\"step\":\n3}", NULL), 0);
    assert_int_equal(proctor_monitor_phase_end(m, "inner", NULL), 0);
    assert_int_equal(proctor_monitor_phase_end(m, "outer", NULL), 0);
    assert_int_equal(proctor_monitor_mark(m, "there", NULL, NULL), 0);
    burn(0.1);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_true(cpu_of(m, "inner") > inside - 0.01 && cpu_of(m, "inner") < inside + 0.02);
    assert_true(cpu_of(m, "outer") > before + inside - 0.01);
    assert_true(cpu_of(m, "outer") < before + inside + 0.03);
    summary_has(m, "\"data\": {\"step\": 3}");
    summary_has(m, "\"marks\": 2");
    proctor_monitor_free(m);
}

static void without_a_thread(void **state)
{
    (void)state;
    struct proctor_monitor *m = monitor_of(getpid(), "10s");
    assert_int_equal(proctor_monitor_phase_begin(m, "a", NULL), 0); /* begins the record */
    double used = burn(0.1);
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    assert_int_equal(proctor_monitor_phase_end(m, "a", NULL), 0);
    assert_int_equal(proctor_monitor_phase_begin(m, "open", NULL), 0);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_true(cpu_of(m, "a") > used - 0.01 && cpu_of(m, "a") < used + 0.02);
    summary_has(m, "\"left_open\": true");
    proctor_monitor_free(m);
}

#define TIMES 200

static void *annotate_often(void *data)
{
    struct proctor_monitor *m = data;
    char name[32];
    snprintf(name, sizeof name, "%lx", (unsigned long)pthread_self());
    long failed = 0;
    for (int i = 0; i < TIMES; i++) {
        failed += proctor_monitor_mark(m, name, "{}", NULL) != 0;
        failed += proctor_monitor_phase_begin(m, name, NULL) != 0;
        proctor_monitor_phase_end(m, name, NULL); /* somebody else's outer one may have ended it */
    }
    return (void *)failed;
}

static void any_thread_may_call(void **state)
{
    (void)state;
    struct proctor_monitor *m = monitor_of(getpid(), "1ms");
    pthread_t threads[4];
    void *failed;
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, annotate_often, m), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    char text[64];
    snprintf(text, sizeof text, "\"phases\": %d,\n    \"marks\": %d,", 4 * TIMES, 4 * TIMES);
    summary_has(m, text);
    proctor_monitor_free(m);
}

/* Calls go on while another thread stops it: each gets an answer. */
static void *annotate_until_it_ends(void *data)
{
    struct proctor_monitor *m = data;
    intptr_t code;
    while ((code = proctor_monitor_mark(m, "m", NULL, NULL)) == 0)
        ;
    return (void *)code;
}

static void the_end_answers_everybody(void **state)
{
    (void)state;
    struct proctor_monitor *m = monitor_of(getpid(), "1ms");
    pthread_t thread;
    void *code;
    assert_int_equal(proctor_monitor_set(m, "duration", "100ms", NULL), 0);
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, annotate_until_it_ends, m), 0);
    pthread_join(thread, &code);
    assert_int_equal((intptr_t)code, -EBUSY);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_int_equal(proctor_monitor_phase_begin(m, "late", NULL), -EBUSY);
    proctor_monitor_free(m);
}

static struct proctor_monitor *called_back;
static int from_callback;

static void on_sample(const struct proctor_snapshot *s, void *data)
{
    (void)s;
    (void)data;
    from_callback = proctor_monitor_mark(called_back, "m", NULL, NULL);
}

static void a_callback_is_told_off(void **state)
{
    (void)state;
    struct proctor_monitor *m = called_back = monitor_of(getpid(), "10ms");
    assert_int_equal(proctor_monitor_on_sample(m, on_sample, NULL), 0);
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    usleep(50000);
    assert_int_equal(proctor_monitor_phase_begin(m, "a", NULL), 0);
    assert_int_equal(from_callback, -EDEADLK);
    proctor_monitor_free(m);
}

static int collected, begun, deepest, depth;

static void on_collect(const struct proctor_snapshot *s, void *data)
{
    (void)s;
    (void)data;
    depth++;
    deepest = depth > deepest ? depth : deepest;
    begun = proctor_monitor_phase_begin(called_back, "a", NULL);
    collected = depth < 5 ? proctor_monitor_collect(called_back, NULL) : 0;
    depth--;
}

/* Without a thread, too; else each sample would begin another one inside it. */
static void a_callback_of_collect_is_told_off(void **state)
{
    (void)state;
    struct proctor_monitor *m = called_back = monitor_of(getpid(), "10s");
    assert_int_equal(proctor_monitor_on_sample(m, on_collect, NULL), 0);
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    assert_int_equal(begun, -EDEADLK);
    assert_int_equal(collected, -EDEADLK);
    assert_int_equal(deepest, 1);
    assert_int_equal(proctor_monitor_phase_begin(m, "b", NULL), 0); /* nothing sticks */
    begun = 0;
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    assert_int_equal(begun, -EDEADLK); /* in the last sample */
    proctor_monitor_free(m);
}

static int descriptors(void)
{
    int count = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        count++;
    closedir(d);
    return count;
}

/* No thread can be made with a stack larger than any address space. */
static void let_threads_fail(bool fail)
{
    static pthread_attr_t usual;
    pthread_attr_t huge;
    if (!fail) {
        assert_int_equal(pthread_setattr_default_np(&usual), 0);
        return;
    }
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&huge), 0);
    assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 50), 0);
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
}

static void a_start_that_fails_leaves_nothing(void **state)
{
    (void)state;
    struct proctor_error err;
    struct proctor_monitor *m = monitor_of(getpid(), "10s");
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    int before = descriptors();
    let_threads_fail(true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(proctor_monitor_start(m, &err), -EAGAIN);
        assert_non_null(strstr(err.message, "cannot start a thread"));
    }
    let_threads_fail(false);
    assert_int_equal(descriptors(), before);
    assert_int_equal(proctor_monitor_mark(m, "m", NULL, NULL), 0); /* as without a thread */
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    assert_int_equal(proctor_monitor_mark(m, "m", NULL, NULL), 0);
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    summary_has(m, "\"marks\": 2");
    proctor_monitor_free(m);
}

static sem_t may_ask;
static _Atomic bool start_waits;

/* In place of the C library's: start calls it on the way to its thread, and there it waits until
 * somebody has asked for something. */
__attribute__((visibility("default"))) int pthread_sigmask(int how, const sigset_t *set,
                                                           sigset_t *old)
{
    if (start_waits) {
        start_waits = false;
        sem_post(&may_ask);
        usleep(100000);
    }
    return syscall(SYS_rt_sigprocmask, how, set, old, _NSIG / 8) < 0 ? errno : 0;
}

static void *ask_when_told(void *data)
{
    sem_wait(&may_ask);
    return (void *)(intptr_t)proctor_monitor_mark(data, "m", NULL, NULL);
}

static void a_start_that_fails_answers_who_waits(void **state)
{
    (void)state;
    struct proctor_monitor *m = monitor_of(getpid(), "10s");
    pthread_t asker;
    struct timespec until;
    void *code = NULL;
    sem_init(&may_ask, 0, 0);
    assert_int_equal(proctor_monitor_collect(m, NULL), 0);
    assert_int_equal(pthread_create(&asker, NULL, ask_when_told, m), 0);
    let_threads_fail(true);
    start_waits = true;
    assert_int_equal(proctor_monitor_start(m, NULL), -EAGAIN);
    assert_false(start_waits);
    let_threads_fail(false);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    assert_int_equal(pthread_timedjoin_np(asker, &code, &until), 0);
    assert_null(code); /* done, as without a thread */
    assert_int_equal(proctor_monitor_stop(m, NULL), 0);
    summary_has(m, "\"marks\": 1");
    proctor_monitor_free(m);
}

static void errors_say_what(void **state)
{
    (void)state;
    struct proctor_error err;
    struct proctor_monitor *m = monitor_of(getpid(), "10s");
    char name[300];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(proctor_monitor_start(m, NULL), 0);
    assert_int_equal(proctor_monitor_phase_begin(m, "", &err), -EINVAL);
    assert_int_equal(proctor_monitor_phase_begin(m, "a\nb", &err), -EINVAL);
    assert_int_equal(proctor_monitor_mark(m, name, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.message, "200 bytes"));
    assert_int_equal(proctor_monitor_mark(m, "m", "[1]", &err), -EINVAL);
    assert_non_null(strstr(err.message, "JSON object"));
    assert_int_equal(proctor_monitor_phase_end(m, "a", &err), -ENOENT);
    assert_non_null(strstr(err.message, "'a'"));
    int r = 0;
    for (int i = 0; i < 1000 && r == 0; i++)
        r = proctor_monitor_phase_begin(m, "a", &err);
    assert_int_equal(r, -EMFILE);
    pid_t pid = fork();
    if (pid == 0)
        _exit(proctor_monitor_mark(m, "m", NULL, NULL) == -ECHILD ? 0 : 1);
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    proctor_monitor_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_phase_has_its_own_account),
        cmocka_unit_test(without_a_thread),
        cmocka_unit_test(any_thread_may_call),
        cmocka_unit_test(the_end_answers_everybody),
        cmocka_unit_test(a_callback_is_told_off),
        cmocka_unit_test(a_callback_of_collect_is_told_off),
        cmocka_unit_test(a_start_that_fails_leaves_nothing),
        cmocka_unit_test(a_start_that_fails_answers_who_waits),
        cmocka_unit_test(errors_say_what),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
