/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor system`: the whole machine. */
#include "cli/outside.h"
#include "cli/watching.h"

static bool is_of_machine(const struct pr_config *c, char **key)
{
    struct pr_config one = *c;
    one.select = (struct pr_list){key, 1};
    struct pr_select select = pr_select_of(&one);
    for (int id = 0; id < METRIC_COUNT; id++)
        if (pr_selected(&select, id))
            return true;
    return false;
}

/* The first that is selected and that a machine does not have, or NULL. */
static const char *find_foreign(const struct pr_config *c)
{
    for (size_t i = 0; i < c->select.count && !c->processes; i++)
        if (!is_of_machine(c, &c->select.items[i]))
            return c->select.items[i];
    return NULL;
}

static int record(struct pr_watching *w)
{
    struct proctor_error err;
    int r = proctor_monitor_watch_system(w->monitor, &err);
    if (r < 0) {
        pr_complain("system: %s", err.message);
        return EXIT_OWN_FAILURE;
    }
    const char *foreign = find_foreign(&w->monitor->config);
    if (foreign) {
        pr_complain("system: --select '%s' is of processes; a machine has system.* metrics, and "
                    "--processes adds the others",
                    foreign);
        return EXIT_USAGE;
    }
    return pr_watching_record(w);
}

int pr_main_system(int argc, char **argv)
{
    struct pr_watching w = {.command = "system",
                            .signals = -1,
                            .ended = -1,
                            .summary.fd = -1,
                            .server = PR_SERVER_NONE};
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
