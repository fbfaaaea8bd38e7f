/* SPDX-License-Identifier: Apache-2.0 */
/* busy THREADS BEFORE SECONDS REPORT: a job that uses all it can get, with work that is counted
 * (tools/bench runs it).
 *
 * It sleeps for BEFORE seconds, so that whoever watches it has settled. Each thread goes through
 * half a megabyte in a fixed random order: what disturbs caches is felt. REPORT gets how often, the
 * CPU time for it, and the wall time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CELLS   (1 << 17)
#define THREADS 64

static double until;
static long rounds[THREADS];

static double now(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One cycle through all cells (Sattolo's shuffle). */
static unsigned *cycle(void)
{
    unsigned *next = malloc(CELLS * sizeof *next), seed = 1;
    if (!next)
        exit(1);
    for (unsigned i = 0; i < CELLS; i++)
        next[i] = i;
    for (unsigned i = CELLS - 1; i > 0; i--) {
        seed = seed * 1664525u + 1013904223u;
        unsigned j = (unsigned)(((unsigned long)seed * i) >> 32), t = next[i];
        next[i] = next[j];
        next[j] = t;
    }
    return next;
}

static void *work(void *data)
{
    volatile unsigned at = 0;
    unsigned *next = cycle();
    while (now(CLOCK_MONOTONIC) < until) {
        unsigned here = at;
        for (int i = 0; i < CELLS; i++)
            here = next[here];
        at = here;
        ++*(long *)data;
    }
    free(next);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    int n = argc == 5 ? atoi(argv[1]) : 0;
    long sum = 0;
    if (n < 1 || n > THREADS)
        return 96;
    struct timespec before = {0, 0};
    before.tv_sec = (time_t)atof(argv[2]);
    before.tv_nsec = (long)((atof(argv[2]) - (double)before.tv_sec) * 1e9);
    nanosleep(&before, NULL);
    double began = now(CLOCK_MONOTONIC);
    until = began + atof(argv[3]);
    for (int i = 0; i < n; i++)
        if (pthread_create(&thread[i], NULL, work, &rounds[i]) != 0)
            return 1;
    for (int i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
        sum += rounds[i];
    }
    FILE *f = fopen(argv[4], "w");
    if (!f)
        return 1;
    fprintf(f, "{\"rounds\": %ld, \"cpu\": %.6f, \"wall\": %.6f}\n", sum,
            now(CLOCK_PROCESS_CPUTIME_ID), now(CLOCK_MONOTONIC) - began);
    return fclose(f) == 0 ? 0 : 1;
}
