/* SPDX-License-Identifier: Apache-2.0 */
/* Runs beside each other: a baseline, and runs of the present state, which are repeats of each
 * other where there are several. */
#pragma once
#include "core/error.h"
#include "core/metric.h"
#include "report/model.h"
#include "store/stored.h"

enum pr_compare_stat { OF_TOTAL, OF_PEAK, OF_MEAN, OF_MIN, OF_LAST, COMPARE_STATS };
#define METRIC_DURATION METRIC_COUNT /* no metric, but compared as one */

/* What a run used, as a whole or in a phase. */
struct pr_used {
    char *phase; /* NULL: the whole */
    double begin, seconds;
    double value[METRIC_COUNT][COMPARE_STATS];
    bool few[METRIC_COUNT];       /* known in few samples: a peak may have been missed */
    bool estimated[METRIC_COUNT]; /* not of readings alone; says nothing of gates */
};

struct pr_case {
    char *id, *name, *host, *command, *ending;
    bool good, machine;    /* it ended well; it is of a machine, not of a job */
    struct pr_used *parts; /* the whole comes first */
    size_t count;
};

struct pr_side {
    struct pr_case *items;
    size_t count, cap;
    bool filed; /* of a baseline file: there are no curves */
};

/* One figure of a run: "mem.pss.peak". */
struct pr_figure {
    enum pr_metric_id id;
    enum pr_compare_stat stat;
};

/* A condition of --fail-if, as it was written and as it came out. */
struct pr_gate {
    const char *text;
    struct pr_figure of;
    char op[3];
    double threshold;       /* a share where relative, else in the metric's unit */
    bool relative, against; /* of the baseline, more or less than it; both: by percent */
    bool holds;
    double limit;             /* that the value was compared with */
    struct proctor_error why; /* with a message: it cannot be told */
};

struct pr_row {
    const char *phase; /* NULL: of the whole run */
    struct pr_figure of;
    double median[2], least[2]; /* of the baseline, of the runs; NaN for unknown */
    size_t known[2];
    double p; /* of the rank test; NaN where there are too few */
    bool can_tell, beyond, few, estimated;
    enum pr_severity severity;
};

struct pr_comparison {
    struct pr_side side[2]; /* baseline, runs */
    LIST(struct pr_gate) gates;
    LIST(struct pr_row) rows;
    const char *aligned; /* the phase that is at the same time in all; NULL: the starts */
    bool allow_failed;   /* conditions take runs that did not end well */
    bool failed;         /* out of memory */
};

void pr_comparison_done(struct pr_comparison *c);
/* Adds a recorded run; what is in a baseline file. 0 or -errno. db: any, for its JSON. */
int pr_side_add_run(struct pr_side *side, const struct pr_stored *r, struct proctor_error *err);
int pr_side_add_file(struct pr_side *side, struct pr_db *db, const char *path,
                     struct proctor_error *err);
/* What --save-baseline keeps. */
void pr_side_save(struct pr_buf *out, const struct pr_side *side);
/* NULL where the run has no such phase; phase NULL: the whole. */
const struct pr_used *pr_case_part(const struct pr_case *c, const char *phase);
double pr_case_value(const struct pr_case *c, const char *phase, struct pr_figure of);

/* "mem.pss.peak", "duration"; the unit of the figure. */
void pr_figure_name(struct pr_buf *out, struct pr_figure of);
const char *pr_figure_stat(struct pr_figure of);
enum pr_unit pr_figure_unit(struct pr_figure of);

/* -EINVAL where text is no condition. It is borrowed. */
int pr_gate_parse(struct pr_gate *g, const char *text, struct proctor_error *err);
/* Sides and gates are there: rows are made, gates decided. by_phase: aligned by the first phase
 * that all have, with rows for each that they have in common. -ENOENT where there is no such
 * phase. */
int pr_compare(struct pr_comparison *c, bool by_phase, struct proctor_error *err);

/* Why a run is not one to rely on; false where it is. */
bool pr_case_failed(const struct pr_case *k, struct proctor_error *err);
/* The order in a report: the first of the baseline, where there are curves of it, the runs, and the
 * rest of the baseline. False behind the last. */
bool pr_comparison_nth(const struct pr_comparison *c, size_t n, int *ret_side, size_t *ret_at);

/* For people; as Markdown; for programs; the part of a report's model, of which the baseline is run
 * 0 where it is a run. */
void pr_compare_text(struct pr_buf *out, const struct pr_comparison *c);
void pr_compare_markdown(struct pr_buf *out, const struct pr_comparison *c);
void pr_compare_json(struct pr_buf *out, const struct pr_comparison *c);
void pr_compare_model(struct pr_buf *out, const struct pr_comparison *c);
/* What came out becomes the first finding of a run. */
void pr_compare_finding(struct pr_model *m, const struct pr_comparison *c);
/* One sentence: what was compared with what, and what came out. */
void pr_gate_words(struct pr_buf *out, const struct pr_comparison *c, const struct pr_gate *g);
