/* SPDX-License-Identifier: Apache-2.0 */
#include "core/event.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pr_events_init(struct pr_events *e)
{
    memset(e, 0, offsetof(struct pr_events, item)); /* what is not touched costs nothing */
    pthread_mutex_init(&e->lock, NULL);
}

static void add(struct pr_events *e, enum pr_event_type type, double at, double seconds,
                const char *format, va_list args)
{
    struct pr_event event = {.type = type, .at = at, .seconds = seconds};
    vsnprintf(event.text, sizeof event.text, format, args);
    pthread_mutex_lock(&e->lock);
    if (e->count < EVENTS_KEPT - (type == EVENT_PROBLEM ? 0 : EVENTS_FOR_PROBLEMS))
        e->item[e->count++] = event;
    e->total++;
    e->problems += type == EVENT_PROBLEM;
    pthread_mutex_unlock(&e->lock);
    if (type >= EVENT_NOTE && e->say) /* not under the lock: standard error may block */
        e->say(event.text, e->say_data);
}

void pr_event_add(struct pr_events *e, enum pr_event_type type, double at, double seconds,
                  const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(e, type, at, seconds, format, args);
    va_end(args);
}

void pr_event_problem(struct pr_events *e, double at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(e, EVENT_PROBLEM, at, 0, format, args);
    va_end(args);
}

void pr_event_note(struct pr_events *e, double at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(e, EVENT_NOTE, at, 0, format, args);
    va_end(args);
}

bool pr_event_get(struct pr_events *e, size_t number, struct pr_event *ret)
{
    pthread_mutex_lock(&e->lock);
    bool found = number < e->count;
    if (found)
        *ret = e->item[number];
    pthread_mutex_unlock(&e->lock);
    return found;
}

const char *pr_event_type_name(enum pr_event_type type)
{
    static const char *const names[] = {"gap", "clock",  "budget", "oom",
                                        "gpu", "socket", "note",   "problem"};
    return names[type];
}
