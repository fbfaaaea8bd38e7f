/* SPDX-License-Identifier: Apache-2.0 */
/* All that a report can say of a run, without any format: doc/report-model.md has its parts. */
#pragma once
#include "core/error.h"
#include "report/curves.h"
#include "report/model_series.h"
#include "report/rules.h"
#include "store/stored.h"

struct pr_model_finding {
    const char *id, *text, *more;
    enum pr_severity severity;
    double at;
};
struct pr_model_phase {
    const char *name;
    double begin, end;
    int level, parent, count;
    bool exact;
    struct pr_figures *stats; /* by series */
};
struct pr_model_event {
    double at;
    const char *kind, *text;
    enum pr_severity severity;
};
#define MODEL_PROCESSES 200
#define MODEL_POINTS    60
struct pr_model_process {
    int pid, parent;                   /* parent: index, -1 for none */
    const char *name, *command, *exit; /* NULL: not known */
    int64_t started;                   /* wall time, ns */
    double begin, end, cpu, peak, read, written;
    double *spark; /* MODEL_POINTS of cores over the run, or NULL */
};
/* Words beside what they are of; a title begins a section. */
struct pr_model_words {
    const char *title, *what, *words;
};
struct pr_model_pairs {
    struct pr_model_words *items;
    size_t count, cap;
};
/* A row of a table: texts, then numbers, in the order of its columns. */
#define MODEL_CELLS 8
struct pr_model_row {
    const char *text[3];
    double value[MODEL_CELLS];
};

#define LIST(type)                                                                                 \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count, cap;                                                                         \
    }

struct pr_model {
    /* NULL: there is none */
    const char *id, *name, *command, *cwd, *host, *node, *signal, *verdict;
    enum pr_severity severity;
    double began, duration;
    int exit_code;
    bool machine; /* not a job but a whole machine */
    bool rss;     /* memory is RSS, whatever else is known */
    int pss;      /* then: the curve of PSS, which is no series; -1 for none */
    LIST(const char *) argv;
    struct pr_model_pairs labels, measured, facts;
    struct pr_curves curves;
    LIST(struct pr_model_series) series;
    LIST(struct pr_model_finding) findings;
    LIST(struct pr_model_phase) phases;
    LIST(struct pr_model_event) events;
    LIST(struct pr_model_process) processes;
    LIST(struct pr_model_row) matches, devices;
    LIST(struct pr_model_row) nodes; /* of a job on several */
    double seen;                     /* processes */
    size_t happened; /* events, of which there are fewer in the list where they are many */
    const char *processes_note;
    struct pr_buf summary; /* JSON */
    LIST(char *) texts;    /* that all the others borrow */
    bool failed;           /* out of memory */
};

#define MODEL_BYTES 500000 /* of series, of all the runs of one report together */

/* The model of a recorded run, also of one that is still being recorded; end it with
 * pr_model_done, whatever comes back. At most `bytes` of series. 0 or -errno. */
int pr_model_read(struct pr_model *m, const struct pr_stored *r, size_t bytes,
                  struct proctor_error *err);
/* The same with RSS as its memory, to stand beside one of which PSS is not known. */
int pr_model_read_rss(struct pr_model *m, const struct pr_stored *r, size_t bytes,
                      struct proctor_error *err);
void pr_model_done(struct pr_model *m);

/* "a.json" of one or more runs; the same within the page. */
void pr_model_json(struct pr_buf *out, const struct pr_model *const *runs, size_t count);
/* -ENOTSUP where this build has no page. */
int pr_model_html_ready(struct proctor_error *err);
int pr_model_html(struct pr_buf *out, const struct pr_model *const *runs, size_t count,
                  struct proctor_error *err);
/* Both with a comparison of the runs, as JSON. */
void pr_model_json_compared(struct pr_buf *out, const struct pr_model *const *runs, size_t count,
                            const char *comparison);
int pr_model_html_compared(struct pr_buf *out, const struct pr_model *const *runs, size_t count,
                           const char *comparison, struct proctor_error *err);
/* The page of one run. */
int pr_model_page(struct pr_buf *out, const struct pr_stored *r, struct proctor_error *err);
