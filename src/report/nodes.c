/* SPDX-License-Identifier: Apache-2.0 */
/* A job on several nodes: who belongs to it, who and where it was, how it ended, what was found. */
#include "report/nodes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HOSTS_NAMED 4
#define NODES_NAMED 8 /* in a sentence */
#define APART_LEAST 5 /* seconds between the begin of the first and the last: worth a look, and */
#define APART_SHARE 0.05 /* of the job's time */

/* --- is it one? --------------------------------------------------------------------------------
 */

static void read_node(const struct pr_stored *r, struct pr_buf *out)
{
    struct pr_query *q = NULL;
    if (pr_query_new(&q, r->db, "SELECT node FROM run") == 0 && pr_query_step(q) == 1) {
        const char *node = pr_query_get_text(q, 0);
        pr_buf_str(out, node ? node : "");
    }
    pr_query_free(q);
}

static bool same_node(const struct pr_stored *a, const struct pr_stored *b)
{
    struct pr_buf x = {0}, y = {0};
    read_node(a, &x);
    read_node(b, &y);
    bool same = strcmp(a->host, b->host) == 0 && strcmp(pr_buf_text(&x), pr_buf_text(&y)) == 0;
    pr_buf_done(&x);
    pr_buf_done(&y);
    return same;
}

/* One that has no end yet may go on. */
static bool is_before(const struct pr_stored *a, const struct pr_stored *b)
{
    return a->ended && a->ended <= b->started;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool pr_nodes_are_one(struct pr_stored *const *runs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct pr_stored *a = runs[i], *b = runs[k];
            bool repeat = (is_before(a, b) || is_before(b, a)) && same_node(a, b);
            if (!*a->id || strcmp(a->id, b->id) != 0 || repeat || same_file(a->path, b->path))
                return false;
        }
    return count > 1;
}

/* --- what nodes are called ---------------------------------------------------------------------
 */

static int by_node(const void *a, const void *b)
{
    const struct pr_model *x = *(const struct pr_model *const *)a,
                          *y = *(const struct pr_model *const *)b;
    int order = strverscmp(x->node ? x->node : x->host, y->node ? y->node : y->host);
    return order ? order : (x->began > y->began) - (x->began < y->began);
}

/* "node 3", or the machine where that was not said; numbered where that is not enough. */
static const char *label_of(struct pr_model *job, const struct pr_model *m,
                            const char *const *before, size_t count)
{
    char text[80];
    if (m->node)
        snprintf(text, sizeof text, "node %.64s", m->node);
    else
        snprintf(text, sizeof text, "%.*s", (int)fmin(64, (double)strcspn(m->host, ",")), m->host);
    size_t same = 0, len = strlen(text);
    for (size_t i = 0; i < count; i++)
        same += strncmp(before[i], text, len) == 0 &&
                (!before[i][len] || strncmp(before[i] + len, " #", 2) == 0);
    return same ? pr_model_text(job, "%s #%zu", text, same + 1) : pr_model_text(job, "%s", text);
}

/* "node 0, node 3 and 5 more", of those that are chosen. */
static void put_labels(struct pr_buf *out, const struct pr_nodes *n, const bool *chosen)
{
    size_t all = 0, said = 0;
    for (size_t i = 0; i < n->count; i++)
        all += chosen[i];
    for (size_t i = 0; i < n->count && said < NODES_NAMED; i++)
        if (chosen[i])
            pr_buf_printf(out, "%s%s", said++ ? ", " : "", n->labels[i]);
    if (said < all)
        pr_buf_printf(out, " and %zu more", all - said);
}

/* --- identity ----------------------------------------------------------------------------------
 */

double pr_nodes_end(const struct pr_model *m)
{
    return m->began + (isnan(m->duration) ? m->curves.at : m->duration);
}

static const char *hosts(const struct pr_nodes *n)
{
    struct pr_buf text = {0};
    size_t named = 0;
    for (size_t i = 0; i < n->count; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= strcmp(n->items[k]->host, n->items[i]->host) == 0;
        if (!again && ++named <= HOSTS_NAMED)
            pr_buf_printf(&text, "%s%s", named > 1 ? "; " : "", n->items[i]->host);
    }
    if (named > HOSTS_NAMED)
        pr_buf_printf(&text, "; %zu more", named - HOSTS_NAMED);
    const char *kept = pr_model_text(n->job, "%zu nodes: %s", n->count, pr_buf_text(&text));
    pr_buf_done(&text);
    return kept;
}

static void identify(const struct pr_nodes *n)
{
    struct pr_model *job = n->job;
    const struct pr_model *first = n->items[0];
    double end = 0;
    job->began = INFINITY;
    for (size_t i = 0; i < n->count; i++) {
        job->began = fmin(job->began, n->items[i]->began);
        end = fmax(end, pr_nodes_end(n->items[i]));
    }
    job->duration = end - job->began;
    job->id = first->id;
    job->command = first->command;
    job->cwd = first->cwd;
    job->machine = first->machine;
    job->name = pr_model_text(job, "%zu nodes: %s", n->count, first->name);
    job->host = hosts(n);
    for (size_t i = 0; i < first->argv.count; i++) {
        const char **kept = LIST_ADD(job, &job->argv);
        if (kept)
            *kept = first->argv.items[i];
    }
    for (size_t i = 0; i < first->labels.count; i++)
        pr_model_say(job, &job->labels, NULL, first->labels.items[i].what,
                     first->labels.items[i].words);
}

