/* SPDX-License-Identifier: Apache-2.0 */
#include "core/line.h"

#include "util/clock.h"

struct pr_json pr_line_begin(struct pr_buf *out, const char *type, int64_t start, int64_t elapsed)
{
    struct pr_json j = {.out = out};
    char time[40];
    pr_clock_rfc3339(start + elapsed, time, sizeof time);
    pr_json_open(&j, '{');
    pr_json_key(&j, "type");
    pr_json_string(&j, type);
    pr_json_key(&j, "time");
    pr_json_string(&j, time);
    pr_json_key(&j, "elapsed");
    pr_json_number(&j, pr_seconds(elapsed));
    return j;
}

void pr_line_members(struct pr_json *j, const char *members)
{
    if (*members)
        pr_buf_printf(j->out, ",%s", members);
}

void pr_line_end(struct pr_json *j)
{
    pr_json_close(j, '}');
    pr_buf_char(j->out, '\n');
}

void pr_line_event(struct pr_buf *out, int64_t start, const struct pr_event *event)
{
    struct pr_json j = pr_line_begin(out, "event", start, (int64_t)(event->at * 1e9));
    pr_json_key(&j, "event");
    pr_json_string(&j, pr_event_type_name(event->type));
    pr_json_key(&j, "seconds");
    pr_json_number(&j, event->seconds);
    pr_json_key(&j, "text");
    pr_json_string(&j, event->text);
    pr_line_end(&j);
}

void pr_line_note(struct pr_buf *out, int64_t start, struct pr_note note, const char *members)
{
    static const char *const types[] = {[NOTE_EVENT] = "event", [NOTE_PHASE] = "phase"};
    if ((size_t)note.type >= sizeof types / sizeof *types)
        return;
    struct pr_json j = pr_line_begin(out, types[note.type], start, note.elapsed);
    pr_line_members(&j, members);
    pr_line_end(&j);
}
