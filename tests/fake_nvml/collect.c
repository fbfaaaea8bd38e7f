/* SPDX-License-Identifier: Apache-2.0 */
/* Takes samples by itself: argv[2] of them, argv[1] seconds apart. Says of each when it was asked
 * for, how long that took, and the memory of all GPUs. */
#include <math.h>
#include <proctor/proctor.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double mem;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_sample(const struct proctor_snapshot *s, void *data)
{
    (void)data;
    mem = NAN;
    proctor_snapshot_value(s, "system.gpu.mem", &mem);
}

int main(int argc, char **argv)
{
    struct proctor_monitor *m;
    struct proctor_error err;
    (void)argc;
    if (proctor_monitor_new(&m, &err) < 0 || proctor_monitor_watch_pid(m, getpid(), 0, &err) < 0 ||
        proctor_monitor_on_sample(m, on_sample, NULL) < 0)
        return 1;
    double start = now();
    for (int i = 0; i < atoi(argv[2]); i++) {
        double before = now();
        if (proctor_monitor_collect(m, &err) < 0)
            return 1;
        printf("%g %g %.0f\n", before - start, now() - before, mem);
        usleep((useconds_t)(atof(argv[1]) * 1e6));
    }
    fflush(stdout);
    proctor_monitor_stop(m, NULL);
    proctor_monitor_free(m);
    return 0;
}
