/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/wait.h>

#include <pthread.h>

#include "tree.h"
#include "util/clock.h"
#include "core/target.h"

static char dir[TREE_PATH], text[32768];
static struct pr_host host;
static struct pr_entities set;
static struct pr_target *target;
static struct pr_tick t;
static struct proctor_error err;

static int setup(void **state)
{
    (void)state;
    tree_new(dir);
    assert_int_equal(pr_host_open(&host, dir, &err), 0);
    t = (struct pr_tick){&host, 1, text, sizeof text};
    tree_process(dir, (struct fake_process){.pid = 1, .ppid = 0, .comm = "init"});
    tree_process(dir, (struct fake_process){.pid = 100, .ppid = 1, .comm = "root"});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (target)
        target->ops->free(target, true);
    target = NULL;
    pr_host_close(&host);
    pr_entities_done(&set);
    tree_done(dir);
    return 0;
}

static void process(int pid, int ppid)
{
    tree_process(dir, (struct fake_process){.pid = pid, .ppid = ppid});
}

static void watch(struct pr_target_setting setting)
{
    setting.root = setting.root ? setting.root : 100;
    assert_int_equal(pr_target_new(&setting, &host, &target, &err), 0);
}

/* What a tick does: look for new ones, then read all. */
static void update(void)
{
    assert_int_equal(target->ops->update(target, &t, &set), 0);
    for (size_t i = 0; i < set.count; i++) {
        struct pr_entity *e = set.items[i];
        if (e->life == LIFE_ALIVE && pr_source_read(&t, e, SOURCE_pid_stat) < 0)
            pr_entities_vanish(&set, e);
    }
}

static void sweep(void)
{
    for (size_t i = 0; i < set.count; i++)
        if (set.items[i]->life == LIFE_VANISHED)
            set.items[i]->life = LIFE_SETTLED;
    pr_entities_sweep(&set);
}

static bool is_member(int pid)
{
    return pr_entities_find(&set, pid) != NULL;
}

static size_t place_in_list(int pid)
{
    for (size_t i = 0; i < set.count; i++)
        if (set.items[i]->pid == pid)
            return i;
    fail_msg("%d is no member", pid);
    return 0;
}

static void test_discovery(void **state)
{
    (void)state;
    process(101, 100);
    process(102, 101);
    process(103, 1);
    process(104, 103);
    tree_write(dir, "proc/loadavg", "0 0 0 1/1 5\n");
    tree_write(dir, "proc/self/stat", "100 (self) S 101 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 1 0\n");
    tree_write(dir, "proc/12x/stat", "");
    watch((struct pr_target_setting){0});
    update();
    assert_int_equal(set.count, 3);
    assert_true(is_member(100) && is_member(101) && is_member(102));
    assert_false(is_member(103) || is_member(104) || is_member(1));
    process(105, 102);
    process(106, 104);
    update();
    assert_true(is_member(105));
    assert_false(is_member(106));
    assert_int_equal(set.count, 4);
    update();
    assert_int_equal(set.count, 4);
    assert_int_equal(set.started, 4);
}

static void test_child_listed_before_its_parent(void **state)
{
    (void)state;
    process(20, 30); /* pids wrap around: children may be smaller */
    process(30, 40);
    process(40, 100);
    process(50, 60);
    process(60, 1);
    watch((struct pr_target_setting){0});
    update();
    assert_int_equal(set.count, 4);
    assert_true(is_member(20));
    assert_false(is_member(50));
    /* Parents first, whatever their numbers: the ledger relies on it. */
    assert_true(place_in_list(100) < place_in_list(40));
    assert_true(place_in_list(40) < place_in_list(30));
    assert_true(place_in_list(30) < place_in_list(20));
}

static void test_orphan_stays_a_member(void **state)
{
    (void)state;
    process(101, 100);
    process(102, 101);
    watch((struct pr_target_setting){0});
    update();
    tree_remove(dir, 101);
    process(102, 1);
    update();
    sweep();
    assert_true(is_member(102));
    assert_int_equal(pr_entities_find(&set, 102)->ppid, 1);
    process(103, 102); /* so do its children */
    update();
    assert_true(is_member(103));
}

