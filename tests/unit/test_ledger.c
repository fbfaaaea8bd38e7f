/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios, each a few readings of a small family. Of the counters three are looked at: CPU time
 * and minor faults, which the kernel keeps apart for reaped children, and written bytes, which it
 * adds to the parent's own. */
#include "check.h"
#include "core/ledger.h"

#define US 5

static struct pr_ledger l;
static struct pr_entities set;

static int setup(void **state)
{
    (void)state;
    pr_ledger_init(&l, 0);
    return 0;
}

static int setup_reaper(void **state)
{
    (void)state;
    pr_ledger_init(&l, US);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pr_entities_done(&set);
    return 0;
}

struct usage {
    double cpu, faults, wchar; /* wchar with that of reaped children, as the kernel has it */
    double reaped_cpu, reaped_faults;
};

/* A reading of a member. */
static void look(struct pr_entity *e, struct usage u)
{
    e->value[METRIC_CPU_TIME] = u.cpu;
    e->value[METRIC_FAULTS_MINOR] = u.faults;
    e->value[METRIC_IO_WCHAR] = u.wchar;
    e->reaped[METRIC_CPU_TIME] = u.reaped_cpu;
    e->reaped[METRIC_FAULTS_MINOR] = u.reaped_faults;
}

static struct pr_entity *join_at(int pid, int ppid, struct usage u, bool born_inside)
{
    struct pr_entity *e = pr_entities_add(&set, pid, (uint64_t)pid);
    e->ppid = ppid;
    e->state = 'S';
    e->born_inside = born_inside;
    look(e, u);
    pr_ledger_join(&l, e);
    return e;
}

static struct pr_entity *born(int pid, int ppid, struct usage u)
{
    return join_at(pid, ppid, u, true);
}

static void gone(struct pr_entity *e)
{
    pr_entities_vanish(&set, e);
}

static void settle(void)
{
    double before[PROC_METRICS];
    memcpy(before, l.total, sizeof before);
    pr_ledger_settle(&l, &set, false);
    pr_entities_sweep(&set);
    for (int i = 0; i < PROC_METRICS; i++)
        assert_false(l.total[i] < before[i]); /* whatever happens */
}

static void settle_last(void)
{
    pr_ledger_settle(&l, &set, true);
    pr_entities_sweep(&set);
}

static void reap(struct pr_entity *e, double cpu, double faults)
{
    double usage[PROC_METRICS];
    for (int i = 0; i < PROC_METRICS; i++)
        usage[i] = NAN;
    usage[METRIC_CPU_TIME] = cpu;
    usage[METRIC_FAULTS_MINOR] = faults;
    if (e)
        gone(e);
    pr_ledger_reap(&l, e, usage);
}

#define assert_totals(cpu, faults, wchar)                                                          \
    do {                                                                                           \
        assert_exactly(l.total[METRIC_CPU_TIME], cpu);                                             \
        assert_exactly(l.total[METRIC_FAULTS_MINOR], faults);                                      \
        assert_exactly(l.total[METRIC_IO_WCHAR], wchar);                                           \
    } while (0)

/* --- the simple things ------------------------------------------------------------------------ */

static void test_nothing_read_is_absent(void **state)
{
    (void)state;
    settle();
    assert_absent(l.total[METRIC_CPU_TIME]);
    struct pr_entity *p = born(10, 1, (struct usage){.cpu = 1, .faults = 10, .wchar = NAN});
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 1);
    assert_absent(l.total[METRIC_IO_WCHAR]); /* unreadable is not 0 */
    assert_absent(l.total[METRIC_MEM_RSS]);  /* not the ledger's business */
    gone(p);
    settle();
    assert_absent(l.total[METRIC_IO_WCHAR]);
}

static void test_living_members_and_what_they_reaped(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){1, 100, 7, 2, 50});
    born(11, 10, (struct usage){4, 10, 3, 0, 0});
    settle();
    assert_totals(7, 160, 10);
    look(p, (struct usage){5, 100, 7, 2, 50});
    settle();
    assert_totals(11, 160, 10);
    assert_int_equal(l.unabsorbed, 0);
}

static void test_some_unreadable(void **state)
{
    (void)state;
    born(10, 1, (struct usage){.cpu = 1, .faults = 10, .wchar = NAN});
    born(11, 10, (struct usage){.cpu = 1, .faults = 10, .wchar = 5});
    settle();
    assert_exactly(l.total[METRIC_IO_WCHAR], 5);
}

