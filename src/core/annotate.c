/* SPDX-License-Identifier: Apache-2.0 */
#include "core/annotate.h"

#include "util/clock.h"

/* A sample for the begin or end of a phase, where that is not too often. When the job is gone the
 * last one is still to come. */
static bool take_sample(struct pr_session *s, int64_t now, bool ending)
{
    struct pr_phases *p = &s->phases;
    if (s->gone || !pr_phase_tokens_take(&p->tokens, now))
        return s->gone;
    p->bound = true;
    p->ending = ending;
    pr_session_tick(s);
    p->bound = p->ending = false;
    return true;
}

void pr_annotate_refuse(struct pr_session *s, const char *why)
{
    if (s->phases.refused++ == 0)
        pr_event_add(&s->events, EVENT_SOCKET, pr_session_elapsed(s, pr_clock_boot()), 0,
                     "%s; this and others like it are ignored", why);
}

static bool begin(struct pr_session *s, const struct pr_request *r, int64_t now, int owner)
{
    if (s->phases.open_count == PHASES_OPEN) {
        pr_annotate_refuse(s, "too many phases are open at once");
        return false;
    }
    bool exact = take_sample(s, now, false);
    int code =
        pr_phases_begin(&s->phases, r->name, pr_session_elapsed(s, now), owner, exact, &s->now);
    if (code < 0)
        pr_annotate_refuse(s, "there is no memory for a phase");
    return code == 0;
}

static void say_folded(struct pr_session *s, unsigned long before)
{
    if (before < PHASES_KEPT && s->phases.ended >= PHASES_KEPT)
        pr_event_add(&s->events, EVENT_SOCKET, pr_session_elapsed(s, pr_clock_boot()), 0,
                     "%d phases have ended; others are added up by name", PHASES_KEPT);
}

static bool end(struct pr_session *s, const struct pr_request *r, int64_t now)
{
    unsigned long before = s->phases.ended;
    if (!pr_phases_is_open(&s->phases, r->name)) {
        pr_annotate_refuse(s, "a phase was to end that is not open");
        return false;
    }
    bool exact = take_sample(s, now, true);
    pr_phases_end(&s->phases, r->name, pr_session_elapsed(s, now), exact, s->gone);
    say_folded(s, before);
    return true;
}

void pr_annotate_gone(struct pr_session *s, int owner, int64_t now)
{
    unsigned long before = s->phases.ended;
    if (!pr_phases_is_owned(&s->phases, owner))
        return; /* somebody has ended it */
    bool exact = take_sample(s, now, true);
    pr_phases_end_owner(&s->phases, owner, pr_session_elapsed(s, now), exact, s->gone);
    say_folded(s, before);
}

bool pr_annotate(struct pr_session *s, const struct pr_request *r, int64_t now, int owner)
{
    switch (r->verb) {
    case REQUEST_BEGIN:
        return begin(s, r, now, 0);
    case REQUEST_DURING:
        return begin(s, r, now, owner);
    case REQUEST_END:
        return end(s, r, now);
    case REQUEST_MARK:
        pr_phases_mark(&s->phases, r->name, r->data, pr_session_elapsed(s, now));
        return true;
    }
    return false;
}
