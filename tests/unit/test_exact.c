/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two accounts of CPU time the job gets, and a fork that may not choose its cgroup. */
#include "check.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/exact.h"
#include "target/spawn.h"

static double told[EXACT_PARTS];

static void read_told(struct pr_exact *x, const struct pr_entities *set)
{
    (void)set;
    memcpy(x->figure, told, sizeof told);
}

static int finish(struct pr_exact *x)
{
    (void)x;
    return 0;
}

static const struct pr_exact_ops whole = {.whole = true, .read = read_told, .finish = finish},
                                 bound = {.read = read_told, .finish = finish};
static struct pr_exact x;
static double value[PROC_METRICS];

static void begin(const struct pr_exact_ops *ops)
{
    assert_int_equal(pr_exact_prepare(&x, "none", NULL, NULL), 0);
    assert_null(x.ops);
    x.ops = ops;
    x.state = &x;
}

/* A sample: what the ledger and the other account say of user, system and all. */
static void sample(double user, double system, double by_user, double by_system)
{
    value[METRIC_CPU_USER] = user;
    value[METRIC_CPU_SYSTEM] = system;
    value[METRIC_CPU_TIME] = user + system;
    told[EXACT_USER] = by_user;
    told[EXACT_SYSTEM] = by_system;
    told[EXACT_TIME] = by_user + by_system;
    pr_exact_settle(&x, NULL, value);
}

#define assert_job(user, system, time)                                                             \
    do {                                                                                           \
        assert_near(value[METRIC_CPU_USER], user, 1e-9);                                           \
        assert_near(value[METRIC_CPU_SYSTEM], system, 1e-9);                                       \
        assert_near(value[METRIC_CPU_TIME], time, 1e-9);                                           \
    } while (0)

static void test_without_another_account_the_ledgers_stands(void **state)
{
    (void)state;
    begin(NULL);
    sample(1, 2, 30, 40);
    assert_job(1, 2, 3);
    assert_false(pr_exact_complete(&x));
    pr_exact_settle(NULL, NULL, value);
    assert_false(pr_exact_undivided(NULL));
}

static void test_a_whole_account_divides_as_it_says(void **state)
{
    (void)state;
    begin(&whole);
    sample(1, 1, 5, 2);
    assert_job(5, 2, 7);
    assert_true(pr_exact_complete(&x));
    sample(1.1, 1, 5, 2); /* another division by the ledger does not add to it */
    sample(6, 1.005, 5, 2);
    assert_job(5, 2, 7.005);
    assert_true(pr_exact_complete(&x));
}

static void test_what_left_the_group_is_counted(void **state)
{
    (void)state;
    begin(&whole);
    sample(8, 1, 2, 1);
    assert_job(8, 1, 9);
    assert_true(pr_exact_escaped(&x));
    assert_false(pr_exact_complete(&x));
}

static void test_it_never_falls(void **state)
{
    (void)state;
    begin(&whole);
    sample(1, 1, 5, 2);
    sample(1, 1, 4, 1);
    assert_job(5, 2, 7);
    sample(1, 1, 6, 2);
    assert_job(6, 2, 8);
}

static void test_a_bound_counts_where_it_is_more(void **state)
{
    (void)state;
    begin(&bound);
    sample(1, 1, NAN, NAN);
    assert_job(1, 1, 2);
    told[EXACT_TIME] = 5;
    value[METRIC_CPU_TIME] = 2;
    pr_exact_settle(&x, NULL, value);
    assert_job(1, 1, 5);
    assert_true(pr_exact_undivided(&x));
    assert_false(pr_exact_complete(&x));
    assert_false(pr_exact_escaped(&x)); /* it is behind as a rule */
}

static void test_absent_is_not_zero(void **state)
{
    (void)state;
    begin(&whole);
    sample(NAN, NAN, NAN, NAN);
    assert_absent(value[METRIC_CPU_TIME]);
    assert_false(pr_exact_complete(&x));
    sample(NAN, NAN, 1, 1);
    assert_job(1, 1, 2);
}

static void test_auto_refuses_nothing(void **state)
{
    (void)state;
    struct proctor_error err;
    struct pr_host here;
    assert_int_equal(pr_host_open(&here, "/", &err), 0);
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    assert_int_equal(pr_exact_prepare(&x, "auto", &here, &err), 0);
    assert_int_equal(pr_exact_enter(&x, pid, false, &err), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(pr_exact_finish(&x), 0);
    assert_int_equal(pr_exact_finish(&x), 0);
    pr_host_close(&here);
}

/* --- the fork --------------------------------------------------------------------------------- */

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
static int clones;

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number != SYS_clone3)
        return __real_syscall(number, a, b, c, d, e, f);
    clones++;
    errno = ENOSYS;
    return -1;
}

static void test_where_clone3_is_forbidden_fork_does(void **state)
{
    (void)state;
    char *argv[] = {(char *)"true", NULL};
    struct pr_spawn s = {.argv = argv, .envp = environ, .cgroup = open("/", O_PATH)};
    int status;
    sigemptyset(&s.mask);
    assert_int_equal(pr_spawn_hold(&s), 0);
    assert_false(s.in_cgroup);
    assert_int_equal(clones, 1);
    assert_int_equal(pr_spawn_release(&s), 0);
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
    assert_int_equal(status, 0);
    close(s.cgroup);
    s.cgroup = -1;
    assert_int_equal(pr_spawn_hold(&s), 0);
    assert_int_equal(clones, 1);
    pr_spawn_cancel(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_another_account_the_ledgers_stands),
        cmocka_unit_test(test_a_whole_account_divides_as_it_says),
        cmocka_unit_test(test_what_left_the_group_is_counted),
        cmocka_unit_test(test_it_never_falls),
        cmocka_unit_test(test_a_bound_counts_where_it_is_more),
        cmocka_unit_test(test_absent_is_not_zero),
        cmocka_unit_test(test_auto_refuses_nothing),
        cmocka_unit_test(test_where_clone3_is_forbidden_fork_does),
    };
    return cmocka_run_group_tests_name("exact", tests, NULL, NULL);
}
