/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay is made of. Each part keeps its first failure in `code`. */
#pragma once
#include "core/match.h"
#include "core/run_file.h"
#include "store/cursor.h"
#include "store/replay.h"

/* --- members ---------------------------------------------------------------------------------- */

struct pr_replayed_member {
    int64_t entity, last; /* the last sample that it is in */
    int64_t written;      /* elapsed at its newest row, ns */
    bool known;           /* there was a row */
    bool told;            /* it has been in a snapshot */
    struct pr_member out;
    double value[PROC_METRICS], previous[PROC_METRICS];
};

struct pr_replayed_members {
    const struct pr_stored *stored;
    char *rules[MATCHES_MOST]; /* of --match, as members belong to them: snapshots point there */
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

/* --- devices ---------------------------------------------------------------------------------- */

/* A row of a core: between two of them its counters lie on a line. */
struct pr_core_row {
    int64_t sample, elapsed;
    double value[DEVICE_VALUES];
};

struct pr_replayed_device {
    int64_t entity, first, last;
    struct pr_device out;
    char model[96], uuid[96];
    bool known;
    double previous[DEVICE_VALUES];
    struct pr_core_row *ahead; /* of a core: the row before and those to come */
    size_t ahead_count, ahead_cap;
};

struct pr_replayed_devices {
    struct pr_replayed_device *items; /* by entity: all that there ever were */
    size_t count;
    struct pr_cursor rows[DEVICE_KINDS];
    int code;
};

void pr_replayed_devices_open(struct pr_replayed_devices *d, const struct pr_stored *r);
/* Those that were read for this sample, into the snapshot. machine: it was, not only its GPUs. */
void pr_replayed_devices_step(struct pr_replayed_devices *d, int64_t sample, bool machine,
                              struct proctor_snapshot *s);
void pr_replayed_devices_close(struct pr_replayed_devices *d);

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
                           const struct pr_replayed_members *members, const struct pr_replay_to *to,
                           void *of);
void pr_replayed_roll_close(struct pr_replayed_roll *l);
