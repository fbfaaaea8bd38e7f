/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/handover.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/annotate.h"
#include "util/clock.h"

struct pr_asked {
    const struct pr_request *request;
    int64_t at;       /* boot time */
    int answer;       /* as pr_handover_ask has it */
    bool is_answered; /* guarded by the lock, as is the list */
    struct pr_asked *next;
};

void pr_handover_init(struct pr_handover *h)
{
    *h = (struct pr_handover){.wake = -1};
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->answered, NULL);
    h->end = &h->first;
}

void pr_handover_unopen(struct pr_handover *h)
{
    if (h->wake >= 0)
        close(h->wake);
    h->wake = -1;
}

void pr_handover_done(struct pr_handover *h)
{
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->answered);
    pr_handover_unopen(h);
}

int pr_handover_open(struct pr_handover *h)
{
    int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0)
        return -errno;
    pthread_mutex_lock(&h->lock);
    h->wake = wake;
    h->open = true;
    pthread_mutex_unlock(&h->lock);
    return 0;
}

void pr_handover_stop(struct pr_handover *h)
{
    pthread_mutex_lock(&h->lock);
    h->stopping = true;
    eventfd_write(h->wake, 1);
    pthread_mutex_unlock(&h->lock);
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
    eventfd_t times;
    eventfd_read(h->wake, &times); /* before looking: who comes later wakes us again */
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
        eventfd_write(h->wake, 1);
        while (!asked.is_answered)
            pthread_cond_wait(&h->answered, &h->lock);
    }
    pthread_mutex_unlock(&h->lock);
    return asked.answer;
}
