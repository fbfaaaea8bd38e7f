/* SPDX-License-Identifier: Apache-2.0 */
/* Between the thread that samples and the one that writes: a ring of copies. Pushing never waits
 * for a disk; when the ring is full the snapshot is dropped, counted and said. */
#pragma once
#include "core/sink.h"

struct pr_queue;

/* Starts the writer's thread over these sinks, which become its own. NULL when that fails. */
struct pr_queue *pr_queue_new(struct pr_sink **sinks, size_t count, struct pr_events *events);
void pr_queue_push(struct pr_queue *q, const struct proctor_snapshot *snapshot);
/* There are new notes: the sinks need not wait for the next snapshot to write them. */
void pr_queue_nudge(struct pr_queue *q);
/* What the sinks get as the summary; it must live until the queue is finished. */
void pr_queue_summary(struct pr_queue *q, const char *members);
/* Writes what is left, closes the sinks, ends the thread; waits `seconds` at most. `at`: the time
 * of what is said about it. False when the thread is stuck in a write: then it, its memory and the
 * events must be left alone. */
bool pr_queue_finish(struct pr_queue *q, double seconds, double at);
/* CPU time of the writer's thread so far, ns. */
int64_t pr_queue_cpu(struct pr_queue *q);
/* What of it went into the first snapshot, for which outputs are opened and libraries loaded; 0
 * before that is written. */
int64_t pr_queue_opening(struct pr_queue *q);
/* Forgets the queue in a forked child, where its thread does not exist. */
void pr_queue_abandon(struct pr_queue *q);
