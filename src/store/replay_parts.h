/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay is made of. Each part keeps its first failure in `code`. */
#pragma once
#include "core/run_file.h"
#include "store/cursor.h"
#include "store/replay.h"

/* --- members ---------------------------------------------------------------------------------- */

struct pr_replayed_member {
    int64_t entity, last; /* the last sample that it is in */
    int64_t written;      /* elapsed at its newest row, ns */
    bool known;           /* there was a row */
    struct pr_member out;
    double value[PROC_METRICS], previous[PROC_METRICS];
};

struct pr_replayed_members {
    struct pr_query *entities; /* by the sample in which they come */
    int64_t next_first;        /* of the entity that the query is on */
    bool more;
    struct pr_cursor rows;
    struct pr_replayed_member *items; /* by entity */
    size_t count, cap;
    int code;
};

void pr_replayed_members_open(struct pr_replayed_members *m, const struct pr_stored *r);
/* Who is there in this sample, into the snapshot. basis: how it is derived. */
void pr_replayed_members_step(struct pr_replayed_members *m, int64_t sample,
                              struct proctor_snapshot *s, const struct pr_basis *basis);
/* NULL where it is not there now. */
const struct pr_replayed_member *pr_replayed_member_find(const struct pr_replayed_members *m,
                                                         int64_t entity);
void pr_replayed_members_close(struct pr_replayed_members *m);

/* --- what comes between samples --------------------------------------------------------------- */

enum pr_stream { STREAM_EVENTS, STREAM_BEGINS, STREAM_ENDS, STREAMS };

struct pr_replayed_notes {
    struct pr_query *query[STREAMS];
    int64_t at[STREAMS]; /* elapsed of the row that it is on; INT64_MAX behind the last */
    int code;
};

void pr_replayed_notes_open(struct pr_replayed_notes *n, const struct pr_stored *r);
/* All up to there. */
void pr_replayed_notes_step(struct pr_replayed_notes *n, int64_t until,
                            const struct pr_replay_to *to, void *of);
void pr_replayed_notes_close(struct pr_replayed_notes *n);

/* --- the roll --------------------------------------------------------------------------------- */

struct pr_replayed_roll {
    struct pr_query *query; /* by their end, those without one last */
    bool more;
    int64_t ended; /* of the row that it is on */
    size_t count;  /* handed over */
    int code;
};

void pr_replayed_roll_open(struct pr_replayed_roll *l, const struct pr_stored *r);
/* Those that had ended by then. Of those of whom nobody could say more, their last sample counts;
 * members may be NULL. */
void pr_replayed_roll_step(struct pr_replayed_roll *l, int64_t until,
                           const struct pr_replayed_members *members,
                           const struct pr_replay_to *to, void *of);
void pr_replayed_roll_close(struct pr_replayed_roll *l);
