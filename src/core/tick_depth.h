/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a member is read at a tick. */
#pragma once
#include "core/session.h"

/* Looks for which it is new: who is changes most. */
#define LOOKS_YOUNG 32

enum pr_depth {
    DEPTH_NONE,
    DEPTH_SIZE,   /* it has not run, but others may have taken memory from it */
    DEPTH_TIMES,  /* in a crowd: stat, which is held of each; its size where that has changed */
    DEPTH_COUNTS, /* times and I/O; its size where that may have changed */
    DEPTH_USE,    /* times, I/O, size */
    DEPTH_ALL,
};

/* Once a tick, before anybody is read: whose turn it is. */
void pr_depth_turns(struct pr_session *s);
/* k: its place in the set. Its clock has been read. */
enum pr_depth pr_depth_of(const struct pr_session *s, const struct pr_tick *t,
                          const struct pr_entity *e, size_t k);
/* Since its use was read. Its clock has been read. */
bool pr_depth_has_run(const struct pr_session *s, const struct pr_entity *e);
/* Its high-water mark may be another one. Its stat has been read. */
bool pr_depth_wants_mark(const struct pr_session *s, const struct pr_tick *t,
                         const struct pr_entity *e);
/* Since when is I/O of all known? Into turns.io_dt; dt: the time that rates of this sample have. */
void pr_depth_time_io(struct pr_session *s, double dt);
bool pr_depth_has_ended(const struct pr_entity *e);
