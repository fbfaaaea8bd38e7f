/* SPDX-License-Identifier: Apache-2.0 */
#include "store/runlog.h"

#include <math.h>
#include <string.h>

#include "store/replay.h"
#include "util/clock.h"
#include "util/json.h"

#define PIECE 65536

static void text(struct pr_json *j, const char *key, const char *v)
{
    pr_json_key(j, key);
    pr_json_string(j, v);
}

static struct pr_json line_begin(struct pr_runlog *log, int64_t elapsed, const char *type)
{
    struct pr_json j = {.out = &log->out};
    char time[48];
    pr_clock_rfc3339(log->stored->started + elapsed, time, sizeof time - 8);
    memcpy(strchr(time, 'Z'), "+00:00", sizeof "+00:00");
    pr_json_open(&j, '{');
    text(&j, "ts", time);
    text(&j, "type", type);
    return j;
}

static void line_end(struct pr_runlog *log, struct pr_json *j)
{
    pr_json_close(j, '}');
    pr_buf_char(&log->out, '\n');
    if (log->out.len > PIECE)
        log->full(log);
}

/* What else is known of a phase; nothing of it takes the place of what every line has. */
static void put_extra(struct pr_runlog *log, struct pr_json *j, const char *data)
{
    struct pr_query *q = NULL;
    static const char sql[] = "SELECT json_remove(?1, '$.ts', '$.type', '$.name', '$.seconds')"
                              " WHERE json_valid(?1) AND json_type(?1) = 'object'";
    if (!data || pr_query_new(&q, log->stored->db, sql) < 0)
        return;
    pr_query_text(q, 1, data);
    const char *rest = pr_query_step(q) == 1 ? pr_query_get_text(q, 0) : NULL;
    if (rest && strlen(rest) > 2) /* without its braces */
        pr_buf_printf(j->out, ",%.*s", (int)strlen(rest) - 2, rest + 1);
    pr_query_free(q);
}

static void on_end(void *of, const struct pr_replayed_phase *phase)
{
    struct pr_runlog *log = of;
    struct pr_json j = line_begin(log, phase->end, "phase");
    text(&j, "name", phase->name);
    pr_json_key(&j, "seconds");
    pr_json_number(&j, round(phase->seconds * 1e3) / 1e3);
    put_extra(log, &j, phase->data);
    line_end(log, &j);
}

static void on_mark(void *of, int64_t elapsed, const char *name, const char *data)
{
    struct pr_runlog *log = of;
    struct pr_json j = line_begin(log, elapsed, "event");
    text(&j, "event", name);
    if (data && *data && strcmp(data, "{}") != 0) {
        pr_json_key(&j, "data");
        pr_json_raw(&j, data);
    }
    line_end(log, &j);
}

static void on_event(void *of, const struct pr_event *e)
{
    struct pr_runlog *log = of;
    struct pr_json j = line_begin(log, llround(e->at * 1e9), "event");
    text(&j, "event", pr_event_type_name(e->type));
    pr_json_key(&j, "data");
    pr_json_open(&j, '{');
    text(&j, "text", e->text);
    pr_json_key(&j, "seconds");
    pr_json_number(&j, e->seconds);
    pr_json_close(&j, '}');
    line_end(log, &j);
}

int pr_runlog_write(struct pr_runlog *log, const struct pr_stored *r, struct proctor_error *err)
{
    static const struct pr_replay_to to = {.event = on_event, .mark = on_mark, .end = on_end};
    log->stored = r;
    int code = pr_replay_notes(r, &to, log, err);
    if (log->out.len)
        log->full(log);
    return code;
}
