/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor suggest RUN...`: what to request next time. */
#include "report/suggest.h"

#include <limits.h>
#include <stdio.h>

#include "cli/runs.h"

static bool add(struct pr_suggestion *s, const char *name)
{
    struct proctor_error err;
    struct pr_stored *r = pr_runs_open("suggest", name);
    int code = r ? pr_suggestion_add(s, r, &err) : -1;
    if (r && code < 0)
        pr_complain("suggest: %s", err.message);
    pr_stored_close(r);
    return code == 0;
}

static int suggest(const struct pr_config *c, char *const *names)
{
    struct pr_suggestion s = {.margin = c->margin / 100};
    struct pr_buf text = {0};
    bool good = true;
    for (; good && *names; names++)
        good = add(&s, *names);
    if (good) {
        pr_suggest(&s);
        (c->json ? pr_suggest_json : pr_suggest_text)(&text, &s, c->scheduler);
        fwrite(text.data, 1, text.len, stdout);
    }
    pr_buf_done(&text);
    pr_suggestion_done(&s);
    return good ? 0 : EXIT_FAILED;
}

int pr_main_suggest(int argc, char **argv)
{
    struct pr_config c;
    int status, first = pr_runs_begin("suggest", argc, argv, 1, INT_MAX, &c, &status);
    if (first)
        status = suggest(&c, argv + first);
    pr_config_done(&c);
    return status;
}
