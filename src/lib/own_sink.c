/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/own_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/line.h"
#include "util/clock.h"

struct own {
    struct pr_sink sink;
    struct pr_sink_ops ops; /* what it wants is its own */
    struct proctor_sink user;
    void *data;
    struct proctor_monitor *m;
    int64_t start, elapsed; /* wall time of the start; elapsed at the last sample, ns */
    size_t events_done;
    struct pr_notes_place place;
    struct pr_buf note, line;
    bool begun;
};

/* Calls from there into the monitor would wait for themselves: while it lasts they are refused. */
static void enter(struct own *o)
{
    o->m->in_sink = gettid();
}

static void leave(struct own *o)
{
    o->m->in_sink = 0;
}

static void tell(struct own *o, void (*fn)(const char *, void *), struct pr_buf *text)
{
    if (fn && !text->failed) {
        enter(o);
        fn(pr_buf_text(text), o->data);
        leave(o);
    }
    pr_buf_reset(text);
}

static void tell_line(struct own *o)
{
    if (o->line.len)
        o->line.data[--o->line.len] = '\0'; /* without the end of the line */
    tell(o, o->user.line, &o->line);
}

static void tell_what_happened(struct own *o)
{
    struct pr_note note;
    struct pr_event event;
    while (pr_notes_next(&o->m->session.phases.notes, &o->place, &note, &o->note)) {
        pr_line_note(&o->line, o->start, note, pr_buf_text(&o->note));
        if (o->line.len)
            tell_line(o);
    }
    while (pr_event_get(&o->m->session.events, o->events_done, &event)) {
        o->events_done++;
        pr_line_event(&o->line, o->start, &event);
        tell_line(o);
    }
}

static void own_write(struct pr_sink *sink, const struct proctor_snapshot *s)
{
    struct own *o = (struct own *)sink;
    o->begun = true;
    o->start = s->time - s->elapsed;
    o->elapsed = s->elapsed;
    if (o->user.line)
        tell_what_happened(o);
    if (!o->user.sample)
        return;
    enter(o);
    o->user.sample(s, o->data);
    leave(o);
}

static void own_notes(struct pr_sink *sink)
{
    struct own *o = (struct own *)sink;
    if (o->begun && o->user.line)
        tell_what_happened(o);
}

static void own_summary(struct pr_sink *sink, const char *members)
{
    struct own *o = (struct own *)sink;
    if (o->user.line)
        tell_what_happened(o);
    if (o->place.lost)
        pr_event_problem(&o->m->session.events, pr_seconds(o->elapsed),
                         "a sink was too slow: it has not had %lu marks and phases", o->place.lost);
    pr_buf_printf(&o->line, "{%s}", members);
    tell(o, o->user.summary, &o->line);
}

static void own_free(struct own *o)
{
    pr_buf_done(&o->note);
    pr_buf_done(&o->line);
    free(o);
}

static void own_close(struct pr_sink *sink)
{
    struct own *o = (struct own *)sink;
    enter(o);
    if (o->user.close)
        o->user.close(o->data);
    leave(o);
    own_free(o);
}

int proctor_monitor_add_sink(struct proctor_monitor *m, const struct proctor_sink *sink, void *data,
                             struct proctor_error *err)
{
    int r = pr_monitor_check_caller(m, err);
    if (r < 0)
        return r;
    if (m->prepared)
        return pr_error(err, EBUSY, "a sink cannot be added any more: the monitor has begun");
    if (sink->size != sizeof *sink)
        return pr_error(err, EINVAL, "a sink of %zu bytes is none: size is its sizeof", sink->size);
    struct pr_sink **more = realloc(m->sinks, (m->sink_count + 1) * sizeof *more);
    struct own *o = calloc(1, sizeof *o);
    m->sinks = more ? more : m->sinks;
    if (!more || !o) {
        free(o);
        return pr_error(err, ENOMEM, "out of memory");
    }
    *o = (struct own){.user = *sink, .data = data, .m = m};
    o->ops = (struct pr_sink_ops){.write = own_write,
                                  .summary = own_summary,
                                  .notes = own_notes,
                                  .close = own_close,
                                  .devices = sink->wants & PROCTOR_WANT_DEVICES,
                                  .processes = sink->wants & PROCTOR_WANT_PROCESSES};
    o->sink.ops = &o->ops;
    m->sinks[m->sink_count++] = &o->sink;
    return 0;
}

void pr_own_sinks_lend(struct proctor_monitor *m)
{
    m->session.own_sinks = m->sinks;
    m->session.own_sink_count = m->sink_count;
}

void pr_own_sinks_done(struct proctor_monitor *m, bool forked)
{
    bool taken = m->session.own_sink_count == 0 && m->session.own_sinks;
    for (size_t i = 0; i < m->sink_count && !taken; i++) {
        if (forked)
            own_free((struct own *)m->sinks[i]);
        else
            m->sinks[i]->ops->close(m->sinks[i]);
    }
    free(m->sinks);
    m->sinks = NULL;
    m->sink_count = 0;
}
