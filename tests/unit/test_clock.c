/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "util/clock.h"

/* Days of a leap year in every kind of century, and seconds of a day. */
static void test_dates_are_those_of_the_calendar(void **state)
{
    (void)state;
    char text[64], want[64];
    for (int64_t day = 0; day < 84000; day++) { /* 1970 to 2199 */
        time_t seconds = (time_t)(day * 86400 + day * 37 % 86400);
        struct tm tm;
        gmtime_r(&seconds, &tm);
        strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%S.007Z", &tm);
        pr_clock_rfc3339((int64_t)seconds * NS_PER_S + 7999999, text, sizeof text);
        assert_string_equal(text, want);
        strftime(want, sizeof want, "%Y%m%dT%H%M%SZ", &tm);
        pr_clock_compact((int64_t)seconds * NS_PER_S, text, sizeof text);
        assert_string_equal(text, want);
    }
}

static void *no_work(void *data)
{
    *(pid_t *)data = gettid();
    for (;;)
        pause();
    return NULL;
}

static void test_the_clock_of_a_process(void **state)
{
    (void)state;
    pthread_t thread;
    volatile pid_t tid = 0;
    int64_t before = pr_clock_pid_cpu(getpid());
    assert_true(before > 0);
    assert_true(pr_clock_pid_cpu(getpid()) >= before);
    assert_int_equal(pthread_create(&thread, NULL, no_work, (void *)&tid), 0);
    while (!tid)
        usleep(1000);
    assert_int_equal(pr_clock_pid_cpu(tid), -1); /* a thread is no process */
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    assert_int_equal(pr_clock_pid_cpu(0x3fffff), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dates_are_those_of_the_calendar),
        cmocka_unit_test(test_the_clock_of_a_process),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
