/* SPDX-License-Identifier: Apache-2.0 */
/* From any thread to the one that samples, which alone may touch the session: requests wait in a
 * list, and those who made them for the answer. */
#pragma once
#include <pthread.h>
#include <stdbool.h>

#include "core/request.h"
#include "core/session.h"

struct pr_asked;

struct pr_handover {
    pthread_mutex_t lock;
    pthread_cond_t wake, answered; /* of the thread; of those who ask */
    struct pr_asked *first, **end; /* in the order in which they came */
    bool open;                     /* there is a thread that serves */
    bool stopping;                 /* it is to end */
};

void pr_handover_init(struct pr_handover *h);
/* Not in a forked child: who was waiting in another thread is not there to leave. */
void pr_handover_done(struct pr_handover *h);
/* From here on who asks waits for the thread that is about to start. */
void pr_handover_open(struct pr_handover *h);
/* Tells the serving thread to stop. */
void pr_handover_stop(struct pr_handover *h);
/* Waits until somebody asks or it is to end, or for this many ns at the most. True for the former.
 */
bool pr_handover_wait(struct pr_handover *h, int64_t ns);
/* Does what is waiting. False when it is time to stop. */
bool pr_handover_serve(struct pr_handover *h, struct pr_session *s);
/* Nobody serves any more: who waits is told so. */
void pr_handover_close(struct pr_handover *h);
/* Has it done by the serving thread, and waits: the caller is another one. 1 done, 0 refused;
 * -ESRCH where nobody serves. */
int pr_handover_ask(struct pr_handover *h, const struct pr_request *r);
