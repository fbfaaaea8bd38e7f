/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of real processes at a tick, and what is not: who has not run is not read again, and
 * nothing that happens is missed for it. */
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "recording.h"
#include "core/annotate.h"
#include "util/clock.h"

enum { FAMILY = 20, WARM_UP = 40, TICKS = 40 };

static struct recording r;
static pid_t family[FAMILY];
static int orders[FAMILY];              /* the ends of pipes that they read from */
static unsigned reads, sizes, searches; /* preads; of statm; of loadavg, for new processes */
static unsigned marks;                  /* of the status of one of them, family[5] */

ssize_t __real_pr_fs_pread(int fd, char *text, size_t size);
ssize_t __wrap_pr_fs_pread(int fd, char *text, size_t size);

ssize_t __wrap_pr_fs_pread(int fd, char *text, size_t size)
{
    char link[64], path[256] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    sizes += readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/statm");
    searches += strstr(path, "/loadavg") != NULL;
    snprintf(link, sizeof link, "/proc/%d/status", (int)family[5]);
    marks += strcmp(path, link) == 0;
    reads++;
    return __real_pr_fs_pread(fd, text, size);
}

static char *kept; /* of one of the family */
static const size_t kept_size = 64 << 20;

/* What one of the family does when it is told to. */
static void obey(char order)
{
    size_t size = kept_size;
    clock_t began = clock();
    char *memory;
    switch (order) {
    case 'w':
        for (int fd = open("/dev/null", O_WRONLY | O_CLOEXEC), i = 0; i < 1000; i++)
            if (write(fd, "0123456789", 10) != 10)
                _exit(1);
        break;
    case 'c':
        while (clock() - began < CLOCKS_PER_SEC / 20)
            ;
        break;
    case 'm':
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(memory, 1, size);
        munmap(memory, size);
        break;
    case 'g':
        kept = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(kept, 1, size);
        break;
    case 'p': /* one page, for a moment */
        size = 4096;
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memory[0] = 1;
        munmap(memory, size);
        break;
    case 'r': /* back to the kernel, the addresses stay */
        madvise(kept, size, MADV_DONTNEED);
        break;
    case 'f':
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pause();
        }
        break;
    case 'x':
        execl("/bin/sleep", "sleep", "100", (char *)NULL);
        break;
    default:
        _exit(0);
    }
}

static pid_t start_one(int *ret_order)
{
    int ends[2];
    char order;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        while (read(ends[0], &order, 1) == 1)
            obey(order);
        _exit(0);
    }
    close(ends[0]);
    *ret_order = ends[1];
    return pid;
}

/* The order has been obeyed when the process sleeps again, or is gone. */
static void tell(int i, char order)
{
    char path[64], text[256] = "";
    usleep(20000);
    assert_int_equal(write(orders[i], &order, 1), 1);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)family[i]);
    for (int k = 0; k < 1000; k++) {
        usleep(20000);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        ssize_t n = read(fd, text, sizeof text - 1);
        close(fd);
        text[n > 0 ? n : 0] = '\0';
        if (n <= 0 || strstr(text, ") S ") || strstr(text, ") Z "))
            return;
    }
}

static int setup(void **state)
{
    (void)state;
    recording_new(&r);
    option(&r, OPTION_ROOT, "/");
    option(&r, OPTION_NO_PSS, "yes");
    option(&r, OPTION_SELECT, "cpu.*,mem.*,io.*,threads,fds,ctx.*,faults.*,procs,sched.delay");
    for (int i = 0; i < FAMILY; i++)
        family[i] = start_one(&orders[i]);
    usleep(50000);
    recording_begin(&r, (struct pr_target_setting){.root = getpid()});
    for (int i = 0; i < WARM_UP; i++)
        recording_tick(&r);
    return 0;
}

static void end_one(int i)
{
    close(orders[i]);
    kill(family[i], SIGKILL);
    waitpid(family[i], NULL, 0);
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < FAMILY; i++)
        end_one(i);
    recording_done(&r);
    return 0;
}

static struct pr_entity *member(int i)
{
    struct pr_entity *e = pr_entities_find(&r.s.set, family[i]);
    assert_non_null(e);
    return e;
}

