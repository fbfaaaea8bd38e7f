/* SPDX-License-Identifier: Apache-2.0 */
/* Divides a program into phases, and prints the summary with an account of each.
 * cc phases.c $(pkg-config --cflags --libs proctor) */
#include <proctor/proctor.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    struct proctor_monitor *m = NULL;
    struct proctor_error err;
    char data[64];
    if (proctor_monitor_new(&m, &err) < 0 || proctor_monitor_watch_pid(m, getpid(), 0, &err) < 0 ||
        proctor_monitor_start(m, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    proctor_monitor_phase_begin(m, "load", &err);
    char *memory = malloc(64 << 20);
    for (size_t i = 0; memory && i < 64 << 20; i += 4096)
        memory[i] = 1;
    proctor_monitor_phase_end(m, "load", &err);
    proctor_monitor_phase_begin(m, "work", &err);
    for (int step = 0; step < 3; step++) {
        int status = system("i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done");
        snprintf(data, sizeof data, "{\"step\": %d, \"status\": %d}", step, status);
        proctor_monitor_mark(m, "step", data, &err);
    }
    proctor_monitor_phase_end(m, "work", &err);
    free(memory);
    proctor_monitor_stop(m, &err);
    puts(proctor_monitor_summary_json(m));
    proctor_monitor_free(m);
    return 0;
}
