/* SPDX-License-Identifier: Apache-2.0 */
/* The model as a whole, and what its parts share. */
#include "report/model.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/nodes.h"
#include "report/recorded.h"

#define POINT_BYTES  24 /* that one bucket of one series is in JSON: mean, least, most */
#define LEAST_POINTS 100

void *pr_model_room(struct pr_model *m, void *items, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return items;
    size_t more = *cap ? 2 * *cap : 16;
    void *grown = reallocarray(items, more, size);
    m->failed |= !grown;
    *cap = grown ? more : *cap;
    return grown ? grown : items;
}

const char *pr_model_text(struct pr_model *m, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    char **kept = n < 0 ? NULL : LIST_ADD(m, &m->texts);
    m->failed |= !kept;
    if (kept)
        *kept = text;
    else if (n >= 0)
        free(text);
    return kept ? text : "";
}

const char *pr_model_keep(struct pr_model *m, struct pr_buf *text)
{
    const char *kept = pr_model_text(m, "%s", pr_buf_text(text));
    m->failed |= text->failed;
    pr_buf_reset(text);
    return kept;
}

void pr_model_say(struct pr_model *m, struct pr_model_pairs *list, const char *title,
                  const char *what, const char *words)
{
    struct pr_model_words *w = words && *words ? LIST_ADD(m, list) : NULL;
    if (w)
        *w = (struct pr_model_words){title, what, words};
}

void pr_model_human(struct pr_buf *out, double v, enum pr_unit unit)
{
    if (isnan(v)) {
        pr_buf_str(out, "unknown");
    } else if (unit == UNIT_RATIO) {
        pr_units_fixed(out, v * 100, v < 0.0995 ? 1 : 0);
        pr_buf_str(out, " %");
    } else if (unit == UNIT_JOULES && v >= 3600) {
        const char *name;
        double by = pr_units_scale(v, unit, &name), figure = v / by;
        pr_units_fixed(out, figure, figure >= 99.95 ? 0 : figure >= 9.995 ? 1 : 2);
        pr_buf_printf(out, " %s", name);
    } else {
        pr_units_human(out, v, unit);
    }
}

const struct pr_model_series *pr_model_find(const struct pr_model *m, enum pr_group group)
{
    for (size_t i = 0; i < m->series.count; i++)
        if (m->series.items[i].group == group)
            return &m->series.items[i];
    return NULL;
}

void pr_model_in_phase(const struct pr_model *m, double at, struct pr_buf *out)
{
    const struct pr_model_phase *best = NULL;
    for (size_t i = 0; i < m->phases.count; i++) {
        const struct pr_model_phase *p = &m->phases.items[i];
        if (p->count == 1 && p->begin <= at && at <= p->end && (!best || p->level >= best->level))
            best = p;
    }
    if (best)
        pr_buf_printf(out, " in \u201c%.80s\u201d", best->name);
}

double pr_model_number(const struct pr_model *m, const struct pr_stored *r, const char *path)
{
    return pr_stored_number(r, m->summary.data ? m->summary.data : "{}", path);
}

double pr_model_mark(const struct pr_model *m, const struct pr_stored *r)
{
    return pr_model_number(m, r, "$.metrics.\"mem.rss.peak\".peak");
}

void pr_model_shrink(struct pr_model *m, size_t bytes)
{
    if (!m->series.count)
        return;
    size_t points = bytes / POINT_BYTES / m->series.count;
    pr_curves_shrink(&m->curves, points < LEAST_POINTS ? LEAST_POINTS : points);
    for (size_t i = 0; i < m->measured.count; i++)
        if (strcmp(m->measured.items[i].what, MODEL_POINTS_SAID) == 0)
            m->measured.items[i].words = pr_model_points(m);
}

static int read_all(struct pr_model *m, const struct pr_stored *r, size_t bytes, bool rss,
                    struct proctor_error *err)
{
    *m = (struct pr_model){.exit_code = -1, .seen = NAN, .duration = NAN, .rss = rss, .pss = -1};
    pr_curves_init(&m->curves, r->interval);
    int code = pr_recorded_summary(r, &m->summary, err);
    if (code == 0)
        pr_model_curves(m, r, err, &code);
    if (code < 0)
        return code;
    pr_model_shrink(m, bytes);
    pr_model_stats(m, r);
    pr_model_tables(m, r);
    pr_model_sparks(m, r);
    pr_model_identity(m, r);
    pr_model_method(m, r);
    pr_model_rules(m, r);
    return m->failed || m->curves.failed ? pr_error(err, ENOMEM, "out of memory") : 0;
}

int pr_model_read(struct pr_model *m, const struct pr_stored *r, size_t bytes,
                  struct proctor_error *err)
{
    return read_all(m, r, bytes, false, err);
}

int pr_model_read_rss(struct pr_model *m, const struct pr_stored *r, size_t bytes,
                      struct proctor_error *err)
{
    return read_all(m, r, bytes, true, err);
}

void pr_model_done(struct pr_model *m)
{
    void *const lists[] = {m->argv.items,    m->labels.items,    m->measured.items,
                           m->facts.items,   m->series.items,    m->findings.items,
                           m->events.items,  m->processes.items, m->matches.items,
                           m->devices.items, m->nodes.items};
    for (size_t i = 0; i < m->phases.count; i++)
        free(m->phases.items[i].stats);
    for (size_t i = 0; i < m->processes.count; i++)
        free(m->processes.items[i].spark);
    free(m->phases.items);
    for (size_t i = 0; i < m->texts.count; i++)
        free(m->texts.items[i]);
    free(m->texts.items);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]);
    pr_curves_done(&m->curves);
    pr_buf_done(&m->summary);
}