static const struct pr_member *member_row(pid_t pid)
{
    for (size_t k = 0; k < r.s.now.member_count; k++)
        if (r.s.now.members[k].pid == pid)
            return &r.s.now.members[k];
    fail();
    return NULL;
}

/* More files than may be held. */
static void make_crowd(void)
{
    for (size_t k = 0; k < r.s.set.count; k++)
        pr_source_release(&r.s.host, r.s.set.items[k]);
    r.s.host.hold_limit = 3 * FAMILY; /* of us there are one more */
}

/* We ourselves run, and are read; all together are 60 files and more. */
static void test_who_has_not_run_is_not_read(void **state)
{
    (void)state;
    reads = 0;
    for (int i = 0; i < TICKS; i++)
        recording_tick(&r);
    if (reads > TICKS * 12)
        fail_msg("%u files were read in %d ticks", reads, TICKS);
    assert_exactly(value_of(&r, PROCS), FAMILY + 1);
}

static void test_who_has_run_is_read_at_the_next_tick(void **state)
{
    (void)state;
    double cpu = value_of(&r, CPU_TIME), wchar = member(3)->value[METRIC_IO_WCHAR];
    tell(3, 'w');
    recording_tick(&r);
    assert_exactly(member(3)->value[METRIC_IO_WCHAR] - wchar, 10000);
    tell(7, 'c');
    recording_tick(&r);
    assert_true(value_of(&r, CPU_TIME) - cpu >= 0.05);
}

static void test_a_peak_between_two_ticks(void **state)
{
    (void)state;
    assert_true(member(5)->value[METRIC_MEM_RSS_PEAK] < 64 << 20);
    tell(5, 'm');
    recording_tick(&r);
    assert_true(member(5)->value[METRIC_MEM_RSS_PEAK] >= 64 << 20);
    assert_true(member(5)->value[METRIC_MEM_RSS] < 64 << 20);
    assert_true(value_of(&r, MEM_RSS_PEAK) >= 64 << 20);
}

static void fault_once(void)
{
    tell(5, 'p');
    r.s.allowance = -(int64_t)1e15; /* it is nobody's turn */
    r.s.turns.owed = 0;
}

/* A process that works has faults at every tick, and status is dearer than stat, statm and io
 * together: for a few it is read every four seconds, and at the bounds of phases. */
static void test_a_few_faults_can_wait(void **state)
{
    struct pr_entity *e = member(5);
    struct pr_request begin;
    (void)state;
    assert_true(pr_request_make(&begin, REQUEST_BEGIN, "load", NULL));
    tell(5, 'm');
    recording_tick(&r);
    marks = 0;
    for (int i = 0; i < 5; i++) {
        fault_once();
        recording_tick(&r);
        assert_true(e->value[METRIC_MEM_RSS] <= e->value[METRIC_MEM_RSS_PEAK]);
    }
    assert_int_equal(marks, 0);
    e->marked_at -= 4 * NS_PER_S;
    fault_once();
    recording_tick(&r);
    assert_int_equal(marks, 1);
    fault_once();
    assert_true(pr_annotate(&r.s, &begin, pr_clock_boot(), 0));
    assert_int_equal(marks, 2);
}

/* Who runs without page faults has the size that it had; whoever grows or shrinks is asked. */
static void test_the_size_is_read_where_it_may_have_changed(void **state)
{
    (void)state;
    double before = member(5)->value[METRIC_MEM_RSS];
    tell(5, 'g');
    recording_tick(&r);
    assert_true(member(5)->value[METRIC_MEM_RSS] >= before + 64e6);
    tell(5, 'r');
    recording_tick(&r);
    assert_true(member(5)->value[METRIC_MEM_RSS] < before + 16e6); /* a sanitizer keeps its notes */
    for (int i = 0; i < 3; i++) { /* its first writes may still touch new pages */
        tell(5, 'w');
        sizes = 0;
        recording_tick(&r);
    }
    assert_in_range(sizes, 0, 1); /* ours, who are read whole */
}