static void test_new_session_stays_a_member(void **state)
{
    (void)state;
    process(101, 100);
    watch((struct pr_target_setting){0});
    update();
    tree_process(dir, (struct fake_process){.pid = 101, .ppid = 1, .pgrp = 101});
    tree_process(dir, (struct fake_process){.pid = 102, .ppid = 101, .pgrp = 102});
    update();
    assert_true(is_member(101) && is_member(102));
}

/* A parent that is in no list yet: it was born while we looked. It is looked for again. */
static void test_unknown_parent(void **state)
{
    (void)state;
    watch((struct pr_target_setting){0});
    update();
    process(103, 102);
    update();
    assert_false(is_member(103));
    process(102, 101);
    process(101, 100);
    update();
    assert_true(is_member(101) && is_member(102) && is_member(103));
}

static void test_an_orphan_that_nobody_saw_is_not_ours(void **state)
{
    (void)state;
    watch((struct pr_target_setting){0});
    update();
    process(103, 1);
    update();
    assert_false(is_member(103));
    process(104, 103);
    update();
    assert_false(is_member(104));
}

static void test_adopter(void **state)
{
    (void)state;
    static const pid_t strangers[] = {60};
    tree_process(dir, (struct fake_process){.pid = 50, .ppid = 1, .comm = "proctor"});
    tree_process(dir, (struct fake_process){.pid = 100, .ppid = 50, .comm = "root"});
    process(60, 50);
    process(61, 60);
    watch((struct pr_target_setting){
        .self = 50, .adopter = 50, .fresh = true, .strangers = strangers, .stranger_count = 1});
    update();
    assert_int_equal(set.count, 1);
    process(103, 50); /* an orphan that we never saw before */
    process(104, 103);
    update();
    assert_true(is_member(103) && is_member(104));
    assert_false(is_member(50) || is_member(60) || is_member(61));
}

static void test_self_is_no_member(void **state)
{
    (void)state;
    process(101, 100);
    process(102, 101);
    watch((struct pr_target_setting){.self = 101});
    update();
    assert_int_equal(set.count, 1);
    assert_false(is_member(101) || is_member(102));
}

static void test_alone(void **state)
{
    (void)state;
    process(101, 100);
    watch((struct pr_target_setting){.alone = true});
    update();
    process(102, 100);
    update();
    assert_int_equal(set.count, 1);
    assert_true(is_member(100));
}

static void test_history(void **state)
{
    (void)state;
    process(101, 100);
    watch((struct pr_target_setting){0});
    update();
    assert_false(pr_entities_find(&set, 100)->born_inside);
    assert_false(pr_entities_find(&set, 101)->born_inside);
    process(102, 101);
    update();
    assert_true(pr_entities_find(&set, 102)->born_inside);
}

static void test_fresh_has_no_history(void **state)
{
    (void)state;
    watch((struct pr_target_setting){.fresh = true});
    update();
    assert_true(pr_entities_find(&set, 100)->born_inside);
}

/* --- the same pid again ----------------------------------------------------------------------- */

static void test_pid_reused_inside(void **state)
{
    (void)state;
    process(101, 100);
    watch((struct pr_target_setting){0});
    update();
    tree_reuse(dir, (struct fake_process){.pid = 101, .ppid = 100, .start = 5000});
    update();
    assert_int_equal(pr_entities_find(&set, 101)->start, 5000);
    assert_int_equal(set.started, 3);
    assert_int_equal(set.exited, 1);
    sweep();
    assert_int_equal(set.count, 2);
}

static void test_pid_reused_outside(void **state)
{
    (void)state;
    process(101, 100);
    watch((struct pr_target_setting){0});
    update();
    tree_reuse(dir, (struct fake_process){.pid = 101, .ppid = 1, .start = 5000});
    update();
    assert_false(is_member(101));
    assert_int_equal(set.exited, 1);
    sweep();
    process(102, 101);
    update();
    assert_false(is_member(102));
}

/* In one interval a member ends, its pid goes to a process that is not ours, and that one has a
 * child. The child is not ours either. */