/* Times are shown in clock ticks: what a child had in nanoseconds can be less in its parent. */
static void test_a_smaller_reading_changes_nothing(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){.cpu = 1.009, .faults = 10});
    settle();
    look(p, (struct usage){.cpu = 1.00, .faults = 10});
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 1.009);
    look(p, (struct usage){.cpu = 1.02, .faults = 10});
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 1.02);
}

/* --- a child ends ----------------------------------------------------------------------------- */

static void test_child_reaped_by_its_parent(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){.cpu = 1, .faults = 100, .wchar = 7});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50, .wchar = 3});
    settle();
    /* It used some more before it ended. */
    look(p, (struct usage){1, 100, 7 + 5, 6, 80});
    gone(c);
    settle();
    assert_totals(7, 180, 12);
    assert_int_equal(l.unabsorbed, 0);
    assert_int_equal(set.count, 1);
    settle();
    assert_totals(7, 180, 12);
}

/* The parent was read, then it reaped, then the child was looked for. */
static void test_child_reaped_between_two_files(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){.cpu = 1, .faults = 100, .wchar = 7});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50, .wchar = 3});
    settle();
    gone(c);
    settle();
    assert_totals(5, 150, 10); /* as if it lived */
    look(p, (struct usage){1, 100, 12, 6, 80});
    settle();
    assert_totals(7, 180, 12);
    assert_int_equal(l.unabsorbed, 0);
}

static void test_child_never_seen(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){.cpu = 1, .faults = 100, .wchar = 7});
    settle();
    look(p, (struct usage){1, 100, 20, 3, 60});
    settle();
    assert_totals(4, 160, 20);
    assert_int_equal(l.unabsorbed, 0);
}

/* SIGCHLD ignored: the kernel throws the account away, so its last values are all there is. */
static void test_child_reaped_by_nobody(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){.cpu = 1, .faults = 100, .wchar = 7});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50, .wchar = 3});
    settle();
    gone(c);
    settle();
    assert_totals(5, 150, 10);
    settle();
    assert_totals(5, 150, 10);
    assert_int_equal(l.unabsorbed, 1);
    assert_int_equal(set.count, 1);
    look(p, (struct usage){.cpu = 2, .faults = 110, .wchar = 8});
    settle();
    assert_totals(6, 160, 11);
}

/* What was reaped long ago is no receipt for whoever vanishes now. */
static void test_old_receipts_expire(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    settle();
    look(p, (struct usage){1, 100, 0, 9, 1000}); /* children that we never saw */
    settle();
    settle();
    settle();
    gone(c);
    settle();
    settle();
    assert_totals(14, 1150, 0);
    assert_int_equal(l.unabsorbed, 1);
}

static void test_two_children_one_receipt(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *a = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    struct pr_entity *b = born(12, 10, (struct usage){.cpu = 8, .faults = 60});
    settle();
    look(p, (struct usage){1, 100, 0, 4, 50});
    gone(a);
    gone(b);
    settle();
    assert_totals(13, 210, 0); /* one taken over; the other may still come */
    look(p, (struct usage){1, 100, 0, 12, 110});
    settle();
    assert_totals(13, 210, 0);
    assert_int_equal(l.unabsorbed, 0);
}

static void test_zombies_count_until_they_are_reaped(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    settle();
    c->state = 'Z';
    look(c, (struct usage){.cpu = 5, .faults = 60});
    for (int i = 0; i < 5; i++)
        settle();
    assert_totals(6, 160, 0);
    look(p, (struct usage){1, 100, 0, 5, 60});
    gone(c);
    settle();
    assert_totals(6, 160, 0);
    assert_int_equal(l.unabsorbed, 0);
}

/* --- several at once -------------------------------------------------------------------------- */

static void test_child_and_parent_in_one_tick(void **state)
{
    (void)state;
    struct pr_entity *g = born(9, 1, (struct usage){.cpu = 1, .faults = 10, .wchar = 1});
    struct pr_entity *p = born(10, 9, (struct usage){.cpu = 2, .faults = 100, .wchar = 7});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50, .wchar = 3});
    settle();
    assert_totals(7, 160, 11);
    look(g, (struct usage){1, 10, 1 + 7 + 3, 6, 150});
    gone(p);
    gone(c);
    settle();
    assert_totals(7, 160, 11);
    assert_int_equal(l.unabsorbed, 0);
    assert_int_equal(set.count, 1);
}

