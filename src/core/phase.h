/* SPDX-License-Identifier: Apache-2.0 */
/* Phases of a run, and marks in it. A phase has statistics of its own, computed while it lasts; of
 * one that has ended only what the summary says is kept. All of it is bounded: a phase beyond
 * PHASES_KEPT is added to the others of its name, and of marks the first are kept.
 *
 * Phases nest. Ending one ends those inside it, but for those that last as long as a process does:
 * they end with it. */
#pragma once
#include "core/notes.h"
#include "core/request.h"
#include "core/select.h"
#include "core/stats.h"
#include "util/json.h"
#include "util/map.h"

#define PHASES_OPEN  32
#define PHASES_KEPT  1000
#define PHASES_NAMES 1000 /* beyond PHASES_KEPT; the last of them stands for all others */
#define MARKS_KEPT   48

struct pr_phase {
    char name[REQUEST_NAME + 1];
    double start, seconds; /* elapsed when it was asked for; how long, all together */
    double sampled;        /* of that, the time between its first and last sample */
    unsigned depth;        /* how many others it was begun inside of */
    unsigned long instances;
    bool exact;           /* samples were taken at its begin and end; else the nearest ones count */
    bool left_open;       /* it ended with the run */
    struct pr_stat *stat; /* a row for each metric, see pr_phases.metrics */
    double *quantiles;    /* of those that have any; NULL where it was folded with others */
};

/* Was this metric known in more samples than those at both ends? Else its peak is that of a moment
 * at which nothing was done yet, or no longer. */
bool pr_phase_saw(const struct pr_phase *phase, enum pr_metric_id id);

struct pr_phase_open;

struct pr_mark_kept {
    double at;
    char *name, *data; /* data may be NULL */
};

/* Samples that may be taken for phases now, and the time up to which that has been counted. */
struct pr_phase_tokens {
    double left;
    int64_t earned;
    bool begun;
};
/* May one be taken at this time, in ns of any clock? Some twenty in a second at the most. */
bool pr_phase_tokens_take(struct pr_phase_tokens *t, int64_t now);

struct pr_phases {
    const struct pr_select *select; /* borrowed */
    const struct pr_limits *limits; /* borrowed */
    int metrics; /* how many have statistics, from the first: those of jobs, or all */
    struct pr_phase_open *open[PHASES_OPEN];
    size_t open_count;
    struct pr_sketches *spare;      /* of one that has ended, for the next; may be NULL */
    struct pr_phase *kept, *folded; /* one by one, then by name */
    size_t kept_count, kept_cap, folded_count, folded_cap;
    struct pr_map by_name; /* hash of a name: its place in folded plus 1 */
    struct pr_mark_kept marks[MARKS_KEPT];
    size_t marks_kept;
    unsigned long ended, marked, refused; /* refused: garbage, and requests that make no sense */
    double latest[METRIC_COUNT]; /* what counters and high-water marks were when last known */
    unsigned char latest_mark[METRIC_COUNT];
    double latest_at;   /* elapsed at the last sample */
    bool bound, ending; /* the sample taken now is of a begin or an end; of an end */
    struct pr_phase_tokens tokens;
    struct pr_notes notes;
};

void pr_phases_init(struct pr_phases *p, const struct pr_select *select,
                    const struct pr_limits *limits, bool machine);
/* close_notes: false where somebody may still read them. */
void pr_phases_done(struct pr_phases *p, bool close_notes);
/* Each sample counts for all phases that are open. */
void pr_phases_add(struct pr_phases *p, const struct proctor_snapshot *s);
/* A phase begins at so many seconds. owner: the process that it ends with, as a number that the
 * caller knows, 0 for none. exact: s was taken for it. 0 or -errno. */
int pr_phases_begin(struct pr_phases *p, const char *name, double at, int owner, bool exact,
                    const struct proctor_snapshot *s);
/* Is the latest of this name open? */
bool pr_phases_is_open(const struct pr_phases *p, const char *name);
bool pr_phases_is_owned(const struct pr_phases *p, int owner);
/* It ends, and those in it. last: the run's last sample is still to come, and counts. */
void pr_phases_end(struct pr_phases *p, const char *name, double at, bool exact, bool last);
/* The phase of a process that has ended. */
void pr_phases_end_owner(struct pr_phases *p, int owner, double at, bool exact, bool last);
/* The run is over: what is open ends with it. */
void pr_phases_finish(struct pr_phases *p, double at);
void pr_phases_mark(struct pr_phases *p, const char *name, const char *data, double at);
/* The statistics of one that has ended, into ret, which is large. */
void pr_phase_stats(const struct pr_phases *p, const struct pr_phase *phase, struct pr_stats *ret);
/* Members of a JSON object, without its braces. */
void pr_phase_put_mark(struct pr_buf *out, const char *name, const char *data);
void pr_phase_put(struct pr_json *j, const struct pr_phases *p, const struct pr_phase *phase);