static void test_child_of_a_pid_reused_outside(void **state)
{
    (void)state;
    process(101, 100);
    watch((struct pr_target_setting){0});
    update();
    tree_reuse(dir, (struct fake_process){.pid = 101, .ppid = 1, .start = 5000});
    tree_process(dir, (struct fake_process){.pid = 102, .ppid = 101, .start = 5001});
    update();
    assert_false(is_member(101));
    assert_false(is_member(102));
}

static void test_known_stranger_reused_inside(void **state)
{
    (void)state;
    process(103, 1);
    watch((struct pr_target_setting){0});
    update();
    assert_false(is_member(103));
    tree_reuse(dir, (struct fake_process){.pid = 103, .ppid = 100, .start = 5000});
    update();
    assert_true(is_member(103));
}

/* Where all of /proc is listed each time, those who are known not to belong are not read again. */
static void test_a_known_stranger_is_not_read_again(void **state)
{
    (void)state;
    for (int pid = 103; pid < 153; pid++)
        process(pid, 1);
    watch((struct pr_target_setting){0});
    update();
    for (int pid = 103; pid < 153; pid++)
        process(pid, 100); /* the same process: its parent would be seen by whoever reads it */
    process(200, 100);
    update();
    assert_true(is_member(200));
    for (int pid = 103; pid < 153; pid++)
        assert_false(is_member(pid));
}

/* --- the end ---------------------------------------------------------------------------------- */

static bool is_over(void)
{
    return target->ops->over(target, &set);
}

static void test_over(void **state)
{
    (void)state;
    process(101, 100);
    watch((struct pr_target_setting){0});
    assert_false(is_over()); /* not before the first look */
    update();
    assert_false(is_over());
    tree_remove(dir, 100);
    process(101, 1);
    update();
    assert_true(is_over());
}

static void test_over_with_the_whole_tree(void **state)
{
    (void)state;
    process(101, 100);
    watch((struct pr_target_setting){.wait_tree = true});
    update();
    tree_remove(dir, 100);
    update();
    assert_false(is_over());
    tree_remove(dir, 101);
    update();
    assert_true(is_over());
}

static void test_over_when_the_root_is_a_zombie(void **state)
{
    (void)state;
    watch((struct pr_target_setting){0});
    update();
    tree_process(dir, (struct fake_process){.pid = 100, .ppid = 1, .state = 'Z'});
    update();
    assert_true(is_over());
}

static void test_over_when_the_root_pid_is_another_process(void **state)
{
    (void)state;
    watch((struct pr_target_setting){0});
    update();
    tree_reuse(dir, (struct fake_process){.pid = 100, .ppid = 1, .start = 5000});
    update();
    assert_true(is_over());
}

/* The leader thread has ended, the others work on: the process shows as Z, and is alive. */
static void test_not_over_while_threads_are_left(void **state)
{
    (void)state;
    watch((struct pr_target_setting){0});
    update();
    tree_process(dir, (struct fake_process){.pid = 100, .ppid = 1, .state = 'Z', .threads = 3});
    update();
    assert_false(is_over());
}

static void test_no_such_process(void **state)
{
    (void)state;
    struct pr_target_setting setting = {.root = 4242};
    struct pr_target *none = NULL;
    assert_int_equal(pr_target_new(&setting, &host, &none, &err), -ESRCH);
    assert_contains(err.message, "4242");
    tree_process(dir, (struct fake_process){.pid = 4242, .ppid = 1, .state = 'Z'});
    assert_int_equal(pr_target_new(&setting, &host, &none, &err), -ESRCH);
    tree_write(dir, "proc/4242/stat", "");
    assert_true(pr_target_new(&setting, &host, &none, &err) < 0);
    assert_contains(err.message, "4242");
    assert_null(none);
}

/* --- the real /proc --------------------------------------------------------------------------- */

/* In place of the tree that setup made. */
static struct pr_tick watch_ourselves(void)
{
    struct pr_target_setting setting = {.root = getpid()};
    pr_host_close(&host);
    assert_int_equal(pr_host_open(&host, "/", &err), 0);
    assert_int_equal(pr_target_new(&setting, &host, &target, &err), 0);
    return (struct pr_tick){&host, 1, text, sizeof text};
}