static void test_child_and_parent_one_reading_late(void **state)
{
    (void)state;
    struct pr_entity *g = born(9, 1, (struct usage){.cpu = 1, .faults = 10});
    struct pr_entity *p = born(10, 9, (struct usage){.cpu = 2, .faults = 100});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    settle();
    gone(p);
    gone(c);
    settle();
    assert_totals(7, 160, 0);
    look(g, (struct usage){1, 10, 0, 7, 160});
    settle();
    assert_totals(8, 170, 0);
    assert_int_equal(l.unabsorbed, 0);
    assert_int_equal(set.count, 1);
}

/* First the child, a tick later its parent, whose account with the child's in it goes on. */
static void test_child_then_parent(void **state)
{
    (void)state;
    struct pr_entity *g = born(9, 1, (struct usage){.cpu = 1, .faults = 10});
    struct pr_entity *p = born(10, 9, (struct usage){.cpu = 2, .faults = 100});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    settle();
    gone(c); /* reaped by p, but after p was read */
    settle();
    gone(p);
    look(g, (struct usage){1, 10, 0, 7, 155});
    settle();
    assert_totals(8, 165, 0);
    assert_int_equal(l.unabsorbed, 0);
}

/* C waits for a receipt that comes with its parent's, P's. It is there when Q, another child of G,
 * has just vanished and its own is not: Q takes what C waits for, and C gets Q's a reading later.
 */
static void test_a_grandchild_gets_what_a_late_receipt_brings(void **state)
{
    (void)state;
    struct pr_entity *g = born(9, 1, (struct usage){.cpu = 1, .faults = 10});
    struct pr_entity *p = born(10, 9, (struct usage){.cpu = 2, .faults = 12});
    struct pr_entity *q = born(11, 9, (struct usage){.cpu = 3, .faults = 11});
    struct pr_entity *c = born(12, 10, (struct usage){.cpu = 4, .faults = 11});
    settle();
    gone(c); /* reaped by P, but after P was read */
    settle();
    gone(p); /* reaped by G, but after G was read */
    settle();
    look(g, (struct usage){1, 10, 0, 6, 23}); /* P and C */
    gone(q);                                  /* as P was */
    settle();
    assert_int_equal(l.unabsorbed, 0);
    look(g, (struct usage){1, 10, 0, 9, 34});
    settle();
    assert_totals(10, 44, 0);
    assert_int_equal(l.unabsorbed, 0);
    assert_int_equal(set.count, 1);
}

/* Q ignores SIGCHLD: its child Y leaves no account. G waits for its own children Q and P. All end
 * in one interval. Y must not take the receipt that is for P: then P would count twice, once in G
 * and once more as somebody that nobody took over. */
