/* SPDX-License-Identifier: Apache-2.0 */
/* workload NAME [COUNT [AMOUNT [EXTRA]]]: a job whose use is known (tools/truth runs it).
 *
 * TRUTH_SOCKET is a descriptor: a byte goes out there, and when one comes back we have been put
 * into a group of our own. TRUTH_REPORT is a memory file: a page for the line of JSON in the end, a
 * page for the tally. Linked statically: it is small, and many of it are, too. */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE    4096
#define ORPHANS 8192

struct tally *tally;
long count, amount, extra;
static char *page;
static struct orphans {
    _Atomic int count;
    pid_t pid[ORPHANS];
} * orphans;

void fail(const char *what)
{
    fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
    _exit(97);
}

static double clock_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void burn(long microseconds)
{
    volatile unsigned long sink = 0;
    double end = clock_of(CLOCK_THREAD_CPUTIME_ID) + (double)microseconds * 1e-6;
    do {
        for (int i = 0; i < 1000; i++)
            sink += (unsigned long)i;
    } while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end);
}

void say(void)
{
    tally->said_ns += (long)(clock_of(CLOCK_PROCESS_CPUTIME_ID) * 1e9);
}

void pause_ms(long milliseconds)
{
    struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

pid_t forked(void)
{
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    return pid;
}

void wait_for(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid");
    if (status != 0) {
        fprintf(stderr, "workload: a child ended with %#x\n", (unsigned)status);
        _exit(97);
    }
}

void wait_for_all(void)
{
    while (wait(NULL) > 0)
        ;
}

void orphan(void (*work)(long), long with)
{
    pid_t middle = forked();
    if (middle == 0) {
        pid_t pid = forked();
        if (pid == 0) {
            work(with);
            say();
            _exit(0);
        }
        int at = orphans->count++;
        if (at < ORPHANS)
            orphans->pid[at] = pid;
        _exit(at < ORPHANS ? 0 : 97);
    }
    wait_for(middle);
}

void orphans_end(void)
{
    for (int i = 0; i < orphans->count; i++)
        for (int patience = 20000; kill(orphans->pid[i], 0) == 0; patience--) {
            if (patience == 0)
                fail("an orphan does not end");
            pause_ms(1);
        }
}

void become(const char *name, long n)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", n);
    char *words[] = {"workload", (char *)name, text, NULL};
    execv("/proc/self/exe", words);
    fail("exec");
}

/* ---- the beginning and the end ---- */

static int descriptor(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : -1;
}

static void map_all(void)
{
    int fd = descriptor("TRUTH_REPORT");
    int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
    orphans =
        mmap(NULL, sizeof *orphans, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || orphans == MAP_FAILED)
        fail("mmap");
    tally = (struct tally *)(page + PAGE);
}

/* Sockets are not files: what goes through them is not in the account of bytes. */
static void enter_group(void)
{
    char byte = 'x';
    int fd = descriptor("TRUTH_SOCKET");
    if (fd < 0)
        return;
    tally->before = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    if (send(fd, &byte, 1, 0) != 1 || recv(fd, &byte, 1, 0) != 1)
        fail("TRUTH_SOCKET");
    close(fd);
    unsetenv("TRUTH_SOCKET");
}

static double used(int who)
{
    struct rusage u;
    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void put_report(void)
{
    double cpu = used(RUSAGE_SELF) + used(RUSAGE_CHILDREN) + (double)tally->said_ns * 1e-9;
    snprintf(page, PAGE,
             "{\"cpu\": %.6f, \"before\": %.6f, \"wrote\": %ld, \"read\": %ld, \"touched\": %ld, "
             "\"procs\": %ld, \"reused\": %ld, \"buffered\": %ld}\n",
             cpu, tally->before, tally->wrote, tally->read, tally->touched, tally->procs,
             tally->reused, tally->buffered);
}

static const struct workload *find(const char *name)
{
    const struct workload *const tables[] = {cpu_workloads, io_workloads, memory_workloads};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct workload *w = tables[i]; w->name; w++)
            if (strcmp(w->name, name) == 0)
                return w;
    return NULL;
}

int main(int argc, char **argv)
{
    const struct workload *w = argc > 1 ? find(argv[1]) : NULL;
    if (!w)
        return 96;
    count = argc > 2 ? atol(argv[2]) : 0;
    amount = argc > 3 ? atol(argv[3]) : 0;
    extra = argc > 4 ? atol(argv[4]) : 0;
    map_all();
    enter_group();
    w->run();
    put_report();
    return 0;
}
