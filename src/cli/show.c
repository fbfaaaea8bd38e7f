/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor show RUN`: its summary. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/runs.h"
#include "cli/show_text.h"

#define SAMPLES_MOST 1e6 /* one or two seconds */

/* How many samples there are to read for a picture. */
static double samples_of(const struct pr_stored *r)
{
    struct pr_query *q = NULL;
    double count = NAN;
    if (pr_query_new(&q, r->db, "SELECT max(sample) FROM job_samples") == 0 &&
        pr_query_step(q) == 1)
        count = pr_query_get_number(q, 0);
    pr_query_free(q);
    return count;
}

/* What is drawn; NULL where it cannot be: the rest is worth showing all the same. */
static struct pr_model *draw(const struct pr_stored *r)
{
    struct proctor_error err;
    struct pr_model *m = NULL;
    if (samples_of(r) > SAMPLES_MOST)
        pr_complain("show: the curves of so long a run take their time: proctor report has them");
    else if (!(m = calloc(1, sizeof *m)))
        pr_complain("show: out of memory");
    else if (pr_model_read(m, r, SIZE_MAX, &err) == 0)
        return m;
    else
        pr_complain("show: there is no picture: %s", err.message);
    if (m)
        pr_model_done(m);
    free(m);
    return NULL;
}

/* On a terminal with a picture. */
static bool print(const struct pr_config *c, const struct pr_stored *r)
{
    struct pr_look look = {pr_wants_color(c, STDOUT_FILENO), pr_has_utf8(), pr_runs_width()};
    struct pr_model *m = look.width ? draw(r) : NULL;
    struct pr_buf json = {0}, text = {0};
    bool good = m || pr_runs_summary("show", r, &json);
    if (good) {
        pr_show_text(&text, r, pr_buf_text(m ? &m->summary : &json), m, &look);
        fwrite(text.data, 1, text.len, stdout);
    }
    if (m)
        pr_model_done(m);
    free(m);
    pr_buf_done(&json);
    pr_buf_done(&text);
    return good;
}

static bool print_json(const struct pr_stored *r)
{
    struct pr_buf json = {0};
    bool good = pr_runs_summary("show", r, &json);
    if (good)
        puts(pr_buf_text(&json));
    pr_buf_done(&json);
    return good;
}

static int show(const struct pr_config *c, const char *run)
{
    struct pr_stored *r = pr_runs_open("show", run);
    bool good = r && (c->json ? print_json(r) : print(c, r));
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
