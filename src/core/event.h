/* SPDX-License-Identifier: Apache-2.0 */
/* What happened besides samples: gaps, steps of the clock, trouble with recording. Any thread may
 * add; what is said to the user is said once, by whoever owns the session. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTS_KEPT         64
#define EVENTS_FOR_PROBLEMS 16 /* of those, so that nothing crowds trouble out */

enum pr_event_type {
    EVENT_GAP,
    EVENT_CLOCK,
    EVENT_BUDGET,
    EVENT_OOM,
    EVENT_GPU,
    EVENT_SOCKET,
    EVENT_NOTE,
    EVENT_PROBLEM
};

struct pr_event {
    enum pr_event_type type;
    double at, seconds; /* elapsed; how long, 0 for an instant */
    char text[400];
};

typedef void pr_say_fn(const char *text, void *data);

struct pr_events {
    pthread_mutex_t lock; /* guards all below */
    size_t count, total;  /* kept, and how many there were */
    unsigned problems;
    pr_say_fn *say; /* set before threads start; NULL says nothing */
    void *say_data;
    struct pr_event item[EVENTS_KEPT]; /* `count` of them are something */
};

void pr_events_init(struct pr_events *e);
void pr_event_add(struct pr_events *e, enum pr_event_type type, double at, double seconds,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Trouble with recording: an event, said at once. Callers see to it that each cause comes once. */
void pr_event_problem(struct pr_events *e, double at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Worth to be known, but no trouble: said at once, too. */
void pr_event_note(struct pr_events *e, double at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The event with this number, from 0; false where there is none, or none yet. */
bool pr_event_get(struct pr_events *e, size_t number, struct pr_event *ret);
const char *pr_event_type_name(enum pr_event_type type);
