/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of processes and devices between two samples, so that only changes are
 * written. */
#pragma once
#include <sys/types.h>

#include "core/run_file.h"
#include "util/map.h"

enum record_part { PART_VALUE, PART_RATE };

/* What is remembered of an entity between two samples. */
struct record_slot {
    uint64_t key;
    int64_t id;   /* of its row in entities; 0 for none yet */
    int64_t seen; /* the sample that it was in last */
    int64_t row;  /* the sample of its last row; 0: the next one is written whatever it says */
    int64_t row_at, held;    /* of a core: elapsed then; the sample before where that has no row */
    bool used, fresh, going; /* fresh: its row is not committed; going: that it has gone is not */
    bool bent;               /* of a core: its use has changed since its last row */
    bool asked;              /* what the process was called with has been read */
    pid_t ppid;
    const char *match; /* as the snapshot had it: only compared */
    char name[DEVICE_NAME];
};

/* Those of one table, and their values: those of the last row; of cores, which
 * have two `parts`, those of the sample before, and how much each grew in a second. */
struct record_series {
    struct pr_run_columns columns;
    bool kept[METRIC_COUNT]; /* by column: it was asked for, or something that derives from it */
    struct record_slot *slots;
    size_t count, cap, parts;
    size_t hole; /* no free slot is below */
    double *values;
    struct pr_map by_key;
};

void pr_series_done(struct record_series *f);
/* The one with this key; NULL where there is none. */
struct record_slot *pr_series_find(const struct record_series *f, uint64_t key);
/* A new one; NULL when memory is out. Others may move. */
struct record_slot *pr_series_add(struct record_series *f, uint64_t key);
/* Its values, by column. */
double *pr_series_values(const struct record_series *f, const struct record_slot *slot,
                         enum record_part part);
/* What was written since the last time holds, or nothing of it. */
void pr_series_settle(struct record_series *f, bool committed);
