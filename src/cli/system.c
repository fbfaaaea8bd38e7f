/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor system`: the whole machine. */
#include "cli/outside.h"
#include "cli/watching.h"

/* Is anything selected that a machine has? */
static bool has_something(const struct pr_config *c)
{
    struct pr_select select = pr_select_of(c);
    for (int id = JOB_METRICS; id < METRIC_COUNT; id++)
        if (pr_selected(&select, id))
            return true;
    return c->processes;
}

static int record(struct pr_watching *w)
{
    struct proctor_error err;
    int r = proctor_monitor_watch_system(w->monitor, &err);
    if (r < 0) {
        pr_complain("system: %s", err.message);
        return EXIT_OWN_FAILURE;
    }
    if (!has_something(&w->monitor->config)) {
        pr_complain("system: --select '%s' is of processes; a machine has system.* metrics, and "
                    "--processes adds the others",
                    w->monitor->config.text[OPTION_SELECT]);
        return EXIT_USAGE;
    }
    return pr_watching_record(w);
}

int pr_main_system(int argc, char **argv)
{
    struct pr_watching w = {.command = "system", .signals = -1, .ended = -1, .summary.fd = -1};
    int first, status;
    pr_outside_plug_holes();
    w.monitor = pr_recording_new("system", argc, argv, &first, &status);
    if (!w.monitor)
        return status;
    status = EXIT_USAGE;
    if (argv[first])
        pr_complain("system: '%s' is too much: it takes no operands", argv[first]);
    else
        status = record(&w);
    pr_watching_done(&w);
    return status;
}