/* Others can take memory from who sleeps: into swap, which only a full reading has. */
static void test_the_size_of_who_sleeps_is_looked_at(void **state)
{
    (void)state;
    struct pr_entity *e = member(5);
    recording_tick(&r);
    double size = e->value[METRIC_MEM_RSS];
    int64_t full = e->refreshed_at;
    r.s.allowance = -(int64_t)1e15; /* it is nobody's turn */
    r.s.turns.owed = 0;
    e->value[METRIC_MEM_RSS] = size + 8192; /* as if pages had been taken since */
    r.s.step = NS_PER_S;
    for (int i = 0; i < 8; i++) /* at one of eight samples, one a second */
        recording_tick(&r);
    assert_exactly(e->value[METRIC_MEM_RSS], size);
    assert_int_equal(e->refreshed_at, full);
    r.s.step = 10 * NS_PER_S; /* seldom: at each sample */
    for (int i = 0; i < 2; i++) {
        e->value[METRIC_MEM_RSS] = size + 8192;
        recording_tick(&r);
        assert_exactly(e->value[METRIC_MEM_RSS], size);
    }
    e->value[METRIC_MEM_RSS] = size + 8192;
    r.s.step = NS_PER_MS; /* so many samples that it is not among them */
    e->sized_at -= 16 * NS_PER_S;
    recording_tick(&r);
    assert_exactly(e->value[METRIC_MEM_RSS], size);
    assert_int_equal(e->refreshed_at, full);
    assert_true(e->aged);
}

static void test_exec(void **state)
{
    (void)state;
    tell(2, 'x');
    recording_tick(&r);
    assert_string_equal(member(2)->comm, "sleep");
}

/* A zombie's clock stands still, but it has run to become one. */
static void test_death(void **state)
{
    (void)state;
    r.s.want_members = true;
    tell(1, 'q');
    recording_tick(&r);
    assert_int_equal(member(1)->state, 'Z');
    assert_exactly(value_of(&r, PROCS), FAMILY);
    member(1)->aged = false; /* as if its turn had come: nothing more of it is read */
    recording_tick(&r);
    assert_true(isnan(member_row(family[1])->value[METRIC_CTX_VOLUNTARY]));
    assert_false(isnan(member_row(family[1])->value[METRIC_CPU_TIME]));
    for (int i = 0; i < 3; i++)
        recording_tick(&r);
    waitpid(family[1], NULL, 0);
    double cpu = value_of(&r, CPU_TIME);
    recording_tick(&r);
    assert_null(pr_entities_find(&r.s.set, family[1]));
    recording_tick(&r);
    assert_int_equal(r.s.ledger.unabsorbed, 0);
    assert_true(value_of(&r, CPU_TIME) >= cpu);
}

/* The clock of a pid is that of whoever has it now. */
static void test_a_pid_that_is_used_again(void **state)
{
    (void)state;
    struct pr_entity *e = member(4);
    pr_source_release(&r.s.host, e);
    e->start--;    /* another process had the pid when we met it, */
    e->ran_seen++; /* and its clock showed another time */
    recording_tick(&r);
    assert_true(e->life != LIFE_ALIVE);
}

/* Who has lost its parent has another one, though it has not run. */
static void test_an_orphan_has_another_parent(void **state)
{
    (void)state;
    struct pr_entity *e = member(6);
    struct pr_entity *gone = pr_entities_add(&r.s.set, 0x3fffff, 1);
    e->ppid = gone->pid;
    gone->life = LIFE_VANISHED;
    gone->value[METRIC_FAULTS_MINOR] = 0;
    /* Parents stand before their children. */
    struct pr_entity *last = r.s.set.items[r.s.set.count - 1];
    memmove(r.s.set.items + 1, r.s.set.items, (r.s.set.count - 1) * sizeof last);
    r.s.set.items[0] = last;
    recording_tick(&r);
    assert_int_equal(e->ppid, getpid());
}

/* Descriptors and swap are not read at each tick of one of many that run: then they are marked, and
 * absent in its row; of one that has not run they are as they were. */
