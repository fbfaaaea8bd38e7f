/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor report RUN... -o FILE`, and --report of those that record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/runs.h"
#include "report/nodes.h"
#include "report/png.h"
#include "report/written.h"

#define RUNS_MOST 20 /* that are not one job */

/* A file may be named only where it is none of the runs. */
static bool is_a_run(const char *path, struct pr_stored *const *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pr_runs_is_file(path, runs[i]->path)) {
            pr_complain("report: '%.300s' is the run itself", path);
            return true;
        }
    return false;
}

static bool open_one(const char *run, struct pr_stored **runs, size_t *count)
{
    if (*count == NODES_MOST) {
        pr_complain("report: '%.80s' is too much: at most %d nodes", run, NODES_MOST);
        return false;
    }
    struct pr_stored *r = pr_runs_open("report", run);
    if (r)
        runs[(*count)++] = r;
    return r != NULL;
}

/* All nodes of a run that was named by its id; where it was repeated under that id, the one run. */
static bool open_nodes(const char *run, struct pr_stored **runs, size_t *count)
{
    struct proctor_error err;
    char *paths[NODES_MOST];
    size_t found = 0, first = *count;
    bool all = pr_store_find_nodes(run, paths, NODES_MOST, &found, &err) == 0;
    if (!all)
        pr_complain("report: %s", err.message);
    for (size_t i = 0; i < found; i++) {
        all = all && open_one(paths[i], runs, count);
        free(paths[i]);
    }
    if (!all || found < 2 || pr_nodes_are_one(runs + first, found))
        return all;
    while (*count > first)
        pr_stored_close(runs[--*count]);
    return open_one(run, runs, count);
}

static bool too_many(struct pr_stored *const *runs, size_t count)
{
    if (count <= RUNS_MOST || pr_nodes_are_one(runs, count))
        return false;
    pr_complain("report: %zu runs are too much: at most %d that are not one job", count, RUNS_MOST);
    return true;
}

static int report(const struct pr_config *c, const struct pr_report_how *how, char *const *names,
                  size_t count)
{
    struct proctor_error err;
    struct pr_stored *runs[NODES_MOST] = {0};
    const struct pr_list *into = &c->report_into;
    size_t opened = 0;
    bool all = true;
    for (size_t i = 0; all && i < count; i++)
        all = open_nodes(names[i], runs, &opened);
    int code = all && !too_many(runs, opened) ? 0 : -ENOENT;
    if (code == 0 && how->append && is_a_run(how->append, runs, opened))
        code = -ENOENT;
    for (size_t i = 0; code == 0 && i < into->count; i++)
        code = is_a_run(into->items[i], runs, opened) ? -ENOENT : 0;
    if (code == 0 &&
        (code = pr_report_write(runs, opened, into->items, into->count, how, &err)) < 0)
        pr_complain("report: %s", err.message);
    for (size_t i = 0; i < opened; i++)
        pr_stored_close(runs[i]);
    return code < 0 ? EXIT_FAILED : 0;
}

/* What was asked for, before any run is opened. False after a complaint. */
static bool can_be(const struct pr_config *c, struct pr_report_how *how)
{
    struct proctor_error err;
    how->append = c->github ? getenv("GITHUB_STEP_SUMMARY") : NULL;
    how->png = c->images && strcmp(c->images, "png") == 0;
    const struct pr_list *into = &c->report_into;
    int code = how->png ? pr_png_ready(&err) : 0;
    for (size_t i = 0; code == 0 && i < into->count; i++)
        code = pr_report_check(into->items[i], &err);
    if (c->github && !(how->append && *how->append))
        pr_complain(
            "report: --github: GITHUB_STEP_SUMMARY is not set; in a step of GitHub Actions it "
            "names the file to add to");
    else if (!into->count && !c->github)
        pr_complain("report: -o FILE is missing: its ending says what it is, " REPORT_ENDINGS);
    else if (c->images && !pr_report_has_names(into->items, into->count))
        pr_complain("report: --images is for the pictures of -o NAME.md");
    else if (code < 0)
        pr_complain("report: %s", err.message);
    else
        return true;
    return false;
}

int pr_main_report(int argc, char **argv)
{
    struct pr_config c;
    struct pr_report_how how = {0};
    int status, first = pr_runs_begin("report", argc, argv, 1, NODES_MOST, &c, &status);
    size_t count = 0;
    while (first && first + (int)count < argc && argv[first + (int)count])
        count++;
    if (first && can_be(&c, &how))
        status = report(&c, &how, argv + first, count);
    pr_config_done(&c);
    return status;
}