static void test_a_lost_child_does_not_take_anothers_receipt(void **state)
{
    (void)state;
    struct pr_entity *g = born(9, 1, (struct usage){.cpu = 1, .faults = 10});
    struct pr_entity *q = born(10, 9, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *y = born(11, 10, (struct usage){.cpu = 1, .faults = 80});
    struct pr_entity *p = born(12, 9, (struct usage){.cpu = 50, .faults = 90});
    settle();
    assert_totals(53, 280, 0);
    look(g, (struct usage){1, 10, 0, 51, 190}); /* Q and P, exactly */
    gone(q);
    gone(y);
    gone(p);
    settle();
    settle();
    settle();
    assert_totals(53, 280, 0);
    assert_int_equal(l.unabsorbed, 1);
}

/* The same without anybody ignoring anything: attached from outside, an orphan goes to init. */
static void test_an_orphan_does_not_take_anothers_receipt(void **state)
{
    (void)state;
    struct pr_entity *g = born(9, 1, (struct usage){.cpu = 0, .faults = 10});
    struct pr_entity *sh = born(10, 9, (struct usage){.cpu = 0, .faults = 200});
    struct pr_entity *orphan = born(11, 10, (struct usage){.cpu = 3, .faults = 150});
    struct pr_entity *cc = born(12, 9, (struct usage){.cpu = 20, .faults = 300});
    settle();
    look(g, (struct usage){0, 10, 0, 20, 510}); /* sh, which used 10 more faults, and cc */
    gone(sh);
    gone(orphan);
    gone(cc);
    settle();
    settle();
    settle();
    assert_true(l.total[METRIC_CPU_TIME] <= 23);
}

/* P reaped B before it was read and A after: the receipt that is there is B's. Giving it to A,
 * which comes first in the list, would count B twice until the next reading, and the total never
 * falls. */
static void test_a_receipt_goes_to_whom_it_fits(void **state)
{
    (void)state;
    struct pr_entity *p = born(9, 1, (struct usage){.cpu = 1, .faults = 10});
    struct pr_entity *a = born(10, 9, (struct usage){.cpu = 5, .faults = 100});
    struct pr_entity *b = born(11, 9, (struct usage){.cpu = 50, .faults = 250});
    settle();
    look(p, (struct usage){1, 10, 0, 50, 250});
    gone(a);
    gone(b);
    settle();
    assert_totals(56, 360, 0);
    look(p, (struct usage){1, 10, 0, 55, 350});
    settle();
    assert_totals(56, 360, 0);
    assert_int_equal(l.unabsorbed, 0);
}

/* G left its child P to us and waits itself to be reaped. P took its child C over, and we took P:
 * all in one interval, so that P's parent was G when it was last read. C is in what we have. */
static void test_the_child_of_an_orphan_that_we_reaped(void **state)
{
    (void)state;
    struct pr_entity *h = born(8, US, (struct usage){.cpu = 1, .faults = 10});
    struct pr_entity *g = born(9, 8, (struct usage){.cpu = 1, .faults = 20});
    struct pr_entity *p = born(10, 9, (struct usage){.cpu = 2, .faults = 100});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 40, .faults = 50});
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 44);
    reap(p, 2 + 40, 100 + 50);
    gone(c);
    gone(g);
    look(h, (struct usage){1, 10, 0, 1, 20});
    settle();
    settle();
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 44);
    assert_int_equal(l.unabsorbed, 0);
}

/* --- leaving the job -------------------------------------------------------------------------- */

static void test_orphan_of_an_attached_job(void **state)
{
    (void)state;
    born(10, 1, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *c = born(11, 1, (struct usage){.cpu = 4, .faults = 50}); /* init's by now */
    settle();
    gone(c);
    settle();
    assert_totals(5, 150, 0); /* at once: nobody's receipt can come */
    assert_int_equal(l.unabsorbed, 1);
    assert_int_equal(set.count, 1);
}

static void test_root_of_an_attached_job(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){1, 100, 7, 2, 50});
    settle();
    gone(p);
    settle();
    assert_totals(3, 150, 7);
    assert_int_equal(l.unabsorbed, 1);
    assert_int_equal(set.count, 0);
}

static void test_the_last_reading_waits_for_nothing(void **state)
{
    (void)state;
    born(10, 1, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    settle();
    gone(c);
    settle_last();
    assert_totals(5, 150, 0);
    assert_int_equal(l.unabsorbed, 1);
    assert_int_equal(set.count, 1);
}

/* --- reaped by us ----------------------------------------------------------------------------- */

static void test_reaped_by_us(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, US, (struct usage){.cpu = 1, .faults = 100});
    settle();
    reap(p, 3, 130);
    assert_int_equal(p->life, LIFE_SETTLED);
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 3);
    assert_exactly(l.total[METRIC_FAULTS_MINOR], 130);
    assert_int_equal(l.unabsorbed, 0);
    assert_int_equal(set.count, 0);
}

/* How long somebody waited for a CPU goes into no parent's account: whoever waits for a child, its
 * delay stays what it was when it was last read. */
static void test_what_nobody_takes_over_stays(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, US, (struct usage){.cpu = 1, .faults = 100}),
                     *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50}),
                     *lost = born(12, 10, (struct usage){.cpu = 1, .faults = 7000});
    p->value[METRIC_SCHED_DELAY] = 0.5;
    c->value[METRIC_SCHED_DELAY] = 2;
    lost->value[METRIC_SCHED_DELAY] = 8;
    settle();
    assert_exactly(l.total[METRIC_SCHED_DELAY], 10.5);
    look(p, (struct usage){1, 100, 0, 6, 80}); /* it has waited for one of them */
    gone(c);
    gone(lost);
    for (int i = 0; i < 3; i++)
        settle();
    assert_exactly(l.total[METRIC_SCHED_DELAY], 10.5);
    assert_int_equal(l.unabsorbed, 1);
    reap(p, 9, 180);
    settle();
    assert_exactly(l.total[METRIC_SCHED_DELAY], 10.5);
    assert_int_equal(set.count, 0);
}