static void test_what_is_read_in_turn_has_its_age_told(void **state)
{
    (void)state;
    bool fresh = false, aged = false;
    r.s.want_members = true;
    for (int i = 0; i < 200 && !(fresh && aged); i++) {
        recording_tick(&r);
        const struct pr_member *us = &r.s.now.members[0];
        assert_int_equal(us->pid, getpid());
        fresh |= !isnan(us->value[METRIC_FDS]);
        aged |= isnan(us->value[METRIC_FDS]);
        const struct pr_entity *e = pr_entities_find(&r.s.set, getpid());
        double age = e->aged ? pr_seconds(r.s.sampled - e->refreshed_at) : 0;
        assert_exactly(value_of(&r, FDS_AGE), age); /* the others sleep */
        assert_int_equal(age > 0, isnan(us->value[METRIC_FDS]));
        assert_int_equal(isnan(us->value[METRIC_CTX_VOLUNTARY]), isnan(us->value[METRIC_FDS]));
        assert_int_equal(isnan(us->value[METRIC_SCHED_DELAY]), isnan(us->value[METRIC_FDS]));
        assert_int_equal(r.s.now.mark[METRIC_FDS],
                         isnan(us->value[METRIC_FDS]) ? MARK_AGED : MARK_NONE);
        assert_false(isnan(r.s.now.members[FAMILY].value[METRIC_FDS]));
        assert_false(isnan(value_of(&r, FDS)));
    }
    assert_true(fresh && aged);
}

/* Without budget, and when it is nobody's turn: what is said to be at most 20 s old is, and 40 s in
 * a crowd. */
static void test_nothing_is_older_than_is_said(void **state)
{
    (void)state;
    static const struct {
        int age; /* seconds */
        bool crowd, read;
    } cases[] = {{15, false, false}, {20, false, true}, {35, true, false}, {40, true, true}};
    for (int i = 0; i < 40; i++) /* until it is not young any more */
        recording_tick(&r);
    struct pr_entity *us = pr_entities_find(&r.s.set, getpid());
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (cases[i].crowd)
            make_crowd();
        r.s.turns.owed = 0;
        r.s.allowance = -(int64_t)1e15;
        us->refreshed_at = pr_clock_boot() - cases[i].age * NS_PER_S;
        recording_tick(&r);
        assert_int_equal(r.s.turns.crowd, cases[i].crowd);
        assert_int_equal(us->refreshed_at == r.s.sampled, cases[i].read);
    }
}

static void test_at_the_end_all_is_read(void **state)
{
    (void)state;
    do
        recording_tick(&r);
    while (member(0)->refreshed_at == r.s.sampled); /* it was its turn */
    pr_session_end(&r.s);
    for (size_t k = 0; k < r.s.set.count; k++)
        assert_int_equal(r.s.set.items[k]->refreshed_at, r.s.sampled);
    assert_int_equal(r.s.now.mark[METRIC_FDS], MARK_NONE);
}

/* What it left running has counted to the end, too. */
static void test_at_the_end_those_left_are_read(void **state)
{
    (void)state;
    struct pr_entity *e = member(3);
    double before = e->value[METRIC_SCHED_DELAY];
    e->value[METRIC_SCHED_DELAY] = e->value[METRIC_CTX_VOLUNTARY] = -1;
    r.s.gone = true;
    pr_session_end(&r.s);
    assert_true(e->value[METRIC_SCHED_DELAY] >= before && e->value[METRIC_CTX_VOLUNTARY] > 0);
}

/* One at each tick, as long as there is budget for it; two in a second in any case. */
static void test_turns_keep_to_the_budget(void **state)
{
    (void)state;
    size_t turns = 0;
    recording_tick(&r);
    assert_true(r.s.turns.count >= 1);
    r.s.turns.owed = 0;
    for (int i = 0; i < 20; i++) {
        r.s.allowance = -(int64_t)1e15;
        recording_tick(&r);
        turns += r.s.turns.count;
    }
    assert_true(turns < 10); /* in 30 ms or a little more */
    r.s.allowance = -(int64_t)1e15;
    r.s.sampled -= NS_PER_S;
    recording_tick(&r);
    assert_true(r.s.turns.count >= 2);
}

