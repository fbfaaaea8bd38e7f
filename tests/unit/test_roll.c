/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "core/roll.h"

static struct pr_roll roll;

static int teardown(void **state)
{
    (void)state;
    pr_roll_done(&roll);
    return 0;
}

static struct pr_roll_entry entry(int pid, const char *comm, double cpu, double peak)
{
    struct pr_roll_entry e = {.pid = pid, .cpu = cpu, .peak = peak, .looks = 1, .peak_final = true};
    snprintf(e.comm, sizeof e.comm, "%s", comm);
    return e;
}

static void test_entries_stay_where_they_are(void **state)
{
    (void)state;
    struct pr_roll_entry e = entry(1, "a", 1, 10);
    pr_roll_add(&roll, &e);
    const struct pr_roll_entry *first = pr_roll_at(&roll, 0);
    for (int i = 2; i <= 3 * ROLL_PIECE; i++) {
        e = entry(i, "b", 1, 10);
        pr_roll_add(&roll, &e);
    }
    assert_ptr_equal(first, pr_roll_at(&roll, 0));
    assert_int_equal(first->pid, 1);
    assert_int_equal(roll.count, 3 * ROLL_PIECE);
    for (size_t i = 0; i < roll.count; i++)
        assert_int_equal(pr_roll_at(&roll, i)->pid, i + 1);
}

/* Nothing is lost from the account of a command, however many there are. */
static void test_too_many_are_folded_by_command(void **state)
{
    (void)state;
    struct pr_roll_entry e = entry(1, "true", 0.001, 100);
    for (int i = 0; i < ROLL_MOST + 500; i++) {
        e.io[1] = 2;
        e.status = i % 10 ? 0 : 256;
        e.looks = i % 2;
        pr_roll_add(&roll, &e);
    }
    assert_int_equal(roll.count, ROLL_MOST);
    assert_int_equal(roll.folded, 500);
    assert_int_equal(roll.unsampled, (ROLL_MOST + 500) / 2);
    assert_int_equal(roll.command_count, 1);
    assert_int_equal(roll.commands[0].count, ROLL_MOST + 500);
    assert_int_equal(roll.commands[0].failed, (ROLL_MOST + 500) / 10);
    assert_near(roll.commands[0].cpu, 100.5, 1e-6);
    assert_exactly(roll.commands[0].io[1], 2.0 * (ROLL_MOST + 500));
    assert_absent(pr_roll_upper(&roll)); /* not everybody is in the list */
}

static void test_too_many_commands(void **state)
{
    (void)state;
    unsigned long count = 0;
    for (int i = 0; i < 3 * ROLL_COMMANDS; i++) {
        char name[ROLL_COMM];
        snprintf(name, sizeof name, "c%d", i);
        struct pr_roll_entry e = entry(i + 1, name, 1, 10);
        pr_roll_add(&roll, &e);
    }
    assert_int_equal(roll.command_count, ROLL_COMMANDS);
    assert_string_equal(roll.commands[ROLL_COMMANDS - 1].comm, "(others)");
    for (size_t i = 0; i < roll.command_count; i++)
        count += roll.commands[i].count;
    assert_int_equal(count, 3 * ROLL_COMMANDS);
}

static void add_life(int64_t from, int64_t to, double peak, bool final)
{
    struct pr_roll_entry e = entry(1, "x", 1, peak);
    e.started = from;
    e.ended = to;
    e.peak_final = final;
    pr_roll_add(&roll, &e);
}

static void test_the_most_that_was_there_together(void **state)
{
    (void)state;
    add_life(10, 20, 100, true);
    add_life(20, 30, 50, true); /* they may have met */
    add_life(31, 40, 120, true);
    add_life(5, 0, 7, true); /* to the end */
    assert_exactly(pr_roll_upper(&roll), 157);
}

static void test_no_bound_where_a_mark_is_not_known(void **state)
{
    (void)state;
    assert_absent(pr_roll_upper(&roll));
    add_life(10, 20, 100, true);
    assert_exactly(pr_roll_upper(&roll), 100);
    add_life(10, 20, NAN, true);
    assert_absent(pr_roll_upper(&roll));
    pr_roll_done(&roll);
    add_life(10, 20, 100, true);
    add_life(10, 20, 100, false); /* it may have grown after it was read */
    assert_absent(pr_roll_upper(&roll));
}

static void test_of_a_member(void **state)
{
    (void)state;
    struct pr_entity e = {.pid = 7, .ppid = 3, .looks = 4, .end = {.status = -1, .mark = 500}};
    for (int i = 0; i < PROC_METRICS; i++)
        e.value[i] = NAN;
    strcpy(e.comm, "a kernel thread with a long name");
    e.value[METRIC_CPU_TIME] = 2;
    e.value[METRIC_MEM_RSS_PEAK] = 400; /* --peaks: of its last interval */
    e.value[METRIC_IO_READ] = 1000;
    e.end.io_brought[0] = 300;
    struct pr_roll_entry got = pr_roll_entry_of(&e);
    assert_int_equal(got.way, ROLL_SAMPLED);
    assert_exactly(got.cpu, 2);
    assert_exactly(got.peak, 500);
    assert_exactly(got.io[0], 700);
    assert_absent(got.io[1]);
    assert_int_equal(strlen(got.comm), ROLL_COMM - 1);
    assert_false(got.peak_final || pr_roll_failed(got.status));
    e.told = 2.5;
    e.end.status = 9;
    got = pr_roll_entry_of(&e);
    assert_int_equal(got.way, ROLL_RECORD);
    assert_exactly(got.cpu, 2.5);
    assert_true(pr_roll_failed(got.status));
    got.looks = 0; /* it ended before anything of it was read: a member all the same */
    pr_roll_add(&roll, &got);
    assert_int_equal(roll.unsampled, 1);
    assert_int_equal(roll.recorded, 0);
    assert_true(roll.killed);
}

static void test_who_may_have_been_killed(void **state)
{
    (void)state;
    static const struct {
        int64_t ended;
        int status;
        bool killed;
    } ends[] = {{0, -1, false}, {5, -1, true}, {5, 0, false},      {5, 1 << 8, false},
                {5, 15, false}, {5, 9, true},  {5, 137 << 8, true}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct pr_roll_entry e = entry(1, "a", 1, 10);
        e.status = ends[i].status;
        e.ended = ends[i].ended;
        pr_roll_add(&roll, &e);
        assert_int_equal(roll.killed, ends[i].killed);
        pr_roll_done(&roll);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_entries_stay_where_they_are, teardown),
        cmocka_unit_test_teardown(test_too_many_are_folded_by_command, teardown),
        cmocka_unit_test_teardown(test_too_many_commands, teardown),
        cmocka_unit_test_teardown(test_the_most_that_was_there_together, teardown),
        cmocka_unit_test_teardown(test_no_bound_where_a_mark_is_not_known, teardown),
        cmocka_unit_test_teardown(test_of_a_member, teardown),
        cmocka_unit_test_teardown(test_who_may_have_been_killed, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
