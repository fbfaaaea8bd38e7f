/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the pids of a driver are. */
#include "tree.h"
#include "gpu/who.h"

static char dir[TREE_PATH];
static struct pr_host host;
static struct pr_gpu_round *r;
static struct pr_gpu_work w;
static struct pr_gpu_owners owners;
static const pid_t members[] = {500, 501};

static void link_to(const char *name, const char *target)
{
    char path[TREE_PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    tree_make_dirs(path);
    assert_int_equal(symlink(target, path), 0);
}

/* Two devices; two members, the second of which is process 57 of a namespace of its own. */
static int setup(void **state)
{
    (void)state;
    struct proctor_error err;
    tree_new(dir);
    tree_write(dir, "proc/500/status", "Name:\ta\nNSpid:\t500\nThreads:\t1\n");
    tree_write(dir, "proc/501/status", "Name:\tb\nNSpid:\t501\t57\t3\nThreads:\t1\n");
    tree_write(dir, "proc/900/status", "Name:\tother\nNSpid:\t900\n");
    r = calloc(1, sizeof *r);
    assert_non_null(r);
    w = (struct pr_gpu_work){.host = &host, .round = r, .members = members, .member_count = 2};
    owners = (struct pr_gpu_owners){.count = 2, .number = {0, 1}, .memory = true};
    for (int i = 0; i < 2; i++) {
        struct pr_gpu_card *c = pr_gpu_add_card(&w);
        snprintf(c->uuid, sizeof c->uuid, "GPU-%d", i);
        pr_gpu_put(c, METRIC_GPU_MEM_USED, 1000 * (i + 1));
        pr_gpu_put(c, METRIC_GPU_UTIL, 0.25 * (i + 1));
    }
    return pr_host_open(&host, dir, &err);
}

static int teardown(void **state)
{
    (void)state;
    free(r);
    pr_host_close(&host);
    tree_done(dir);
    return 0;
}

static void add(pid_t pid, unsigned card, double memory)
{
    pr_gpu_use_of(r, pid, card)->memory = memory;
}

static double memory_of(pid_t pid, unsigned card)
{
    for (size_t i = 0; i < r->use_count; i++)
        if (r->use[i].pid == pid && r->use[i].card == card)
            return r->use[i].memory;
    return NAN;
}

static void test_our_own_pids(void **state)
{
    (void)state;
    add(500, 0, 10);
    add(900, 0, 20); /* somebody else's, and to be seen */
    pr_gpu_find_owners(&w, &owners);
    assert_exactly(memory_of(500, 0), 10);
    assert_exactly(memory_of(900, 0), 20);
    assert_false(r->memory_whole);
}

static void test_pids_of_a_namespace_below(void **state)
{
    (void)state;
    add(57, 1, 10);
    pr_gpu_find_owners(&w, &owners);
    assert_exactly(memory_of(501, 1), 10);
    assert_absent(memory_of(57, 1));
    assert_false(r->memory_whole);
}

/* Its memory is told first, its use by another call. */
static void test_both_go_to_one(void **state)
{
    (void)state;
    add(57, 1, 10);
    pr_gpu_find_owners(&w, &owners);
    pr_gpu_use_of(r, 57, 1)->usage = 0.5;
    pr_gpu_use_of(r, 900, 1)->usage = 0.1;
    owners.memory = false;
    pr_gpu_find_owners(&w, &owners);
    assert_int_equal(r->use_count, 2);
    assert_exactly(memory_of(501, 1), 10);
    assert_near(pr_gpu_use_of(r, 501, 1)->usage, 0.5, 1e-9);
    assert_near(pr_gpu_use_of(r, 900, 1)->usage, 0.1, 1e-9);
}

/* A process with that pid is here: it is that one, whatever a member is called elsewhere. */
static void test_a_pid_that_is_here_is_not_translated(void **state)
{
    (void)state;
    tree_write(dir, "proc/57/status", "Name:\tx\nNSpid:\t57\n");
    add(57, 1, 10);
    pr_gpu_find_owners(&w, &owners);
    assert_exactly(memory_of(57, 1), 10);
    assert_absent(memory_of(501, 1));
}

static void test_strangers_alone_and_no_open_device(void **state)
{
    (void)state;
    add(77777, 0, 10);
    pr_gpu_find_owners(&w, &owners);
    assert_false(r->memory_whole);
    assert_absent(memory_of(500, 0));
}

static void open_devices(void)
{
    link_to("proc/500/fd/3", "/dev/nvidiactl");
    link_to("proc/500/fd/4", "/dev/nvidia-uvm");
    link_to("proc/500/fd/5", "/dev/nvidia0");
    link_to("proc/500/fd/6", "/dev/nvidia1");
    link_to("proc/501/fd/5", "/dev/nvidia0");
}

static void test_whole_devices_where_nobody_can_be_matched(void **state)
{
    (void)state;
    open_devices();
    add(77777, 0, 10);
    pr_gpu_find_owners(&w, &owners);
    assert_true(r->memory_whole);
    assert_false(r->usage_whole);
    assert_exactly(memory_of(500, 0), 1000);
    assert_exactly(memory_of(500, 1), 2000);
    assert_absent(memory_of(501, 0)); /* it counts once */
}

static void test_not_where_a_member_was_matched(void **state)
{
    (void)state;
    open_devices();
    add(77777, 0, 10);
    add(501, 0, 5);
    pr_gpu_find_owners(&w, &owners);
    assert_false(r->memory_whole);
    assert_exactly(memory_of(501, 0), 5);
}

static void see(const char *variable)
{
    char text[128];
    int n =
        snprintf(text, sizeof text, "HOME=/%cCUDA_VISIBLE_DEVICES=%s%cX=1%c", 0, variable, 0, 0);
    r->use_count = 0;
    r->memory_whole = false;
    tree_write_bytes(dir, "proc/500/environ", text, (size_t)n);
    tree_write_bytes(dir, "proc/501/environ", text, (size_t)n);
    add(77777, 0, 10);
    pr_gpu_find_owners(&w, &owners);
}

static void test_only_what_the_job_may_see(void **state)
{
    (void)state;
    open_devices();
    see("1");
    assert_absent(memory_of(500, 0));
    assert_exactly(memory_of(500, 1), 2000);
    see("GPU-0");
    assert_exactly(memory_of(500, 0), 1000);
    assert_absent(memory_of(500, 1));
    see("0,1");
    assert_exactly(memory_of(500, 0), 1000);
    assert_exactly(memory_of(500, 1), 2000);
    see("");
    assert_false(r->memory_whole);
    see("-1");
    assert_false(r->memory_whole);
}

static void test_a_driver_that_tells_nothing_of_processes(void **state)
{
    (void)state;
    open_devices();
    owners.blind = true;
    owners.memory = false;
    pr_gpu_put(&r->card[1], METRIC_GPU_UTIL, NAN); /* and does not tell that one's use either */
    pr_gpu_find_owners(&w, &owners);
    assert_true(r->usage_whole);
    assert_false(r->memory_whole);
    assert_int_equal(r->use_count, 1);
    assert_int_equal(r->use[0].pid, 500);
    assert_near(r->use[0].usage, 0.25, 1e-9);
}

/* --- rounds that nobody has taken ------------------------------------------------------------- */

/* Usage is told in every second round only: what an untaken one has of it stays. */
static void test_what_is_not_newer_stays(void **state)
{
    (void)state;
    struct pr_gpu_round *next = calloc(1, sizeof *next);
    assert_non_null(next);
    *pr_gpu_use_of(r, 500, 0) = (struct pr_gpu_use){500, 0, 10, 0.5, true};
    *pr_gpu_use_of(r, 501, 1) = (struct pr_gpu_use){501, 1, 20, NAN, true};
    r->memory_known = r->usage_known = true;
    *pr_gpu_use_of(next, 500, 0) = (struct pr_gpu_use){500, 0, 30, NAN, true};
    next->memory_known = next->memory_whole = true;
    next->card_count = 2;
    next->at = 7;
    pr_gpu_round_merge(r, next);
    assert_true(r->memory_known && r->usage_known && r->memory_whole && !r->usage_whole);
    assert_int_equal(r->use_count, 1); /* the other has gone */
    assert_exactly(memory_of(500, 0), 30);
    assert_near(pr_gpu_use_of(r, 500, 0)->usage, 0.5, 1e-9);
    assert_int_equal(r->at, 7);
    /* And the other way round. */
    *next = (struct pr_gpu_round){.usage_known = true, .card_count = 2};
    *pr_gpu_use_of(next, 501, 1) = (struct pr_gpu_use){501, 1, NAN, 0.2, false};
    pr_gpu_round_merge(r, next);
    assert_true(r->memory_known && r->usage_known && r->memory_whole);
    assert_exactly(memory_of(500, 0), 30);
    assert_absent(pr_gpu_use_of(r, 500, 0)->usage);
    assert_near(pr_gpu_use_of(r, 501, 1)->usage, 0.2, 1e-9);
    free(next);
}

static void test_a_full_round_knows_nothing(void **state)
{
    (void)state;
    struct pr_gpu_round *next = calloc(1, sizeof *next);
    assert_non_null(next);
    for (pid_t i = 0; i < GPU_USES; i++)
        add(1000 + i, 0, 10);
    assert_false(r->cut);
    r->memory_known = true;
    pr_gpu_use_of(next, 500, 0)->usage = 0.5;
    next->usage_known = true;
    next->card_count = 2;
    pr_gpu_round_merge(r, next);
    assert_true(r->cut && !r->memory_known && !r->usage_known);
    free(next);
}

/* A pid of nobody that can be seen may be one of those that are left out. */
static void test_strangers_where_members_are_left_out(void **state)
{
    (void)state;
    w.members_cut = true;
    add(900, 0, 10);
    pr_gpu_find_owners(&w, &owners);
    assert_false(r->cut);
    add(77777, 0, 10);
    pr_gpu_find_owners(&w, &owners);
    assert_true(r->cut);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_our_own_pids),
        TEST(test_pids_of_a_namespace_below),
        TEST(test_both_go_to_one),
        TEST(test_a_pid_that_is_here_is_not_translated),
        TEST(test_strangers_alone_and_no_open_device),
        TEST(test_whole_devices_where_nobody_can_be_matched),
        TEST(test_not_where_a_member_was_matched),
        TEST(test_only_what_the_job_may_see),
        TEST(test_a_driver_that_tells_nothing_of_processes),
        TEST(test_what_is_not_newer_stays),
        TEST(test_a_full_round_knows_nothing),
        TEST(test_strangers_where_members_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
