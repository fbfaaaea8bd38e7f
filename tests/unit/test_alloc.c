/* SPDX-License-Identifier: Apache-2.0 */
/* After warm-up a tick allocates nothing, in no thread. A real session on real processes, with CSV,
 * a row per process and a run file, once with JSONL and a textfile, too; every allocation of the
 * library is counted. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "recording.h"
#include "core/annotate.h"
#include "util/clock.h"

enum { WARM_UP = 20, TICKS = 200, FAMILY = 6 };

static atomic_ulong allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *data, size_t size);
void *__real_reallocarray(void *data, size_t n, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *data, size_t size);
void *__wrap_reallocarray(void *data, size_t n, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *data, size_t size)
{
    allocations++;
    return __real_realloc(data, size);
}

void *__wrap_reallocarray(void *data, size_t n, size_t size)
{
    allocations++;
    return __real_reallocarray(data, n, size);
}

char *__wrap_strdup(const char *text)
{
    allocations++;
    return __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n)
{
    allocations++;
    return __real_strndup(text, n);
}

static struct recording r;
static pid_t family[FAMILY];

/* Some sleep, some work. */
static pid_t start_one(int number)
{
    pid_t pid = fork();
    if (pid == 0) {
        while (number % 3 == 0)
            if (clock() > 100 * CLOCKS_PER_SEC)
                break;
        for (;;)
            pause();
    }
    return pid;
}

static void end_one(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int setup(void **state)
{
    char path[TREE_PATH];
    (void)state;
    recording_new(&r);
    snprintf(path, sizeof path, "%s/run.csv", r.dir);
    option(&r, OPTION_ROOT, "/");
    option(&r, OPTION_CSV, path);
    snprintf(path, sizeof path, "%s/run.proctor", r.dir);
    option(&r, OPTION_OUTPUT, path);
    r.config.processes = true;
    for (int i = 0; i < FAMILY; i++)
        family[i] = start_one(i);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < FAMILY; i++)
        end_one(family[i]);
    recording_done(&r);
    return 0;
}

/* The writer has done all that there is: it has not run for a while. */
static void let_writer_catch_up(void)
{
    int64_t cpu = -1;
    for (int still = 0, tries = 0; still < 4 && tries < 400; tries++) {
        int64_t now = pr_queue_cpu(r.s.queue);
        still = now == cpu ? still + 1 : 0;
        cpu = now;
        usleep(50000);
    }
}

/* Ticks until nothing was allocated any more is what warm-up means; say how far it was off. */
static void check(void (*between)(int))
{
    recording_begin(&r, (struct pr_target_setting){.root = getpid()});
    int last = -1;
    unsigned long after = 0;
    for (int i = 0; i < WARM_UP + TICKS; i++) {
        unsigned long before = allocations;
        if (between)
            between(i);
        usleep(500); /* the writer has its turn, too, */
        for (int wait = 0; i == WARM_UP / 2 && wait < 20000 && r.s.record_fds < 2; wait++)
            usleep(1000); /* and time to make the run file */
        if (i == WARM_UP / 2 + 1 || i == WARM_UP - 2)
            let_writer_catch_up(); /* only then are all slots of the ring made ready */
        pr_session_tick(&r.s);
        if (i >= WARM_UP && allocations != before) {
            after += allocations - before;
            last = i;
        }
    }
    assert_int_equal(r.s.set.count, FAMILY + 1);
    assert_true(allocations > 0); /* the counting works */
    pr_session_end(&r.s);
    assert_int_equal(r.s.events.problems, 0);
    if (after)
        fail_msg("%lu allocations after %d ticks of warm-up, the last in tick %d", after, WARM_UP,
                 last);
}

static void test_a_steady_family(void **state)
{
    (void)state;
    check(NULL);
}

/* Files are asked again, others listed and spaces counted every four to ten seconds. */
static void wait_a_little(int tick)
{
    (void)tick;
    usleep(60000);
}

static void test_what_comes_seldom(void **state)
{
    (void)state;
    check(wait_a_little);
}

static void change_one(int tick)
{
    int i = tick % FAMILY;
    end_one(family[i]);
    family[i] = start_one(i);
}

static void test_coming_and_going(void **state)
{
    (void)state;
    check(change_one);
}

static void test_with_averages(void **state)
{
    (void)state;
    option(&r, OPTION_AVERAGE, "2");
    check(NULL);
}

/* At the limit of descriptors, where those that do not run give way. */
static void test_at_the_limit_of_descriptors(void **state)
{
    (void)state;
    struct rlimit old, low = {32, 0};
    getrlimit(RLIMIT_NOFILE, &old);
    low.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0); /* a quarter may be held */
    check(NULL);
    setrlimit(RLIMIT_NOFILE, &old);
}

static void test_with_names(void **state)
{
    (void)state;
    option(&r, OPTION_MATCH, "alloc");
    check(change_one);
}

static void begin_one(int tick)
{
    struct pr_request request;
    assert_true(pr_request_make(&request, REQUEST_BEGIN, "phase", NULL));
    if (tick < 3) /* one inside the other */
        assert_true(pr_annotate(&r.s, &request, pr_clock_boot(), 0));
}

static void test_inside_phases(void **state)
{
    (void)state;
    check(begin_one);
    assert_int_equal(r.s.phases.ended, 3);
}

static int files; /* of the textfile, since warm-up */

static void change_and_look(int tick)
{
    static struct timespec last;
    struct stat st = {0};
    char path[TREE_PATH];
    change_one(tick);
    usleep(2000); /* one is written each tenth of a second */
    snprintf(path, sizeof path, "%s/run.prom", r.dir);
    assert_true(stat(path, &st) == 0 || tick < WARM_UP);
    files += tick >= WARM_UP && st.st_mtim.tv_nsec != last.tv_nsec;
    last = st.st_mtim;
}

static void test_with_streams(void **state)
{
    char path[TREE_PATH];
    (void)state;
    snprintf(path, sizeof path, "%s/run.jsonl", r.dir);
    option(&r, OPTION_JSONL, path);
    snprintf(path, sizeof path, "%s/run.prom", r.dir);
    option(&r, OPTION_TEXTFILE, path);
    files = 0;
    check(change_and_look);
    assert_true(files >= 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_steady_family),
        TEST(test_what_comes_seldom),
        TEST(test_coming_and_going),
        TEST(test_with_averages),
        TEST(test_at_the_limit_of_descriptors),
        TEST(test_with_names),
        TEST(test_inside_phases),
        TEST(test_with_streams),
    };
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
