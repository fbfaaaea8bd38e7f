/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is made by, and what it looks like on a screen. */
#pragma once
#include "core/stats.h"
#include "report/model.h"

/* Room for one more in a list of the model: NULL when memory is out. */
#define LIST_ADD(m, list)                                                                          \
    ((list)->items =                                                                               \
         pr_model_room((m), (list)->items, (list)->count, &(list)->cap, sizeof *(list)->items),    \
     (list)->count < (list)->cap ? &(list)->items[(list)->count++] : NULL)
void *pr_model_room(struct pr_model *m, void *items, size_t count, size_t *cap, size_t size);
/* A text that lives as long as the model; "" when memory is out. */
const char *pr_model_text(struct pr_model *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same of a buffer, which is reset. */
const char *pr_model_keep(struct pr_model *m, struct pr_buf *text);
/* "61.2 GiB"; a share as percent. */
void pr_model_human(struct pr_buf *out, double v, enum pr_unit unit);
/* Words beside what they are of; title begins a section, NULL goes on. All are borrowed. */
void pr_model_say(struct pr_model *m, struct pr_model_pairs *list, const char *title,
                  const char *what, const char *words);

/* Of a peak that the kernel or the account knows of: on no curve. */
#define MODEL_UNSAMPLED "between samples"
/* Of a peak that is of no reading, but of the last one and the change of RSS since. */
#define MODEL_ESTIMATED "peak " SAID_ESTIMATED
/* Of a peak that is summed over parts of the run, not over moments. */
#define MODEL_BOUND "peak at most"

/* The first series of a group, NULL for none. */
const struct pr_model_series *pr_model_find(const struct pr_model *m, enum pr_group group);
/* "in \"eval\"", or "" where no phase is known at that time. */
void pr_model_in_phase(const struct pr_model *m, double at, struct pr_buf *out);
/* A number of the summary, NaN for none; a text into out, which is reset. */
double pr_model_number(const struct pr_model *m, const struct pr_stored *r, const char *path);
/* The kernel's mark of the memory of one process: the job had no less. NaN for unknown. */
double pr_model_mark(const struct pr_model *m, const struct pr_stored *r);

/* Parts, in this order. */
struct pr_roll;
void pr_model_processes(struct pr_model *m, const struct pr_stored *r, const struct pr_roll *roll);
void pr_model_curves(struct pr_model *m, const struct pr_stored *r, struct proctor_error *err,
                     int *ret_code);
void pr_model_stats(struct pr_model *m, const struct pr_stored *r);
void pr_model_tables(struct pr_model *m, const struct pr_stored *r);
void pr_model_sparks(struct pr_model *m, const struct pr_stored *r);
void pr_model_identity(struct pr_model *m, const struct pr_stored *r);
void pr_model_method(struct pr_model *m, const struct pr_stored *r);
void pr_model_rules(struct pr_model *m, const struct pr_stored *r);

/* --- the first screen --------------------------------------------------------------------------
 */

enum pr_stat_kind { FIGURE_MEAN, FIGURE_MAX, FIGURE_MIN, FIGURE_TOTAL };
struct pr_value_of {
    enum pr_group group;
    enum pr_stat_kind stat;
    const char *label;
    enum pr_unit unit;
};
struct pr_tile {
    const char *id, *title;
    enum pr_family family;
    struct pr_value_of values[2], also[2]; /* label NULL: there is none */
    bool limit;                            /* that of the first series */
    const char *absent;                    /* why there may be nothing; it is shown all the same */
    const char *otherwise;                 /* the same, where there is room */
};
struct pr_chart_line {
    enum pr_group group;
    const char *role; /* NULL: there is none */
};
struct pr_chart {
    const char *id, *title, *place, *note, *absent;
    enum pr_unit unit;
    struct pr_chart_line lines[4];
};
struct pr_phase_column {
    const char *title;
    struct pr_value_of value;
};
extern const struct pr_tile pr_tiles[];
extern const size_t pr_tile_count;
extern const struct pr_chart pr_charts[];
extern const size_t pr_chart_count;
extern const struct pr_phase_column pr_phase_columns[];
extern const size_t pr_phase_column_count;
/* Columns of the tables of names and devices: words, then figures, as their rows have them. */
struct pr_model_column {
    const char *key, *title;
    bool words;
    enum pr_unit unit;
    bool memory; /* its title says what memory of a job is: PSS or RSS */
};
const char *pr_column_title(const struct pr_model *m, const struct pr_model_column *c);
extern const struct pr_model_column pr_match_columns[], pr_device_columns[], pr_node_columns[];
extern const size_t pr_match_column_count, pr_device_column_count, pr_node_column_count;
/* NULL where something can be drawn; else why not, "" for a chart that is then left out. */
const char *pr_chart_absent(const struct pr_model *m, const struct pr_chart *c);
/* The text alternative of a chart. */
void pr_chart_text(const struct pr_model *m, const struct pr_chart *c, struct pr_buf *out);