/* At the limit whoever has not run for long gives its descriptors to those that run. */
static void test_the_idle_give_way(void **state)
{
    (void)state;
    for (size_t k = 0; k < r.s.set.count; k++)
        pr_source_release(&r.s.host, r.s.set.items[k]);
    int limit = r.s.host.hold_limit = r.s.host.holding + 4; /* for us, and those that come first */
    pid_t busy = family[FAMILY - 1];
    for (int i = 0; i < 60; i++) {
        char order = 'w';
        assert_int_equal(write(orders[FAMILY - 1], &order, 1), 1);
        if (i == 0) /* those that come first take all there is */
            for (int k = 0; k < 3; k++)
                pr_source_read(&(struct pr_tick){&r.s.host, 1, r.s.text, SESSION_TEXT}, member(k),
                               SOURCE_pid_stat);
        recording_tick(&r);
        assert_true(r.s.host.holding <= limit);
    }
    struct pr_entity *e = pr_entities_find(&r.s.set, busy);
    assert_true(e->fd[SOURCE_pid_stat] >= 0);
    for (int k = 0; k < 3; k++)
        assert_int_equal(member(k)->fd[SOURCE_pid_stat], -1);
}

/* What is read seldom is held while little is, and given back before others need the room. */
static void test_what_is_read_seldom_is_held_in_small_jobs(void **state)
{
    (void)state;
    struct pr_tick t = {&r.s.host, 1, r.s.text, SESSION_TEXT};
    int held = r.s.host.holding;
    assert_true(member(0)->fd[SOURCE_pid_status] >= 0);
    r.s.host.hold_limit = 2 * held - 2; /* one more than half of it is held */
    for (int i = 0; i < 2; i++) {       /* and is not taken again */
        assert_int_equal(pr_source_read(&t, member(0), SOURCE_pid_status), 0);
        assert_int_equal(member(0)->fd[SOURCE_pid_status], -1);
        assert_int_equal(r.s.host.holding, held - 1);
    }
    assert_int_equal(pr_source_read(&t, member(1), SOURCE_pid_status), 0);
    assert_true(member(1)->fd[SOURCE_pid_status] >= 0);
}

/* PSS in between is what was read plus the change of the size since: both are of one moment. */
static void test_the_size_goes_with_pss(void **state)
{
    (void)state;
    r.s.select.reads |= READ_SMAPS;
    for (int i = 0; i < 3; i++) { /* its first writes may still touch new pages */
        tell(5, 'w');
        recording_tick(&r);
    }
    double size = member(5)->value[METRIC_MEM_RSS];
    tell(5, 'w');
    member(5)->value[METRIC_MEM_RSS] = 1; /* as if it had been read long ago */
    recording_tick(&r);
    assert_int_equal(member(5)->share.at, r.s.sampled);
    assert_exactly(member(5)->value[METRIC_MEM_RSS], size);
    assert_exactly(member(5)->share.rss, size);
}

/* Of a crowd stat of each is held. I/O is older then and says so, size is not. */
static void test_in_a_crowd_stat_comes_first(void **state)
{
    (void)state;
    unsigned fresh = 0, old = 0, turns = 0;
    double since = 0; /* seconds */
    struct pr_entity *e = member(3);
    r.s.want_members = true;
    r.s.step = NS_PER_S; /* I/O at one of four ticks */
    make_crowd();
    double before = e->value[METRIC_IO_WCHAR];
    for (int i = 0; i < TICKS; i++) {
        tell(3, 'w');
        recording_tick(&r);
        const struct pr_member *row = member_row(family[3]);
        fresh += !e->io_old;
        old += e->io_old;
        assert_int_equal(isnan(row->value[METRIC_IO_WCHAR]), e->io_old);
        assert_absent(row->value[METRIC_IO_WRITE_RATE]);
        bool known = !isnan(value_of(&r, IO_WRITE_RATE)); /* not before the end of the first turn */
        assert_int_equal(known, i >= 4);
        assert_int_equal(r.s.now.mark[METRIC_IO_WRITE_RATE], known ? MARK_AGED : MARK_NONE);
        since += pr_seconds(r.s.now.interval);
        if (i >= 4 && r.s.turns.io_dt > 0) /* the rate is of all this time */
            assert_near(r.s.turns.io_dt, since, 1e-6);
        if (r.s.turns.io_dt > 0) {
            since = 0;
            turns++;
        }
        assert_int_equal(r.s.now.mark[METRIC_IO_WCHAR], MARK_LOWER_BOUND);
        assert_true(e->value[METRIC_IO_WCHAR] <= before + (i + 1) * 10000.0);
    }
    assert_true(turns >= TICKS / 4 - 1);
    if (fresh < TICKS / 8 || old < TICKS / 2)
        fail_msg("I/O was read at %u of %u ticks", fresh, fresh + old);
    for (int k = 0; k < FAMILY; k++)
        assert_int_equal(member(k)->fd[SOURCE_pid_io], -1);
    assert_true(e->fd[SOURCE_pid_stat] >= 0);

    double size = e->value[METRIC_MEM_RSS];
    tell(3, 'g');
    recording_tick(&r);
    assert_true(e->value[METRIC_MEM_RSS] > size + 60e6);
    recording_tick(&r); /* it does not run any more: in its turn its I/O is read nevertheless */
    for (int i = 0; i < 10 && e->io_old; i++)
        recording_tick(&r);
    assert_exactly(e->value[METRIC_IO_WCHAR], before + TICKS * 10000.0);
}

