/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for people: labels, figures, small curves; fitted to the terminal where there is one. */
#pragma once
#include "report/summary.h"

struct pr_page {
    struct pr_buf *out;
    struct pr_session *s;
    const struct pr_facts *facts;
    struct pr_look look;
    size_t line; /* where the present line begins */
};

/* The name of the line that begins. */
void pr_page_label(struct pr_page *p, const char *name);
/* Ends it, folded at blanks where the terminal is not wide enough. */
void pr_page_end(struct pr_page *p);
/* Terminal colours from here on; "0" ends them. */
void pr_page_paint(struct pr_page *p, const char *code);
void pr_page_human(struct pr_page *p, double v, enum pr_unit unit);
/* before, the figure in bytes, behind. */
void pr_page_bytes(struct pr_page *p, const char *before, double v, const char *behind);
/* What stands behind a peak of memory: which it is, and whether it was estimated. */
const char *pr_page_memory(const struct pr_stat *metrics, bool pss);
/* A curve at the end of the line, where there is room for it. */
void pr_page_curve(struct pr_page *p, const struct pr_spark *k, const char *code);

/* One character of a curve, as high as this share of it (0 to 1); plain where there is no UTF-8. */
const char *pr_page_level(const struct pr_page *p, double share);

/* Several figures of the statistics in a line; those that are absent are left out. */
struct pr_page_item {
    const char *before;
    enum pr_metric_id id;
    bool peak; /* else the total, or the last value */
    const char *behind;
};
/* False where all are absent: then there is no line. */
bool pr_page_items(struct pr_page *p, const char *name, const struct pr_page_item *items,
                   size_t count);

/* The lines of a machine (summary_machine.c). */
void pr_page_machine(struct pr_page *p);
/* The line of the phases that took longest, where there are any (summary_phases.c). */
void pr_page_phases(struct pr_page *p);
/* The line of the job's cgroup, where there is anything to say. */
void pr_page_cgroup(struct pr_page *p);
/* The lines of GPUs (summary_gpu.c), where there are any. */
void pr_page_gpu(struct pr_page *p);
