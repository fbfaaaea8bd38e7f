/* SPDX-License-Identifier: Apache-2.0 */
/* maps MIB BEFORE SECONDS REPORT: a job with much memory in small pages that asks the kernel for
 * more and gives it back all the time (tools/bench runs it). Whoever reads its PSS goes through all
 * of these pages, and holds it up for as long.
 *
 * It sleeps for BEFORE seconds, so that whoever watches it has settled. REPORT gets how often, the
 * CPU time for it, and the longest that one time took. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PIECE (64 << 10)

static double now(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *map(size_t size)
{
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    return p;
}

static void fill(size_t mib)
{
    size_t size = mib << 20;
    char *p = map(size);
    madvise(p, size, MADV_NOHUGEPAGE);
    memset(p, 1, size);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 96;
    double began = now(CLOCK_MONOTONIC), start = began + atof(argv[2]), longest = 0;
    long rounds = 0;
    fill((size_t)atol(argv[1]));
    while (now(CLOCK_MONOTONIC) < start)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    double cpu = now(CLOCK_PROCESS_CPUTIME_ID), end = start + atof(argv[3]), last = start;
    while (last < end) {
        char *p = map(PIECE);
        *p = 1;
        munmap(p, PIECE);
        double t = now(CLOCK_MONOTONIC);
        longest = t - last > longest && rounds ? t - last : longest;
        last = t;
        rounds++;
    }
    FILE *f = fopen(argv[4], "w");
    if (!f)
        return 1;
    fprintf(f, "{\"rounds\": %ld, \"cpu\": %.6f, \"wall\": %.6f, \"longest\": %.6f}\n", rounds,
            now(CLOCK_PROCESS_CPUTIME_ID) - cpu, last - start, longest);
    return fclose(f) == 0 ? 0 : 1;
}
