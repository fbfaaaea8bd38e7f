/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on their way from the thread that samples to the sinks: marks, and phases as they
 * begin and end.
 * A ring of bytes, so that it is bounded and adding never waits for a disk: when a sink is too far
 * behind, the oldest lines are lost to it, and it knows how many. */
#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"

#define NOTES_BYTES (4 * 1024 * 1024) /* got when the first line comes; resident as far as used */

/* NOTE_BEGIN: of a phase; NOTE_PHASE is its end. */
enum pr_note_type { NOTE_EVENT, NOTE_PHASE, NOTE_BEGIN };

struct pr_notes {
    pthread_mutex_t lock; /* guards all below */
    char *ring;
    uint64_t head, tail;           /* bytes added and dropped so far */
    uint64_t head_line, tail_line; /* the same in lines */
    bool wanted;                   /* there is a sink that may ask: set before threads start */
};

/* Where a sink is. All 0 at first. */
struct pr_notes_place {
    uint64_t at, line;
    unsigned long lost; /* lines that were gone before it came to them */
};

struct pr_note {
    enum pr_note_type type;
    int64_t elapsed; /* ns */
};

void pr_notes_init(struct pr_notes *n);
void pr_notes_done(struct pr_notes *n);
/* members: of a JSON object, without its braces. */
void pr_notes_add(struct pr_notes *n, struct pr_note note, const char *members, size_t len);
/* The next line, its members into out, which is reset; false where there is none. */
bool pr_notes_next(struct pr_notes *n, struct pr_notes_place *place, struct pr_note *ret,
                   struct pr_buf *out);
