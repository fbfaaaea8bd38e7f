/* SPDX-License-Identifier: Apache-2.0 */
/* A sink of one's own: the largest process of each sample, phases as they end, then the summary.
 * cc own_sink.c $(pkg-config --cflags --libs proctor) */
#include <proctor/proctor.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void sample(const struct proctor_snapshot *s, void *data)
{
    double rss, most = 0;
    size_t largest = 0;
    for (size_t i = 0; i < proctor_snapshot_processes(s); i++)
        if (proctor_snapshot_process_value(s, i, "mem.rss", &rss) == 0 && rss > most)
            most = rss, largest = i;
    if (most > 0)
        fprintf(data, "%.2f s: %s has %.0f bytes\n", proctor_snapshot_elapsed(s),
                proctor_snapshot_process_command(s, largest), most);
}

static void text(const char *json, void *data)
{
    fprintf(data, "%s\n", json);
}

int main(void)
{
    struct proctor_sink sink = {sizeof sink, PROCTOR_WANT_PROCESSES, sample, text, text, NULL};
    struct proctor_monitor *m = NULL;
    struct proctor_error err;
    if (proctor_monitor_new(&m, &err) < 0 || proctor_monitor_watch_pid(m, getpid(), 0, &err) < 0 ||
        proctor_monitor_set(m, "interval", "100ms", &err) < 0 ||
        proctor_monitor_add_sink(m, &sink, stdout, &err) < 0 || proctor_monitor_start(m, &err) < 0)
        return fprintf(stderr, "%s\n", err.message), 1;
    proctor_monitor_phase_begin(m, "work", &err);
    int status = system("sleep 0.5");
    proctor_monitor_phase_end(m, "work", &err);
    proctor_monitor_free(m);
    return status != 0;
}
