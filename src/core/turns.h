/* SPDX-License-Identifier: Apache-2.0 */
/* What is not read at each tick: whose turn it is, and what is kept of the only expensive reading,
 * PSS and USS, until the next. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a process. */
struct pr_share {
    int64_t at;         /* boot time of the last reading, 0 for never */
    int64_t stalled_at; /* of the last that held the process up for long */
    int64_t cost;       /* ns of CPU that it took */
    int64_t ran;        /* the process's CPU clock then */
    double pss, uss;    /* what was read */
    double rss;         /* the size then */
};

/* Of all. */
struct pr_turns {
    size_t from, count;  /* members of whom everything is read */
    double owed;         /* parts of a turn, left for the next tick */
    size_t share;        /* the next whose PSS is looked at */
    double due;          /* ns that PSS which is not known may take where no budget is left */
    int64_t rested;      /* boot time: till then nobody needs that, unless memory comes */
    double page_cost;    /* ns that PSS takes for a page, 0 before anything was measured */
    unsigned long sizes; /* ticks in which a size is looked at though nothing tells of another */
    unsigned long idle_sizes; /* the same for one that rests */
    bool crowd;               /* more members than descriptors can be held of */
    bool io_crowd;            /* they were so many at the sample before */
    unsigned long io_left;    /* samples until I/O of all has been read since it was known before */
    double io_time;           /* seconds since then */
    double io_dt;             /* the same where it is known again, else 0; NaN: no time for rates */
    bool again;               /* the second reading of one sample */
    int64_t written;          /* CPU time of the writer without opening outputs, ns */
    int64_t searched;         /* boot time: new members were looked for */
    bool stirred;             /* somebody has run, come or gone */
    bool lost; /* somebody has ended: who has not run may still have another parent */
};
