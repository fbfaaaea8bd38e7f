/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes have in lists and tables, in those of their job; and how it all was put together. */
#include <math.h>
#include <stdlib.h>

#include "report/nodes.h"

static double total(const struct pr_model *m, enum pr_group group)
{
    const struct pr_model_series *s = pr_model_find(m, group);
    return s ? s->stats.total : NAN;
}

static void node_row(const struct pr_nodes *n, size_t i)
{
    const struct pr_model *m = n->items[i];
    const struct pr_model_series *memory = pr_model_find(m, GROUP_MEMORY);
    struct pr_model_row *to = LIST_ADD(n->job, &n->job->nodes);
    if (to)
        *to = (struct pr_model_row){{n->labels[i], m->host, m->verdict},
                                    {m->began - n->job->began, m->duration, total(m, GROUP_CPU),
                                     memory ? memory->stats.max : NAN, total(m, GROUP_READ),
                                     total(m, GROUP_WRITE), total(m, GROUP_RECEIVE),
                                     total(m, GROUP_SEND)}};
}

static void name_row(const struct pr_nodes *n, size_t i, struct pr_model_row *to,
                     const struct pr_model_row *from)
{
    if (!to)
        return;
    *to = *from;
    to->text[0] = pr_model_text(n->job, "%s: %s", n->labels[i], from->text[0]);
}

static void copy_rows(const struct pr_nodes *n, size_t i)
{
    const struct pr_model *m = n->items[i];
    for (size_t k = 0; k < m->matches.count; k++)
        name_row(n, i, LIST_ADD(n->job, &n->job->matches), &m->matches.items[k]);
    for (size_t k = 0; k < m->devices.count; k++)
        name_row(n, i, LIST_ADD(n->job, &n->job->devices), &m->devices.items[k]);
}

static void copy_events(const struct pr_nodes *n, size_t i)
{
    const struct pr_model *m = n->items[i];
    double offset = m->began - n->job->began;
    for (size_t k = 0; k < m->events.count; k++) {
        const struct pr_model_event *e = &m->events.items[k];
        pr_model_add_event(n->job, e->at + offset, e->kind, e->severity,
                           pr_model_text(n->job, "%s: %s", n->labels[i], e->text));
    }
    n->job->happened += m->happened > m->events.count ? m->happened - m->events.count : 0;
}

/* The same points over the time of the whole job. */
static double *spark_of(const struct pr_nodes *n, const struct pr_model *m, const double *spark)
{
    double *points = spark ? calloc(MODEL_POINTS, sizeof *points) : NULL;
    double length = fmax(pr_nodes_end(m) - m->began, 1e-9);
    n->job->failed |= spark && !points;
    for (int i = 0; points && i < MODEL_POINTS; i++) {
        double at = (i + 0.5) / MODEL_POINTS * n->job->duration - (m->began - n->job->began);
        double place = floor(at / length * MODEL_POINTS);
        points[i] = place >= 0 && place < MODEL_POINTS ? spark[(int)place] : NAN;
    }
    return points;
}

/* As many of each node: ancestors stand before those that they started. */
static void copy_processes(const struct pr_nodes *n, size_t i)
{
    const struct pr_model *m = n->items[i];
    double offset = m->began - n->job->began;
    int first = (int)n->job->processes.count;
    for (size_t k = 0; k < m->processes.count && k < MODEL_PROCESSES / n->count; k++) {
        struct pr_model_process *to = LIST_ADD(n->job, &n->job->processes);
        if (!to)
            return;
        *to = m->processes.items[k];
        to->name = pr_model_text(n->job, "%s: %s", n->labels[i], to->name);
        if (to->command)
            to->command = pr_model_text(n->job, "%s: %s", n->labels[i], to->command);
        to->begin += offset;
        to->end += offset;
        to->parent = to->parent < 0 ? -1 : to->parent + first;
        to->spark = spark_of(n, m, to->spark);
    }
    n->job->seen = pr_value_known(n->job->seen) + pr_value_known(m->seen);
}

/* Those of the first node that has any, with figures of the whole job. */
static const char *copy_phases(const struct pr_nodes *n)
{
    struct pr_model *job = n->job;
    size_t node = 0;
    while (node < n->count && !n->items[node]->phases.count)
        node++;
    if (node == n->count)
        return NULL;
    double offset = n->items[node]->began - job->began;
    for (size_t i = 0; i < n->items[node]->phases.count; i++) {
        struct pr_model_phase *to = LIST_ADD(job, &job->phases);
        if (!to)
            break;
        *to = n->items[node]->phases.items[i];
        to->begin += offset;
        to->end += offset;
        to->stats = calloc(job->series.count + 1, sizeof *to->stats);
        job->failed |= !to->stats;
        for (size_t k = 0; to->stats && k < job->series.count; k++)
            to->stats[k] = pr_model_between(job, &job->series.items[k], to->begin, to->end);
    }
    return n->labels[node];
}

/* --- words -------------------------------------------------------------------------------------
 */

static const char *within(struct pr_model *m, double seconds)
{
    struct pr_buf text = {0};
    pr_buf_str(&text, "within ");
    pr_model_human(&text, seconds, UNIT_SECONDS);
    const char *kept = pr_model_keep(m, &text);
    pr_buf_done(&text);
    return kept;
}

static void explain(const struct pr_nodes *n, const char *phases)
{
    struct pr_model *job = n->job;
    double first_end = INFINITY, samples = 0;
    for (size_t i = 0; i < n->count; i++) {
        first_end = fmin(first_end, pr_nodes_end(n->items[i]));
        samples += (double)n->items[i]->curves.samples;
    }
    const struct pr_model_words words[] = {
        {"Method", "sums",
         "of what the nodes had at the same moment; a node without a value is not in a sum, and "
         "\"nodes\" says of how many it is"},
        {NULL, "totals", "of the nodes' accounts, which are exact where curves are not"},
        {NULL, "time",
         "by the wall clock of each node when its recording began; how far clocks are wrong is not "
         "known"},
        {NULL, "phases",
         phases ? pr_model_text(job, "those of %s, with figures of all nodes", phases) : NULL},
        {"Completeness", "nodes", pr_model_text(job, "%zu", n->count)},
        {NULL, "began", within(job, n->apart)},
        {NULL, "ended", within(job, job->began + job->duration - first_end)},
        {NULL, "samples", pr_model_text(job, "%.0f in %zu records", samples, n->count)},
        {NULL, MODEL_POINTS_SAID, pr_model_points(job)},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        pr_model_say(job, &job->measured, words[i].title, words[i].what, words[i].words);
    pr_model_say(job, &job->facts, NULL, "command", job->command);
    pr_model_say(job, &job->facts, NULL, "directory", job->cwd);
    pr_model_say(job, &job->facts, NULL, "run", job->id);
    pr_model_say(job, &job->facts, NULL, "machines", job->host);
}

void pr_nodes_tables(const struct pr_nodes *n)
{
    for (size_t i = 0; i < n->count; i++) {
        node_row(n, i);
        copy_rows(n, i);
        copy_events(n, i);
        copy_processes(n, i);
    }
    struct pr_model *job = n->job;
    if (job->seen > (double)job->processes.count)
        job->processes_note = pr_model_text(
            job, "Of %.0f processes, as many of each node as there is room for.", job->seen);
    explain(n, copy_phases(n));
}
