/* SPDX-License-Identifier: Apache-2.0 */
/* Another tool's files: tables with a row per column. A dialect is one file in dialects/ with its
 * tables, and a line in core/dialects.def. What a table needs to know of the rows before it (the
 * last value of a counter, means and peaks) is kept for it in dialect.c. */
#pragma once
#include "core/dialect.h"
#include "core/sink.h"
#include "core/stats.h"

/* What a value is taken from. */
struct pr_row {
    const struct proctor_snapshot *sample;
    const struct pr_member *member; /* of a row per process, else NULL */
    const struct pr_device *gpu;    /* of a row per GPU, else NULL */
    int index;                      /* which GPU it is, from 0 */
    const struct pr_stats *stats;   /* of a row at the end: the whole run, else NULL */
    const struct pr_sink_job *job;
    bool ended; /* the job has: its gauges are absent for good */
};

enum pr_take {
    TAKE_NOW,   /* as it is in the sample */
    TAKE_DELTA, /* growth since the row before */
    TAKE_SHARE, /* growth as a share of the growth of `share_of` */
    TAKE_PEAK,  /* these three of the whole run */
    TAKE_MEAN,
    TAKE_TOTAL,
    TAKE_ROWS_MEAN, /* these of the rows of another table, each as it would be written there */
    TAKE_ROWS_MAX,
};

enum pr_shape {
    SHAPE_FLOAT, /* a float of Python's, rounded to so many decimals: 0.25, 3.0, 1e-06 */
    SHAPE_WHOLE, /* a whole number, what is behind the point cut off */
    SHAPE_FIXED, /* always so many decimals */
    SHAPE_CUT,   /* the same, and what is behind them cut off */
    SHAPE_TEXT,
};
#define DECIMALS_ALL (-1)

struct pr_column {
    const char *name; /* theirs */
    /* Ours: a metric, or a function that makes a number, or adds a text and says whether it did. */
    enum pr_metric_id metric; /* with neither function below */
    double (*number)(const struct pr_row *row);
    bool (*text)(const struct pr_row *row, struct pr_buf *out);
    enum pr_take take;
    double (*share_of)(const struct pr_row *row);
    const struct pr_table *rows; /* TAKE_ROWS_: the table */
    int column;                  /* and which of its columns */
    double times, per;           /* theirs is ours times this, divided by that; 0 for 1 */
    enum pr_shape shape;
    int decimals;
    int width;               /* padded to so many characters with blanks before it */
    const char *absent;      /* what stands there when it is not known; NULL: as the table has it */
    const char *zero;        /* what stands for 0; NULL: the number */
    const char *no_gpu;      /* what stands there on a machine without a GPU; NULL: absent */
    const char *first;       /* where it is not known yet in the first sample; NULL: absent */
    const char *ended;       /* where it is not known any more because the job has ended */
    const char *if_positive; /* only where the column of this name is above 0 */
    bool needed, from_second; /* no row without it; absent in the first row */
    const char *ours;         /* what a function does, for people */
    const char *note;         /* where theirs is wrong or different: what ours is instead */
};

enum pr_each { EACH_SAMPLE, EACH_PROCESS, EACH_GPU, EACH_RUN };
enum pr_layout {
    LAYOUT_ROWS,     /* values with a separator between them */
    LAYOUT_OBJECT,   /* a JSON object */
    LAYOUT_LINES,    /* a line for each column: its name, `separator`, its value */
    LAYOUT_TEMPLATE, /* `title` with %X for the value of the column X */
};
enum pr_quoting { QUOTE_NEVER, QUOTE_WHERE_NEEDED, QUOTE_TEXT };

struct pr_table {
    const char *name;
    const char *file; /* what it is usually called */
    enum pr_each each;
    enum pr_layout layout;
    bool json; /* it is for --jsonl, not for --csv */
    const char *separator, *newline, *absent;
    enum pr_quoting quoting;
    bool header;             /* the names in the first line */
    const char *title;       /* verbatim before everything; or the template */
    const char *title_from;  /* the variable that replaces the template */
    const char *line_before; /* LAYOUT_LINES: at the start of each */
    /* Adds what comes before the row; NULL for nothing. */
    void (*preface)(const struct pr_row *row, struct pr_buf *out);
    const struct pr_column *columns;
    int column_count;
    const char *about;
};
#define COLUMNS(list) .columns = (list), .column_count = (int)(sizeof(list) / sizeof *(list))

struct pr_dialect {
    const char *about;                    /* what it is of, and which version */
    const struct pr_table *const *tables; /* NULL behind the last; the first is the default */
};

/* The dialect of this name, or NULL. */
const struct pr_dialect *pr_dialect_find(const char *name);