static void test_real_processes(void **state)
{
    (void)state;
    struct pr_tick here = watch_ourselves();
    assert_int_equal(target->ops->update(target, &here, &set), 0);
    assert_int_equal(set.count, 1);
    pid_t child = fork();
    if (child == 0) {
        setsid();
        pause();
        _exit(0);
    }
    assert_int_equal(target->ops->update(target, &here, &set), 0);
    assert_true(is_member(child));
    assert_int_equal(target->ops->update(target, &here, &set), 0);
    assert_int_equal(set.count, 2);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static unsigned listings;

ssize_t __real_getdents64(int fd, void *buffer, size_t size);
ssize_t __wrap_getdents64(int fd, void *buffer, size_t size);

ssize_t __wrap_getdents64(int fd, void *buffer, size_t size)
{
    listings++;
    return __real_getdents64(fd, buffer, size);
}

static int last_pid(void)
{
    char line[128] = "";
    FILE *f = fopen("/proc/loadavg", "r");
    assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    return atoi(strrchr(line, ' '));
}

/* While nobody on the machine forks there is nobody new: /proc is not listed again. */
static void test_no_fork_no_listing(void **state)
{
    (void)state;
    struct pr_tick here = watch_ourselves();
    bool quiet = false;
    for (int i = 0; i < 1000 && !quiet; i++) {
        int before = last_pid();
        for (int k = 0; k < 3; k++) /* who was born while we looked is looked for once more */
            assert_int_equal(target->ops->update(target, &here, &set), 0);
        listings = 0;
        assert_int_equal(target->ops->update(target, &here, &set), 0);
        quiet = last_pid() == before; /* others fork, too */
        usleep(quiet ? 0 : 10000);
    }
    assert_true(quiet);
    assert_int_equal(listings, 0);
}

/* Forked since the last look: it is asked for by its pid, and /proc is not listed for it either,
 * unless it has not been for a while. */
static void test_a_fork_is_no_listing(void **state)
{
    (void)state;
    struct pr_tick here = watch_ourselves();
    assert_int_equal(target->ops->update(target, &here, &set), 0);
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        listings = 0;
        children[i] = fork();
        if (children[i] == 0)
            for (;;)
                pause();
        here.now += i ? 11 * NS_PER_S : NS_PER_S;
        assert_int_equal(target->ops->update(target, &here, &set), 0);
        assert_non_null(pr_entities_find(&set, children[i]));
        assert_int_equal(listings > 0, i == 1);
    }
    for (int i = 0; i < 2; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
}

static void *wait_for_the_end(void *end)
{
    pthread_mutex_lock(end);
    pthread_mutex_unlock(end);
    return NULL;
}

/* Threads have pids of the same sequence, and files that look like a process's. */
static void test_a_thread_is_no_process(void **state)
{
    (void)state;
    struct pr_tick here = watch_ourselves();
    pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    assert_int_equal(target->ops->update(target, &here, &set), 0);
    pthread_mutex_lock(&end);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_the_end, &end), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(target->ops->update(target, &here, &set), 0);
    assert_int_equal(set.count, 1);
    pthread_mutex_unlock(&end);
    pthread_join(thread, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_discovery),
        TEST(test_child_listed_before_its_parent),
        TEST(test_orphan_stays_a_member),
        TEST(test_new_session_stays_a_member),
        TEST(test_unknown_parent),
        TEST(test_an_orphan_that_nobody_saw_is_not_ours),
        TEST(test_adopter),
        TEST(test_self_is_no_member),
        TEST(test_alone),
        TEST(test_history),
        TEST(test_fresh_has_no_history),
        TEST(test_pid_reused_inside),
        TEST(test_pid_reused_outside),
        TEST(test_child_of_a_pid_reused_outside),
        TEST(test_known_stranger_reused_inside),
        TEST(test_a_known_stranger_is_not_read_again),
        TEST(test_over),
        TEST(test_over_with_the_whole_tree),
        TEST(test_over_when_the_root_is_a_zombie),
        TEST(test_over_when_the_root_pid_is_another_process),
        TEST(test_not_over_while_threads_are_left),
        TEST(test_no_such_process),
        TEST(test_real_processes),
        TEST(test_no_fork_no_listing),
        TEST(test_a_fork_is_no_listing),
        TEST(test_a_thread_is_no_process),
    };
    return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
