/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/handover.h"

#include <errno.h>

#include "core/annotate.h"
#include "util/clock.h"
#include "util/wait.h"

#define WAIT_MOST (10 * NS_PER_S) /* the clock that is waited on stands still in a suspend */

struct pr_asked {
    const struct pr_request *request;
    int64_t at;       /* boot time */
    int answer;       /* as pr_handover_ask has it */
    bool is_answered; /* guarded by the lock, as is the list */
    struct pr_asked *next;
};

void pr_handover_init(struct pr_handover *h)
{
    *h = (struct pr_handover){0};
    pr_wait_init(&h->lock, &h->wake);
    pthread_cond_init(&h->answered, NULL);
    h->end = &h->first;
}

void pr_handover_done(struct pr_handover *h)
{
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->wake);
    pthread_cond_destroy(&h->answered);
}

void pr_handover_open(struct pr_handover *h)
{
    pthread_mutex_lock(&h->lock);
    h->open = true;
    pthread_mutex_unlock(&h->lock);
}

void pr_handover_stop(struct pr_handover *h)
{
    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->lock);
}

/* A timer and an event to poll would take two descriptors of the process that we are in, and more
 * CPU time to wake up. */
bool pr_handover_wait(struct pr_handover *h, int64_t ns)
{
    struct timespec until = pr_wait_until(ns < WAIT_MOST ? ns : WAIT_MOST);
    pthread_mutex_lock(&h->lock);
    while (!h->first && !h->stopping && pthread_cond_timedwait(&h->wake, &h->lock, &until) == 0)
        ;
    bool asked = h->first || h->stopping;
    pthread_mutex_unlock(&h->lock);
    return asked;
}

/* With the lock held, as the next. */
static struct pr_asked *take(struct pr_handover *h)
{
    struct pr_asked *asked = h->first;
    if (asked)
        h->first = asked->next;
    if (!h->first)
        h->end = &h->first;
    return asked;
}

static void answer(struct pr_handover *h, struct pr_asked *asked, int value)
{
    asked->answer = value;
    asked->is_answered = true;
    pthread_cond_broadcast(&h->answered);
}

bool pr_handover_serve(struct pr_handover *h, struct pr_session *s)
{
    struct pr_asked *asked;
    pthread_mutex_lock(&h->lock);
    while ((asked = take(h))) {
        pthread_mutex_unlock(&h->lock);
        bool done = pr_annotate(s, asked->request, asked->at, 0);
        pthread_mutex_lock(&h->lock);
        answer(h, asked, done);
    }
    bool stopping = h->stopping;
    pthread_mutex_unlock(&h->lock);
    if (s->queue)
        pr_queue_nudge(s->queue);
    return !stopping;
}

void pr_handover_close(struct pr_handover *h)
{
    struct pr_asked *asked;
    pthread_mutex_lock(&h->lock);
    h->open = false;
    while ((asked = take(h)))
        answer(h, asked, -ESRCH);
    pthread_mutex_unlock(&h->lock);
}

int pr_handover_ask(struct pr_handover *h, const struct pr_request *r)
{
    struct pr_asked asked = {.request = r, .at = pr_clock_boot(), .answer = -ESRCH};
    pthread_mutex_lock(&h->lock);
    if (h->open) {
        *h->end = &asked;
        h->end = &asked.next;
        pthread_cond_signal(&h->wake);
        while (!asked.is_answered)
            pthread_cond_wait(&h->answered, &h->lock);
    }
    pthread_mutex_unlock(&h->lock);
    return asked.answer;
}