/* That of the node that fared worst, which is named. */
static void judge(const struct pr_nodes *n)
{
    struct pr_buf text = {0};
    bool chosen[NODES_MOST] = {0};
    const struct pr_model *worst = n->items[0];
    size_t same = 0;
    for (size_t i = 1; i < n->count; i++)
        worst = n->items[i]->severity > worst->severity ? n->items[i] : worst;
    for (size_t i = 0; i < n->count; i++)
        same += chosen[i] = strcmp(n->items[i]->verdict, worst->verdict) == 0;
    n->job->severity = worst->severity;
    n->job->exit_code = worst->exit_code;
    n->job->signal = worst->signal;
    pr_buf_printf(&text, "%s on ", worst->verdict);
    if (same == n->count)
        pr_buf_printf(&text, "all %zu nodes", same);
    else
        put_labels(&text, n, chosen);
    n->job->verdict = pr_model_keep(n->job, &text);
    pr_buf_done(&text);
}

/* --- findings ----------------------------------------------------------------------------------
 */

static bool has_finding(const struct pr_model *m, const char *id)
{
    for (size_t i = 0; i < m->findings.count; i++)
        if (strcmp(m->findings.items[i].id, id) == 0)
            return true;
    return false;
}

/* Once for all nodes that have it: of the worst of them, with its name, and who else. */
static void find(const struct pr_nodes *n, size_t node, const struct pr_model_finding *f)
{
    struct pr_buf text = {0};
    bool chosen[NODES_MOST] = {0};
    size_t others = 0;
    if (has_finding(n->job, f->id))
        return;
    for (size_t i = 0; i < n->count; i++)
        others += chosen[i] = i != node && has_finding(n->items[i], f->id);
    struct pr_model_finding *to = LIST_ADD(n->job, &n->job->findings);
    if (!to)
        return;
    *to = *f;
    to->text = pr_model_text(n->job, "%s: %s", n->labels[node], f->text);
    to->at = f->at + n->items[node]->began - n->job->began;
    if (others) {
        pr_buf_printf(&text, "%s%sThe same holds for ", f->more ? f->more : "", f->more ? " " : "");
        put_labels(&text, n, chosen);
        pr_buf_char(&text, '.');
        to->more = pr_model_keep(n->job, &text);
    }
    pr_buf_done(&text);
}

static void find_apart(const struct pr_nodes *n)
{
    struct pr_model_finding *to = n->apart > fmax(APART_LEAST, APART_SHARE * n->job->duration)
                                      ? LIST_ADD(n->job, &n->job->findings)
                                      : NULL;
    struct pr_buf text = {0};
    if (!to)
        return;
    pr_buf_str(&text, "The last node began ");
    pr_model_human(&text, n->apart, UNIT_SECONDS);
    pr_buf_str(&text, " after the first, by their clocks.");
    *to = (struct pr_model_finding){
        "nodes-apart", pr_model_keep(n->job, &text),
        "Where nodes were started together, their clocks differ by about that.", SEVERITY_NOTE,
        n->apart};
    pr_buf_done(&text);
}

static void find_all(const struct pr_nodes *n)
{
    for (int severity = SEVERITY_BAD; severity >= SEVERITY_GOOD; severity--)
        for (size_t i = 0; i < n->count; i++)
            for (size_t k = 0; k < n->items[i]->findings.count; k++)
                if ((int)n->items[i]->findings.items[k].severity == severity)
                    find(n, i, &n->items[i]->findings.items[k]);
    find_apart(n);
    pr_model_sort_findings(n->job);
}

/* --- all of it ---------------------------------------------------------------------------------
 */

int pr_nodes_model(struct pr_model *job, struct pr_model **nodes, size_t count, size_t bytes,
                   struct proctor_error *err)
{
    const char *labels[NODES_MOST];
    struct pr_nodes n = {job, nodes, labels, count, 0};
    *job = (struct pr_model){.exit_code = -1, .seen = NAN, .duration = NAN};
    if (count > NODES_MOST)
        return pr_error(err, E2BIG, "a report has at most %d nodes", NODES_MOST);
    qsort(nodes, count, sizeof *nodes, by_node);
    for (size_t i = 0; i < count; i++)
        labels[i] = label_of(job, nodes[i], labels, i);
    identify(&n);
    for (size_t i = 0; i < count; i++)
        n.apart = fmax(n.apart, nodes[i]->began - job->began);
    judge(&n);
    pr_nodes_curves(&n);
    pr_model_shrink(job, bytes);
    pr_nodes_tables(&n);
    find_all(&n);
    for (size_t i = 0; i < count; i++) { /* in a list of runs and in headings */
        nodes[i]->command = pr_model_text(job, "%s: %s", labels[i], nodes[i]->command);
        nodes[i]->name = labels[i];
    }
    return job->failed || job->curves.failed ? pr_error(err, ENOMEM, "out of memory") : 0;
}
