/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded run once more, in the order in which it happened: the snapshots that its sinks got,
 * with members and devices, and what came between them. Each table is read by a cursor of its own;
 * memory depends on how many members there are at once, not on how long it lasted. */
#pragma once
#include "core/event.h"
#include "core/roll.h"
#include "core/snapshot.h"
#include "store/stored.h"

struct pr_replayed_phase {
    int64_t id;
    const char *name;
    int64_t start;  /* elapsed, ns */
    int64_t end;    /* the same, where it has ended */
    double seconds; /* NaN where it has not ended */
    int depth;
    const char *data; /* the members of its line, NULL for none */
};

/* Who is told; any may be NULL. What is handed over is borrowed during the call. What happened
 * before a sample was taken comes before it. */
struct pr_replay_to {
    bool members, devices; /* snapshots are to have them */
    void (*sample)(void *of, const struct proctor_snapshot *s);
    void (*event)(void *of, const struct pr_event *e);
    void (*mark)(void *of, int64_t elapsed, const char *name, const char *data);
    void (*begin)(void *of, const struct pr_replayed_phase *phase);
    void (*end)(void *of, const struct pr_replayed_phase *phase);
    /* Processes as they end; those that did not come last. */
    void (*entry)(void *of, const struct pr_roll_entry *e);
};

/* 0 or -errno: what was read up to there has been handed over. A run that is being recorded comes
 * as it is at this moment. */
int pr_replay(const struct pr_stored *r, const struct pr_replay_to *to, void *of,
              struct proctor_error *err);
/* The same of events, marks and phases alone. */
int pr_replay_notes(const struct pr_stored *r, const struct pr_replay_to *to, void *of,
                    struct proctor_error *err);