/* For a turn of I/O, which is four ticks, and a part of the next. */
static void be_a_crowd(void)
{
    r.s.step = NS_PER_S;
    make_crowd();
    for (int i = 0; i < 7; i++)
        recording_tick(&r);
}

/* Whoever has not had his turn when it is no crowd any more has it in one turn more. */
static void test_rates_of_io_when_a_crowd_has_gone(void **state)
{
    (void)state;
    be_a_crowd();
    r.s.host.hold_limit = 1000;
    for (int i = 0; i < 4; i++) {
        recording_tick(&r);
        assert_false(r.s.turns.crowd);
        assert_exactly(r.s.turns.io_dt, 0);
        assert_int_equal(r.s.now.mark[METRIC_IO_WRITE_RATE], MARK_AGED);
        assert_int_equal(r.s.now.mark[METRIC_IO_WCHAR], MARK_LOWER_BOUND);
    }
    recording_tick(&r);
    assert_true(r.s.turns.io_dt > 4 * pr_seconds(r.s.now.interval) / 2);
    for (int i = 0; i < 2; i++) {
        recording_tick(&r);
        assert_exactly(r.s.turns.io_dt, pr_seconds(r.s.now.interval));
        assert_int_equal(r.s.now.mark[METRIC_IO_WRITE_RATE], MARK_NONE);
        assert_int_equal(r.s.now.mark[METRIC_IO_WCHAR], MARK_NONE);
    }
}

/* A part of a turn is no time for a rate, of what came in all of one. */
static void test_no_rate_of_io_at_the_end_of_a_part_of_a_turn(void **state)
{
    (void)state;
    be_a_crowd();
    assert_false(isnan(value_of(&r, IO_WRITE_RATE)));
    pr_session_end(&r.s);
    assert_absent(value_of(&r, IO_WRITE_RATE));
    assert_int_equal(r.s.now.mark[METRIC_IO_WCHAR], MARK_NONE);
}

static unsigned slept_through; /* searches in a tick in which nobody woke up; -1 for no such tick */
static double children;        /* in the tick after one was told to have one */
static unsigned turns_asleep; /* ticks in which one was read because it was its turn, and no more */

/* As the library does it: from a thread of ours in a process of the job. */
static void *sample_inside(void *data)
{
    r.s.own_cpu_began = 0;
    for (int i = 0; i < 20 + TICKS; i++) {
        if (i == 20)
            reads = sizes = searches = 0;
        recording_tick(&r);
    }
    r.s.own_cpu += pr_clock_thread_cpu() - r.s.own_cpu_began;
    return data;
}

static void *search_asleep(void *data)
{
    r.s.own_cpu_began = 0;
    for (int i = 0; i < 500 && slept_through == UINT_MAX; i++) {
        unsigned still = r.s.set.still;
        searches = 0;
        r.s.turns.searched -= still >= 3 ? NS_PER_S : 0;
        recording_tick(&r);
        if (still >= 3 && r.s.set.still > still)
            slept_through = searches;
    }
    return data;
}

static void *take_turns_asleep(void *data)
{
    r.s.own_cpu_began = 0;
    for (int i = 0; i < 500 && !turns_asleep; i++) {
        unsigned still = r.s.set.still;
        struct pr_entity *e = member(3);
        e->refreshed_at = 1; /* it has rested long enough */
        recording_tick(&r);
        turns_asleep += e->refreshed_at > 1 && still > 0 && r.s.set.still > still;
    }
    return data;
}