static void test_reaped_by_us_and_never_seen(void **state)
{
    (void)state;
    born(10, US, (struct usage){.cpu = 1, .faults = 100});
    settle();
    reap(NULL, 3, 130);
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 4);
    assert_exactly(l.total[METRIC_FAULTS_MINOR], 230);
    assert_int_equal(l.unabsorbed, 0);
}

/* The child's parent is gone as well, and we have the account of both. */
static void test_reaped_by_us_with_its_child_inside(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, US, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    settle();
    reap(p, 1 + 5, 100 + 60);
    gone(c);
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 6);
    assert_exactly(l.total[METRIC_FAULTS_MINOR], 160);
    assert_int_equal(l.unabsorbed, 0);
    assert_int_equal(set.count, 0);
}

static void test_reaped_by_us_but_its_child_was_lost(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, US, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    settle();
    reap(p, 1, 100); /* the child's is not in it */
    gone(c);
    settle();
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 5);
    assert_int_equal(l.unabsorbed, 1);
}

static void test_orphan_comes_to_us(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, US, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    settle();
    reap(p, 1, 100);
    c->ppid = US;
    look(c, (struct usage){.cpu = 5, .faults = 60});
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 6);
    reap(c, 7, 70);
    settle_last();
    assert_exactly(l.total[METRIC_CPU_TIME], 8);
    assert_exactly(l.total[METRIC_FAULTS_MINOR], 170);
    assert_int_equal(l.unabsorbed, 0);
}

static void test_usage_that_rusage_does_not_know(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, US, (struct usage){.cpu = 1, .faults = 100, .wchar = 9});
    settle();
    reap(p, 1, 100);
    l.reaped[METRIC_IO_WCHAR] = 12; /* as the session does it: from our own counters */
    settle();
    assert_exactly(l.total[METRIC_IO_WCHAR], 12);
}

/* --- history ---------------------------------------------------------------------------------- */

static void test_history_does_not_count(void **state)
{
    (void)state;
    struct pr_entity *p = join_at(10, 1, (struct usage){100, 1000, 500, 200, 3000}, false);
    settle();
    assert_totals(0, 0, 0);
    look(p, (struct usage){101, 1010, 505, 203, 3030});
    settle();
    assert_totals(4, 40, 5);
    assert_exactly(p->previous[METRIC_CPU_TIME],
                   100); /* so that its first rate is not its life's */
    assert_exactly(l.before[METRIC_CPU_TIME], 300);
}

static void test_history_of_a_reaped_child_does_not_count(void **state)
{
    (void)state;
    struct pr_entity *p = join_at(10, 1, (struct usage){.cpu = 100, .faults = 1000}, false);
    struct pr_entity *c = join_at(11, 10, (struct usage){.cpu = 50, .faults = 500}, false);
    settle();
    look(p, (struct usage){100, 1000, 0, 53, 530}); /* three seconds of it are ours */
    gone(c);
    settle();
    assert_totals(3, 30, 0);
    assert_int_equal(l.unabsorbed, 0);
}

static void test_history_of_a_lost_child_does_not_count(void **state)
{
    (void)state;
    join_at(10, 1, (struct usage){.cpu = 100, .faults = 1000}, false);
    struct pr_entity *c = join_at(11, 10, (struct usage){.cpu = 50, .faults = 500}, false);
    settle();
    look(c, (struct usage){.cpu = 52, .faults = 520});
    settle();
    gone(c);
    settle();
    settle();
    assert_totals(2, 20, 0);
    assert_int_equal(l.unabsorbed, 1);
}

static void test_born_inside_counts_from_birth(void **state)
{
    (void)state;
    join_at(10, 1, (struct usage){.cpu = 100, .faults = 1000}, false);
    settle();
    struct pr_entity *c = born(11, 10, (struct usage){.cpu = 2, .faults = 50});
    settle();
    assert_totals(2, 50, 0);
    assert_exactly(c->previous[METRIC_CPU_TIME], 0);
}

/* --- the same pid again ----------------------------------------------------------------------- */

