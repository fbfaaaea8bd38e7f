/* SPDX-License-Identifier: Apache-2.0 */
/* crowd N ACTIVE KIB PERIOD_MS FAULTS SECONDS [REPORT]: N processes, this one and its children
 * (tools/bench runs it).
 *
 * ACTIVE of them wake each PERIOD_MS and use some microseconds, so that their CPU clocks move, with
 * so many page FAULTS; the others sleep. Each has touched KIB of memory of its own. When all are
 * there "ready" goes to standard output. It ends SECONDS later, or where those are 0 with its
 * standard input, and says in REPORT what all of them used. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long count, active, kib, period, faults;
static double seconds;

static void fail(const char *what)
{
    fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* In small pages: those are what reading PSS is dear with. */
static void *touch(void)
{
    size_t size = (size_t)kib << 10;
    if (size == 0)
        return NULL;
    void *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        fail("mmap");
    madvise(room, size, MADV_NOHUGEPAGE);
    memset(room, 1, size);
    return room;
}

/* Pages that come back each time, as memory that is freed and asked for again does. */
static void fault(void)
{
    static volatile char *pages;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)faults * page;
    if (size == 0)
        return;
    if (!pages)
        pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        fail("mmap");
    madvise((void *)pages, size, MADV_DONTNEED);
    for (size_t at = 0; at < size; at += page)
        pages[at] = 1;
}

/* Until the other end of fd is closed, or for so long as is given. */
static void live(int fd, int is_active, double until)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        double left = until - now(CLOCK_MONOTONIC);
        int timeout = is_active ? (int)period : until > 0 ? (int)(left * 1000) + 1 : -1;
        if (until > 0 && left <= 0)
            return;
        int n = poll(until > 0 ? NULL : &p, until > 0 ? 0 : 1, timeout);
        if (n < 0 && errno != EINTR)
            fail("poll");
        if (n > 0)
            return;
        volatile unsigned long sink = 0;
        for (int i = 0; is_active && i < 3000; i++)
            sink += (unsigned long)i;
        if (is_active)
            fault();
    }
}

static void child(long i, const int *line, int ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN);
    close(line[1]);
    touch();
    if (write(ready, "x", 1) != 1)
        fail("write");
    close(ready);
    /* Spread over the period: a job's processes do not wake together. */
    usleep((useconds_t)(period * 1000 * (i % 97) / 97));
    live(line[0], i < active, 0);
    _exit(0);
}

static double used(int who)
{
    struct rusage u;
    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void report(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f)
        fail(path);
    fprintf(f, "{\"cpu\": %.6f}\n", used(RUSAGE_SELF) + used(RUSAGE_CHILDREN));
    fclose(f);
}

static void gather(int *line)
{
    int ready[2];
    char byte;
    if (pipe(line) < 0 || pipe(ready) < 0)
        fail("pipe");
    for (long i = 1; i < count; i++) {
        pid_t pid = fork();
        if (pid < 0)
            fail("fork");
        if (pid == 0)
            child(i, line, ready[1]);
    }
    for (long i = 1; i < count; i++)
        if (read(ready[0], &byte, 1) != 1)
            fail("read");
    close(ready[0]);
    close(ready[1]);
}

int main(int argc, char **argv)
{
    int line[2];
    if (argc < 7)
        return 96;
    count = atol(argv[1]);
    active = atol(argv[2]);
    kib = atol(argv[3]);
    period = atol(argv[4]);
    faults = atol(argv[5]);
    seconds = atof(argv[6]);
    gather(line);
    void *room = touch();
    double until = seconds > 0 ? now(CLOCK_MONOTONIC) + seconds : 0;
    puts("ready");
    fflush(stdout);
    live(STDIN_FILENO, active > 0, until);
    close(line[1]);
    while (wait(NULL) > 0)
        ;
    if (room)
        munmap(room, (size_t)kib << 10);
    if (argc > 7)
        report(argv[7]);
    return 0;
}