/* What this thread does is ours: of the job only the other process has run. */
static void *fork_asleep(void *data)
{
    r.s.own_cpu_began = 0;
    for (int i = 0; i < 500 && r.s.set.still < 3; i++)
        recording_tick(&r);
    double before = value_of(&r, PROCS);
    tell(5, 'f');
    recording_tick(&r);
    children = value_of(&r, PROCS) - before;
    return data;
}

static void *use_cpu(void *data)
{
    obey('c');
    return data;
}

static void in_a_thread(void *(*work)(void *))
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    pthread_join(thread, NULL);
}

static void fall_asleep(void)
{
    r.s.inside = getpid();
    r.s.own_thread = true;
    r.s.own_cpu = 0; /* the ticks up to now were the job's */
    for (int tries = 0; tries < 10 && r.s.set.still < 3; tries++)
        in_a_thread(sample_inside);
    assert_true(r.s.set.still >= 3);
}

/* Of a job that sleeps nothing but clocks is read, and at times a size, though we run in it. */
static void test_we_are_not_what_has_run(void **state)
{
    (void)state;
    fall_asleep();
    if (reads - sizes > TICKS || searches > TICKS / 2)
        fail_msg("%u files were read in %d ticks, %u of them loadavg", reads - sizes, TICKS,
                 searches);
    double before = value_of(&r, CPU_TIME);
    in_a_thread(use_cpu);
    in_a_thread(sample_inside);
    double used = value_of(&r, CPU_TIME) - before;
    if (used < 0.05 || used > 0.07)
        fail_msg("%.3f s, of 0.05", used);
}

static void callback(const struct proctor_snapshot *s, void *data)
{
    (void)s, (void)data;
}

/* What it does is done by the process. */
static void test_our_thread_may_be_somebody_elses(void **state)
{
    (void)state;
    fall_asleep();
    r.s.on_sample = callback;
    in_a_thread(sample_inside);
    assert_int_equal(r.s.set.still, 0);
    assert_true(searches >= TICKS);
}

/* Orphans may come to who sleeps, and a search may be unfinished. */
static void test_a_sleeping_tree_is_searched_at_times(void **state)
{
    (void)state;
    fall_asleep();
    slept_through = UINT_MAX;
    in_a_thread(search_asleep);
    assert_int_equal(slept_through, 1);
}

/* Among many there is one at each tick: it is no reason to look for what only who runs can do. */
static void test_a_turn_wakes_nobody_up(void **state)
{
    (void)state;
    fall_asleep();
    turns_asleep = 0;
    in_a_thread(take_turns_asleep);
    assert_int_equal(turns_asleep, 1);
}

static void test_a_child_of_one_that_slept(void **state)
{
    (void)state;
    fall_asleep();
    in_a_thread(fork_asleep);
    assert_exactly(children, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_who_has_not_run_is_not_read),
        TEST(test_who_has_run_is_read_at_the_next_tick),
        TEST(test_a_peak_between_two_ticks),
        TEST(test_a_few_faults_can_wait),
        TEST(test_the_size_is_read_where_it_may_have_changed),
        TEST(test_the_size_of_who_sleeps_is_looked_at),
        TEST(test_exec),
        TEST(test_death),
        TEST(test_a_pid_that_is_used_again),
        TEST(test_an_orphan_has_another_parent),
        TEST(test_what_is_read_in_turn_has_its_age_told),
        TEST(test_nothing_is_older_than_is_said),
        TEST(test_at_the_end_all_is_read),
        TEST(test_at_the_end_those_left_are_read),
        TEST(test_turns_keep_to_the_budget),
        TEST(test_the_idle_give_way),
        TEST(test_what_is_read_seldom_is_held_in_small_jobs),
        TEST(test_the_size_goes_with_pss),
        TEST(test_in_a_crowd_stat_comes_first),
        TEST(test_rates_of_io_when_a_crowd_has_gone),
        TEST(test_no_rate_of_io_at_the_end_of_a_part_of_a_turn),
        TEST(test_we_are_not_what_has_run),
        TEST(test_a_child_of_one_that_slept),
        TEST(test_our_thread_may_be_somebody_elses),
        TEST(test_a_sleeping_tree_is_searched_at_times),
        TEST(test_a_turn_wakes_nobody_up),
    };
    return cmocka_run_group_tests_name("reading", tests, NULL, NULL);
}
