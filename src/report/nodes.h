/* SPDX-License-Identifier: Apache-2.0 */
/* One job on several nodes: a model of all of it, made of those of the nodes. */
#pragma once
#include "report/model_parts.h"

#define NODES_MOST  128 /* of one report */
#define NODES_SHOWN 16  /* with curves of their own; all are in the table */

/* Files of one run id are nodes of one job, unless one is a repeat of another: the same node of
 * the same machine at another time, or the same file. */
bool pr_nodes_are_one(struct pr_stored *const *runs, size_t count);
/* Sorts the nodes, calls them by what tells them apart, and makes the job of them, which borrows
 * from them; end it with pr_model_done. At most `bytes` of series. 0 or -errno. */
int pr_nodes_model(struct pr_model *job, struct pr_model **nodes, size_t count, size_t bytes,
                   struct proctor_error *err);

/* What it is made of. */
struct pr_nodes {
    struct pr_model *job, *const *items;
    const char *const *labels; /* what nodes are called */
    size_t count;
    double apart; /* seconds between the begin of the first and of the last */
};
/* Its curves: over one time base by the wall clocks of the nodes, each by itself, and summed at
 * each moment. */
void pr_nodes_curves(const struct pr_nodes *n);
/* Nodes, names, devices, events, processes, phases, and how it was measured. */
void pr_nodes_tables(const struct pr_nodes *n);
/* When a node ended: wall time. */
double pr_nodes_end(const struct pr_model *m);

/* --- what a model of a run has in common with it ------------------------------------------------
 */

/* What the points of curves are, and what that is called where it is said. */
#define MODEL_POINTS_SAID "curves"
const char *pr_model_points(struct pr_model *m);
/* Fewer points of curves: at most `bytes` of them. */
void pr_model_shrink(struct pr_model *m, size_t bytes);
/* Figures of a part of the run, by its buckets; and such that do not contradict each other. */
struct pr_figures pr_model_between(const struct pr_model *m, const struct pr_model_series *s,
                                   double begin, double end);
void pr_figures_agree(struct pr_figures *f);
/* Its integral says something. */
bool pr_series_has_total(const struct pr_model_series *s);
/* An event in its place by time; beyond a number of them only trouble is kept. */
void pr_model_add_event(struct pr_model *m, double at, const char *kind, enum pr_severity severity,
                        const char *text);
/* Worst first, and no more than a report shows. */
void pr_model_sort_findings(struct pr_model *m);
