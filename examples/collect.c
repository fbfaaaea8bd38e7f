/* SPDX-License-Identifier: Apache-2.0 */
/* Takes samples at moments of its own choosing, without a thread, and prints totals and a peak.
 * cc collect.c $(pkg-config --cflags --libs proctor) */
#include <proctor/proctor.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    struct proctor_monitor *m = NULL;
    struct proctor_error err;
    double cpu = 0, read = 0, peak = 0;
    if (proctor_monitor_new(&m, &err) < 0 || proctor_monitor_watch_pid(m, getpid(), 0, &err) < 0)
        return fprintf(stderr, "%s\n", err.message), 1;
    for (size_t size = 1 << 20; size <= 64 << 20; size *= 4) {
        volatile char *memory = malloc(size);
        for (size_t i = 0; memory && i < size; i += 4096)
            memory[i] = 1;
        if (proctor_monitor_collect(m, &err) < 0)
            fprintf(stderr, "%s\n", err.message);
        free((void *)memory);
    }
    proctor_monitor_stop(m, &err);
    proctor_monitor_total(m, "cpu.time", &cpu);
    proctor_monitor_peak(m, "mem.rss", &peak);
    printf("%.3f s of CPU, %.0f bytes at the most", cpu, peak);
    if (proctor_monitor_total(m, "io.read", &read) == 0) /* absent is not 0 */
        printf(", %.0f bytes read", read);
    puts("");
    proctor_monitor_free(m);
    return 0;
}
