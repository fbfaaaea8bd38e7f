/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a run to a server from its run file: in a thread of its own while it is recorded, or
 * afterwards (`proctor push`). How far it has come is kept in the file, so that nothing is lost and
 * nothing goes twice. Neither the job nor sampling ever waits for it. */
#pragma once
#include "core/event.h"
#include "core/publishing.h"
#include "core/sink.h"
#include "publish/outlet.h"

struct pr_publisher;

/* Starts the thread. The outlet is the publisher's, also where this fails; events, and what counts
 * us in a process that is watched from inside (NULL for nobody), are borrowed until
 * pr_publisher_finish. 0 or -errno. */
int pr_publisher_start(struct pr_publisher **ret, struct pr_outlet *o, const char *path,
                       struct pr_events *events, struct pr_sink_served *served,
                       struct proctor_error *err);
/* Waits for so long until the run has a place at the server: what it is called there, borrowed
 * until the publisher is freed; NULL where it has none, which it may get later. */
const char *pr_publisher_await(struct pr_publisher *p, double seconds, bool *ret_later);
/* The record is complete and closed, or the run was called off: what is left is to be sent within
 * so many seconds. */
void pr_publisher_hurry(struct pr_publisher *p, double seconds, bool called_off);
/* After that: waits until it is sent or the time is over, says what could not be sent, and what has
 * become of it. Frees the publisher, unless its thread is stuck: then it returns false, and who
 * counts us must stay. */
bool pr_publisher_finish(struct pr_publisher *p, struct pr_publishing *ret);

/* A thread was stuck: it may be in a library, which must not be taken down at the end. */
bool pr_publisher_left_behind(void);

/* A server does not answer, and is asked again for so many seconds. */
typedef void pr_push_wait_fn(const char *kind, const char *why, double seconds);

/* What has become of a push. */
struct pr_push {
    pr_push_wait_fn *waits;     /* set by the caller, called when it has failed twice */
    struct pr_publishing state; /* sent: now */
    bool ended;                 /* the server knows the end */
    char remark[300];           /* what it would not have; "" for nothing */
};

/* Sends what the server has not got yet of a recorded run, without a thread; gives up after so many
 * seconds without success. The outlet is freed. 0 or -errno. */
int pr_publisher_push(struct pr_outlet *o, const char *path, double patience, struct pr_push *ret,
                      struct proctor_error *err);
/* How long to wait after so many failures in a row, in seconds: doubles from 1 to 60, half of that
 * after none, and random is between 0 and 1, so that those who failed together do not come back
 * together. */
double pr_publisher_backoff(unsigned failures, double random);
