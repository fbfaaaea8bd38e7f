/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a recorded run: read_run RUN, which is a file, an id from `proctor ls`, or last.
 * cc read_run.c $(pkg-config --cflags --libs proctor) */
#include <proctor/proctor.h>
#include <stdio.h>

static void on_sample(const struct proctor_snapshot *s, void *data)
{
    double rss;
    ++*(int *)data;
    if (proctor_snapshot_value(s, "mem.rss", &rss) == 0)
        printf("%5.2f s  %6.1f MiB\n", proctor_snapshot_elapsed(s), rss / (1 << 20));
}

int main(int argc, char **argv)
{
    struct proctor_run *run = NULL;
    struct proctor_error err;
    int samples = 0;
    double cpu = 0, peak = 0;
    if (proctor_run_open(&run, argc > 1 ? argv[1] : "last", &err) < 0 ||
        proctor_run_samples(run, on_sample, &samples, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        proctor_run_free(run);
        return 1;
    }
    proctor_run_total(run, "cpu.time", &cpu);
    proctor_run_peak(run, "mem.rss", &peak);
    printf("%s: %d samples, %.3f s of CPU, peak %.1f MiB\n", proctor_run_id(run), samples, cpu,
           peak / (1 << 20));
    proctor_run_free(run);
    return 0;
}
