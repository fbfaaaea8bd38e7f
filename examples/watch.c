/* SPDX-License-Identifier: Apache-2.0 */
/* Watches this very process and its children while it works, and prints what that took.
 * cc watch.c $(pkg-config --cflags --libs proctor) */
#include <proctor/proctor.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void on_sample(const struct proctor_snapshot *s, void *data)
{
    double rss;
    ++*(int *)data;
    if (proctor_snapshot_value(s, "mem.rss", &rss) == 0)
        printf("%5.2f s  %6.1f MiB\n", proctor_snapshot_elapsed(s), rss / (1 << 20));
}

int main(void)
{
    struct proctor_monitor *m = NULL;
    struct proctor_error err;
    int samples = 0;
    double cpu = 0;
    if (proctor_monitor_new(&m, &err) < 0 || proctor_monitor_watch_pid(m, getpid(), 0, &err) < 0 ||
        proctor_monitor_set(m, "interval", "100ms", &err) < 0 ||
        proctor_monitor_on_sample(m, on_sample, &samples) < 0 ||
        proctor_monitor_start(m, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    int status = system("i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done");
    proctor_monitor_stop(m, &err);
    proctor_monitor_total(m, "cpu.time", &cpu);
    printf("%d samples, %.3f s of CPU\n", samples, cpu);
    proctor_monitor_free(m);
    return status != 0;
}
