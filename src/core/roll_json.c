/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the roll as JSON: in one shape for all who write them. */
#include <math.h>
#include <sys/wait.h>

#include "core/roll.h"
#include "util/clock.h"

static void number(struct pr_json *j, const char *key, double v)
{
    pr_json_key(j, key);
    pr_json_number(j, v);
}

static void moment(struct pr_json *j, const char *key, int64_t wall)
{
    char text[40];
    pr_clock_rfc3339(wall, text, sizeof text);
    pr_json_key(j, key);
    pr_json_string(j, wall ? text : NULL);
}

static void put_exit(struct pr_json *j, int status)
{
    pr_json_key(j, "exit");
    if (status < 0) {
        pr_json_null(j);
        return;
    }
    pr_json_open(j, '{');
    number(j, "code", WIFEXITED(status) ? WEXITSTATUS(status) : NAN);
    number(j, "signal", WIFSIGNALED(status) ? WTERMSIG(status) : NAN);
    pr_json_close(j, '}');
}

void pr_roll_put_use(struct pr_json *j, double cpu, double peak, const double *io)
{
    number(j, pr_metrics[METRIC_CPU_TIME].key, cpu);
    number(j, pr_metrics[METRIC_MEM_RSS_PEAK].key, peak);
    for (int i = 0; i < ROLL_IO; i++)
        number(j, pr_metrics[METRIC_IO_READ + i].key, io[i]);
}

void pr_roll_put(struct pr_json *j, const struct pr_roll_entry *e)
{
    number(j, "pid", e->pid);
    number(j, "ppid", e->ppid);
    pr_json_key(j, "command");
    pr_json_string(j, e->comm);
    moment(j, "started", e->started);
    moment(j, "ended", e->ended);
    put_exit(j, e->status);
    number(j, "samples", e->looks);
    pr_json_key(j, "source");
    pr_json_string(j, pr_roll_way_name(e->way));
    pr_json_key(j, "values");
    pr_json_open(j, '{');
    pr_roll_put_use(j, e->cpu, e->peak, e->io);
    pr_json_close(j, '}');
}
