/* SPDX-License-Identifier: Apache-2.0 */
#include "report/recorded.h"

#include <stdio.h>
#include <string.h>

#include "report/rebuild.h"
#include "util/text.h"

int pr_recorded_summary(const struct pr_stored *r, struct pr_buf *out, struct proctor_error *err)
{
    int code = r->summarized ? pr_stored_summary(r, out, err) : pr_rebuild(r, out, err);
    pr_buf_text(out); /* with a NUL */
    return code;
}

bool pr_recorded_ending(const struct pr_stored *r, char *text, size_t size)
{
    char name[32];
    if (r->state == RUN_RUNNING)
        snprintf(text, size, "still running");
    else if (r->state == RUN_ELSEWHERE)
        snprintf(text, size, "its end is not known here");
    else if (r->state != RUN_ENDED || r->recovered)
        snprintf(text, size, "its recorder died");
    else if (r->exit_signal > 0)
        snprintf(text, size, "killed by %s", pr_text_signal(r->exit_signal, name, sizeof name));
    else if (r->exit_code >= 0)
        snprintf(text, size, "exit %d", r->exit_code);
    else
        snprintf(text, size, "recording ended");
    return r->state == RUN_ENDED && !r->recovered && r->exit_code <= 0 && r->exit_signal <= 0;
}

enum pr_way pr_recorded_way(const struct pr_stored *r)
{
    struct pr_buf text = {0};
    enum pr_way way = WAY_RUN;
    pr_stored_text(r, r->about, "$.way", &text);
    for (int i = WAY_RUN; i <= WAY_EVERYBODY; i++)
        if (strcmp(pr_buf_text(&text), pr_way_name((enum pr_way)i)) == 0)
            way = (enum pr_way)i;
    pr_buf_done(&text);
    return way;
}

bool pr_recorded_machine(const struct pr_stored *r)
{
    enum pr_way way = pr_recorded_way(r);
    return way == WAY_SYSTEM || way == WAY_EVERYBODY;
}
