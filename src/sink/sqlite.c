/* SPDX-License-Identifier: Apache-2.0 */
/* The run file: a sink like others, but for what it does when it cannot write. */
#include "sink/sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/text.h"

/* --- trouble ---------------------------------------------------------------------------------- */

static bool is_full(int code)
{
    return code == -ENOSPC || code == -EDQUOT || code == -EFBIG;
}

/* What another attempt does not make better. */
static bool is_final(int code)
{
    static const int codes[] = {ENOSYS, EUCLEAN, EMEDIUMTYPE, EROFS, EINVAL};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (code == -codes[i])
            return true;
    return false;
}

static void complain(struct record *r, int code)
{
    double at = pr_seconds(r->elapsed);
    const char *why = is_full(code) || !*r->why ? strerror(-code) : r->why;
    r->dead |= is_final(code);
    if (r->said)
        return;
    r->said = true;
    if (r->dead)
        pr_event_problem(r->events, at, "the run is not recorded%s: %.120s",
                         r->ready ? " any further" : "", why);
    else
        pr_event_problem(r->events, at, "%s: %s; the record is interrupted until %s", r->name, why,
                         is_full(code) ? "there is room" : "that is over");
}

static void resume(struct record *r)
{
    if (!r->missing_now)
        return;
    if (!r->said_again)
        pr_event_problem(r->events, pr_seconds(r->elapsed),
                         "%s: the record goes on; %lu samples are missing", r->name,
                         r->missing_now);
    r->missing_said += r->said_again ? 0 : r->missing_now;
    r->said_again = true;
    r->missing_now = 0;
}

/* --- a transaction ---------------------------------------------------------------------------- */

static int write_all(struct record *r, const struct proctor_snapshot *s)
{
    int code = pr_record_notes(r);
    if (code == 0)
        code = pr_record_events(r);
    if (code == 0 && s)
        code = pr_record_exits(r, s->enrolled);
    return code == 0 && s ? pr_record_sample(r, s) : code;
}

static int finish_transaction(struct record *r, int code)
{
    if (code == 0)
        code = pr_record_commit(r);
    if (code < 0) {
        pr_record_rollback(r);
        complain(r, code);
    }
    return code;
}

static void record_write(struct pr_sink *sink, const struct proctor_snapshot *s)
{
    struct record *r = (struct record *)sink;
    r->sample++;
    r->elapsed = s->elapsed;
    r->start = s->time - s->elapsed;
    if (r->dead)
        return;
    int code = pr_record_ready(r);
    if (code < 0)
        complain(r, code);
    if (code == 0 && (code = pr_record_begin(r)) < 0)
        complain(r, code);
    else if (code == 0)
        code = finish_transaction(r, write_all(r, s));
    if (code < 0) {
        r->missing++;
        r->missing_now++;
        return;
    }
    r->job_at = s->elapsed;
    r->machine_at = r->machine_now;
    resume(r);
    pr_record_sync(r, false);
}

static void record_notes(struct pr_sink *sink)
{
    struct record *r = (struct record *)sink;
    if (r->dead || !r->ready) /* the run comes first */
        return;
    int code = pr_record_begin(r);
    if (code < 0)
        complain(r, code);
    else if (finish_transaction(r, write_all(r, NULL)) == 0)
        pr_record_sync(r, false);
}

static int put_summary(struct record *r, const char *members)
{
    pr_buf_reset(&r->text);
    pr_buf_printf(&r->text, "{%s}", members);
    const char *json = pr_buf_text(&r->text);
    struct pr_query *summary = r->query[QUERY_SUMMARY], *run = r->query[QUERY_RUN_END];
    pr_query_text(summary, 1, json);
    pr_query_int(run, 1, r->start + r->elapsed);
    pr_query_text(run, 2, json);
    int code = pr_query_do(summary);
    return code == 0 ? pr_query_do(run) : code;
}

static void record_summary(struct pr_sink *sink, const char *members)
{
    struct record *r = (struct record *)sink;
    if (r->dead || !r->ready)
        return;
    int code = pr_record_begin(r);
    if (code < 0) {
        complain(r, code);
        return;
    }
    code = pr_record_notes(r);
    if (r->now.notes.lost)
        pr_event_problem(r->events, pr_seconds(r->elapsed),
                         "%s: %lu marks and phases are not there", r->name, r->now.notes.lost);
    if (code == 0)
        code = pr_record_events(r);
    if (code == 0)
        code = pr_record_exits(r, r->roll->count);
    if (code == 0)
        code = put_summary(r, members);
    finish_transaction(r, code);
}

static void record_close(struct pr_sink *sink)
{
    struct record *r = (struct record *)sink;
    if (r->missing && !r->dead && (r->missing_now || r->missing > r->missing_said))
        pr_event_problem(r->events, pr_seconds(r->elapsed), "%s: %lu samples are missing", r->name,
                         r->missing);
    pr_record_finish(r);
    pr_record_rows_done(r);
    pr_buf_done(&r->text);
    pr_buf_done(&r->note);
    free(r->path);
    free(r->run);
    free(r);
}

static const struct pr_sink_ops ops = {.write = record_write,
                                       .summary = record_summary,
                                       .notes = record_notes,
                                       .close = record_close,
                                       .devices = true,
                                       .processes = true};

int pr_record_open(const struct pr_sink_setting *setting, struct pr_sink **ret_sink,
                   struct proctor_error *err)
{
    char why[160];
    if (setting->asked_for && !pr_db_version(why, sizeof why))
        return pr_error(err, ENOSYS, "--output: %s", why);
    struct record *r = calloc(1, sizeof *r);
    char *path = strdup(setting->path), *run = strdup(setting->run ? setting->run : "");
    if (!r || !path || !run) {
        free(r);
        free(path);
        free(run);
        return pr_error(err, ENOMEM, "out of memory");
    }
    *r = (struct record){.sink.ops = &ops,
                         .path = path,
                         .run = run,
                         .fd = setting->fd,
                         .held = setting->held,
                         .select = setting->select,
                         .events = setting->events,
                         .roll = setting->roll,
                         .host = setting->host,
                         .notes = setting->notes};
    const char *tail = pr_text_tail(path, 100);
    snprintf(r->name, sizeof r->name, "%s%s", tail > path ? "..." : "", tail);
    pr_record_rows_init(r);
    *ret_sink = &r->sink;
    return 0;
}
