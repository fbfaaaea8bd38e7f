/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor show RUN`: its summary. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/runs.h"
#include "cli/show_text.h"

static int show(const struct pr_config *c, const char *run)
{
    struct pr_buf json = {0}, text = {0};
    struct pr_stored *r = pr_runs_open("show", run);
    bool good = r && pr_runs_summary("show", r, &json);
    if (good && c->json) {
        puts(pr_buf_text(&json));
    } else if (good) {
        struct pr_look look = {.color = pr_wants_color(c, STDOUT_FILENO), .width = pr_runs_width()};
        pr_show_text(&text, r, pr_buf_text(&json), &look);
        fwrite(text.data, 1, text.len, stdout);
    }
    pr_buf_done(&json);
    pr_buf_done(&text);
    pr_stored_close(r);
    return good ? 0 : EXIT_FAILED;
}

int pr_main_show(int argc, char **argv)
{
    struct pr_config c;
    int status, first = pr_runs_begin("show", argc, argv, 1, 1, &c, &status);
    if (first)
        status = show(&c, argv[first]);
    pr_config_done(&c);
    return status;
}
