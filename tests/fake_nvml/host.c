/* SPDX-License-Identifier: Apache-2.0 */
/* Has itself watched for two seconds, and says what is its own. */
#include <proctor/proctor.h>
#include <stdio.h>
#include <unistd.h>

static double threads, cpu, fds;

static void on_sample(const struct proctor_snapshot *s, void *data)
{
    (void)data;
    proctor_snapshot_value(s, "threads", &threads);
    proctor_snapshot_value(s, "cpu.time", &cpu);
    proctor_snapshot_value(s, "fds", &fds);
}

int main(void)
{
    struct proctor_monitor *m;
    struct proctor_error err;
    if (proctor_monitor_new(&m, &err) < 0 || proctor_monitor_watch_pid(m, getpid(), 0, &err) < 0 ||
        proctor_monitor_set(m, "interval", "100ms", &err) < 0 ||
        proctor_monitor_set(m, "budget", "50%", &err) < 0 ||
        proctor_monitor_on_sample(m, on_sample, NULL) < 0 || proctor_monitor_start(m, &err) < 0)
        return 1;
    sleep(2);
    proctor_monitor_stop(m, NULL);
    printf("%g\n%g\n%g\n%s", threads, cpu, fds, proctor_monitor_summary_json(m));
    proctor_monitor_free(m);
    return 0;
}
