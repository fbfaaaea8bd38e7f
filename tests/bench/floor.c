/* SPDX-License-Identifier: Apache-2.0 */
/* floor INTERVAL_MS SAMPLES < pids: reads stat, statm and io of each process through held
 * descriptors, on an absolute schedule, and does nothing with them: the least that a sampler with
 * these three files can cost (tools/bench runs it).
 *
 * Says in JSON what it used from its second sample on: the first one makes the kernel's buffers.
 * Where one process may not hold so many descriptors the pids are divided among several. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES   3
#define MOST    65536
#define SPARE   64 /* descriptors for everything else */
#define NS      1000000000L
#define WORKERS 64

struct share {
    long samples, reads, used_us;
};

static const char *const names[FILES] = {"stat", "statm", "io"};
static int pids[MOST], fds[MOST * FILES];
static struct share *shares;

static void fail(const char *what)
{
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static long used_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000L + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

static void hold(const int *list, long n)
{
    char path[64];
    for (long i = 0; i < n * FILES; i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", list[i / FILES], names[i % FILES]);
        fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0)
            fail(path);
    }
}

static void watch(const int *list, long n, long interval_ns, long samples, struct share *share)
{
    static char text[4096];
    struct timespec at;
    long before = 0;
    hold(list, n);
    clock_gettime(CLOCK_MONOTONIC, &at);
    for (long s = 0; s <= samples; s++) {
        for (long i = 0; i < n * FILES; i++)
            if (pread(fds[i], text, sizeof text, 0) <= 0)
                fail("pread");
        if (s == 0)
            before = used_us();
        at.tv_sec += (at.tv_nsec + interval_ns) / NS;
        at.tv_nsec = (at.tv_nsec + interval_ns) % NS;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
    *share = (struct share){samples, samples * n, used_us() - before};
}

static long descriptors(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return (long)limit.rlim_cur;
}

int main(int argc, char **argv)
{
    long count = 0, most = (descriptors() - SPARE) / FILES;
    if (argc != 3 || most < 1)
        return 96;
    long interval_ns = (long)(atof(argv[1]) * 1e6), samples = atol(argv[2]);
    while (count < MOST && scanf("%d", &pids[count]) == 1)
        count++;
    long workers = (count + most - 1) / most;
    shares = mmap(NULL, WORKERS * sizeof *shares, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (workers < 1 || workers > WORKERS || shares == MAP_FAILED)
        fail("too many or too few processes");
    for (long w = 0; w < workers; w++) {
        long from = count * w / workers, to = count * (w + 1) / workers;
        if (w == workers - 1 || fork() == 0) {
            watch(pids + from, to - from, interval_ns, samples, &shares[w]);
            if (w < workers - 1)
                _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    struct share sum = {samples, 0, 0};
    for (long w = 0; w < workers; w++) {
        sum.reads += shares[w].reads;
        sum.used_us += shares[w].used_us;
    }
    printf("{\"samples\": %ld, \"process_samples\": %ld, \"cpu_us\": %ld, \"workers\": %ld}\n",
           sum.samples, sum.reads, sum.used_us, workers);
    return 0;
}