static void test_pid_reuse(void **state)
{
    (void)state;
    struct pr_entity *p = born(10, 1, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *old = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    settle();
    gone(old);
    struct pr_entity *new = born(11, 10, (struct usage){.cpu = 1, .faults = 20});
    look(p, (struct usage){1, 100, 0, 4, 50});
    settle();
    assert_totals(6, 170, 0);
    assert_ptr_equal(pr_entities_find(&set, 11), new);
    assert_int_equal(l.unabsorbed, 0);
}

/* A pid that was used again can make a circle of parents: looking for an heir must end. */
/* Its parent has ended, and nobody has waited for that one: the child went to whoever is above, who
 * waited for it before we have seen it there. */
static void test_the_child_of_a_zombie(void **state)
{
    (void)state;
    struct pr_entity *root = born(10, 1, (struct usage){1, 100, 0, 0, 0});
    struct pr_entity *parent = born(11, 10, (struct usage){1, 50, 0, 0, 0});
    struct pr_entity *child = born(12, 11, (struct usage){5, 70, 0, 0, 0});
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 7);
    parent->state = 'Z';
    gone(child);
    look(root, (struct usage){1, 100, 0, 5, 70});
    for (int i = 0; i < 3; i++)
        settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 7);
    assert_int_equal(l.unabsorbed, 0);
}

/* It had waited for its child before it ended. */
static void test_a_zombie_that_had_taken_over(void **state)
{
    (void)state;
    born(10, 1, (struct usage){1, 100, 0, 0, 0});
    struct pr_entity *parent = born(11, 10, (struct usage){1, 50, 0, 0, 0});
    struct pr_entity *child = born(12, 11, (struct usage){5, 70, 0, 0, 0});
    settle();
    gone(child);
    look(parent, (struct usage){1, 50, 0, 5, 70});
    parent->state = 'Z';
    settle();
    settle();
    assert_exactly(l.total[METRIC_CPU_TIME], 7);
    assert_int_equal(l.unabsorbed, 0);
}

static void test_a_circle_of_parents_ends(void **state)
{
    (void)state;
    struct pr_entity *a = born(10, 11, (struct usage){.cpu = 1, .faults = 100});
    struct pr_entity *b = born(11, 10, (struct usage){.cpu = 4, .faults = 50});
    settle();
    gone(a);
    gone(b);
    settle();
    settle();
    assert_totals(5, 150, 0);
    assert_int_equal(l.unabsorbed, 2);
    assert_int_equal(set.count, 0);
}

#define TEST(name)     cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_RUN(name) cmocka_unit_test_setup_teardown(name, setup_reaper, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_read_is_absent),
        TEST(test_living_members_and_what_they_reaped),
        TEST(test_some_unreadable),
        TEST(test_a_smaller_reading_changes_nothing),
        TEST(test_child_reaped_by_its_parent),
        TEST(test_child_reaped_between_two_files),
        TEST(test_child_never_seen),
        TEST(test_child_reaped_by_nobody),
        TEST(test_old_receipts_expire),
        TEST(test_two_children_one_receipt),
        TEST(test_zombies_count_until_they_are_reaped),
        TEST(test_child_and_parent_in_one_tick),
        TEST(test_child_and_parent_one_reading_late),
        TEST(test_child_then_parent),
        TEST(test_a_grandchild_gets_what_a_late_receipt_brings),
        TEST(test_a_lost_child_does_not_take_anothers_receipt),
        TEST(test_an_orphan_does_not_take_anothers_receipt),
        TEST(test_a_receipt_goes_to_whom_it_fits),
        TEST_RUN(test_the_child_of_an_orphan_that_we_reaped),
        TEST(test_orphan_of_an_attached_job),
        TEST(test_root_of_an_attached_job),
        TEST(test_the_last_reading_waits_for_nothing),
        TEST_RUN(test_reaped_by_us),
        TEST_RUN(test_what_nobody_takes_over_stays),
        TEST_RUN(test_reaped_by_us_and_never_seen),
        TEST_RUN(test_reaped_by_us_with_its_child_inside),
        TEST_RUN(test_reaped_by_us_but_its_child_was_lost),
        TEST_RUN(test_orphan_comes_to_us),
        TEST_RUN(test_usage_that_rusage_does_not_know),
        TEST(test_history_does_not_count),
        TEST(test_history_of_a_reaped_child_does_not_count),
        TEST(test_history_of_a_lost_child_does_not_count),
        TEST(test_born_inside_counts_from_birth),
        TEST(test_pid_reuse),
        TEST(test_a_circle_of_parents_ends),
        TEST(test_the_child_of_a_zombie),
        TEST(test_a_zombie_that_had_taken_over),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
