/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between runs, and by how much more than chance. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare_words.h"
#include "report/rank.h"

#define COUNT(list)   (sizeof list / sizeof *list)
#define REPEATS_LEAST 3    /* on each side, for a rank test */
#define NOISE         0.05 /* a difference that chance makes less often is beyond it */
#define NOTABLE       0.05 /* a smaller difference is no reason to look twice */

/* What a table has where runs have it; more is worse unless it says how well something was used. */
static const struct {
    struct pr_figure of;
    bool phases, machine, neutral; /* also by phase; where there is no job; neither good nor bad */
} shown[] = {
    {{METRIC_DURATION, OF_TOTAL}, true, true, false},
    {{METRIC_CPU_TIME, OF_TOTAL}, true, false, false},
    {{METRIC_CPU_USER, OF_TOTAL}, false, false, false},
    {{METRIC_CPU_SYSTEM, OF_TOTAL}, false, false, false},
    {{METRIC_CPU_USAGE, OF_MEAN}, true, false, true},
    {{METRIC_MEM_PSS, OF_PEAK}, true, false, false},
    {{METRIC_MEM_PSS, OF_MEAN}, false, false, false},
    {{METRIC_MEM_USS, OF_PEAK}, false, false, false},
    {{METRIC_MEM_RSS_PEAK, OF_PEAK}, true, false, false},
    {{METRIC_MEM_SWAP, OF_PEAK}, false, false, false},
    {{METRIC_IO_READ, OF_TOTAL}, true, false, false},
    {{METRIC_IO_WRITE, OF_TOTAL}, true, false, false},
    {{METRIC_IO_RCHAR, OF_TOTAL}, false, false, false},
    {{METRIC_IO_WCHAR, OF_TOTAL}, false, false, false},
    {{METRIC_NET_RX, OF_TOTAL}, false, false, false},
    {{METRIC_NET_TX, OF_TOTAL}, false, false, false},
    {{METRIC_FAULTS_MINOR, OF_TOTAL}, false, false, false},
    {{METRIC_FAULTS_MAJOR, OF_TOTAL}, false, false, false},
    {{METRIC_CTX_VOLUNTARY, OF_TOTAL}, false, false, false},
    {{METRIC_CTX_INVOLUNTARY, OF_TOTAL}, false, false, false},
    {{METRIC_PROCS_STARTED, OF_TOTAL}, false, false, false},
    {{METRIC_THREADS, OF_PEAK}, false, false, false},
    {{METRIC_FDS, OF_PEAK}, false, false, false},
    {{METRIC_GPU_USAGE, OF_MEAN}, true, false, true},
    {{METRIC_GPU_MEM, OF_PEAK}, true, false, false},
    {{METRIC_ENERGY, OF_TOTAL}, true, false, false},
    {{METRIC_SYSTEM_CPU_USAGE, OF_MEAN}, true, true, true},
    {{METRIC_SYSTEM_MEM_USED, OF_PEAK}, true, true, false},
    {{METRIC_SYSTEM_DISK_READ, OF_TOTAL}, true, true, false},
    {{METRIC_SYSTEM_DISK_WRITE, OF_TOTAL}, true, true, false},
    {{METRIC_SYSTEM_NET_RX, OF_TOTAL}, false, true, false},
    {{METRIC_SYSTEM_NET_TX, OF_TOTAL}, false, true, false},
};

/* --- one row ---------------------------------------------------------------------------------- */

/* What is known of it on a side; the caller frees. */
static double *values_of(struct pr_comparison *c, int side, const struct pr_row *r,
                         size_t *ret_count)
{
    const struct pr_side *s = &c->side[side];
    double *v = calloc(s->count + 1, sizeof *v);
    *ret_count = 0;
    c->failed |= !v;
    for (size_t i = 0; v && i < s->count; i++) {
        double one = pr_case_value(&s->items[i], r->phase, r->of);
        if (!isnan(one))
            v[(*ret_count)++] = one;
    }
    return v;
}

/* What is to be said of a run is said of the row. */
static void doubt(const struct pr_comparison *c, struct pr_row *r)
{
    for (int s = 0; s < 2 && r->of.id != METRIC_DURATION; s++)
        for (size_t i = 0; i < c->side[s].count; i++) {
            const struct pr_used *u = pr_case_part(&c->side[s].items[i], r->phase);
            r->few |= u && u->few[r->of.id];
            r->estimated |= u && u->estimated[r->of.id];
        }
}

const struct pr_case *pr_compare_failed(const struct pr_comparison *c)
{
    for (size_t i = 0; i < c->side[1].count; i++)
        if (!c->side[1].items[i].good)
            return &c->side[1].items[i];
    return NULL;
}

static enum pr_severity judge(const struct pr_comparison *c, const struct pr_row *r, bool neutral)
{
    double change = r->median[1] - r->median[0];
    bool notable = fabs(change) >= NOTABLE * fabs(r->median[0]) && change != 0;
    if (neutral || r->few || !notable || (r->can_tell && !r->beyond))
        return SEVERITY_NOTE;
    return change > 0 ? SEVERITY_WARN : pr_compare_failed(c) ? SEVERITY_NOTE : SEVERITY_GOOD;
}

static struct pr_row measure(struct pr_comparison *c, const char *phase, struct pr_figure of,
                             bool neutral)
{
    struct pr_row r = {.phase = phase, .of = of, .p = NAN};
    double *v[2] = {values_of(c, 0, &r, &r.known[0]), values_of(c, 1, &r, &r.known[1])};
    size_t a = r.known[0], b = r.known[1];
    if (v[0] && v[1] && a >= REPEATS_LEAST && b >= REPEATS_LEAST) {
        r.p = pr_rank_p(v[0], a, v[1], b);
        r.can_tell = pr_rank_least(a, b) < NOISE;
        r.beyond = r.p < NOISE;
    }
    for (int s = 0; s < 2; s++) {
        r.median[s] = v[s] ? pr_median(v[s], r.known[s]) : NAN; /* sorts them */
        r.least[s] = r.known[s] ? v[s][0] : NAN;
        free(v[s]);
    }
    doubt(c, &r);
    r.severity = judge(c, &r, neutral);
    return r;
}

/* --- the table -------------------------------------------------------------------------------- */

static void add_row(struct pr_comparison *c, struct pr_row row)
{
    struct pr_row *rows = reallocarray(c->rows.items, c->rows.count + 1, sizeof *rows);
    c->failed |= !rows;
    if (!rows)
        return;
    rows[c->rows.count++] = row;
    c->rows.items = rows;
}

static bool is_machine(const struct pr_comparison *c)
{
    for (size_t i = 0; i < c->side[1].count; i++)
        if (!c->side[1].items[i].machine)
            return false;
    return true;
}

/* What is nowhere, or nothing everywhere, says nothing. */
static bool is_worth(const struct pr_row *r)
{
    return (r->known[0] || r->known[1]) && !(r->median[0] == 0 && r->median[1] == 0);
}

static void add_rows(struct pr_comparison *c, const char *phase)
{
    bool machine = is_machine(c);
    for (size_t i = 0; i < COUNT(shown); i++) {
        bool of_machine = shown[i].of.id != METRIC_DURATION && shown[i].machine;
        if ((phase && !shown[i].phases) || (of_machine && !machine))
            continue;
        struct pr_row r = measure(c, phase, shown[i].of, shown[i].neutral);
        if (is_worth(&r))
            add_row(c, r);
    }
}

static struct pr_row *row_of(struct pr_comparison *c, struct pr_figure of)
{
    for (size_t i = 0; i < c->rows.count; i++) {
        struct pr_row *r = &c->rows.items[i];
        if (!r->phase && r->of.id == of.id && r->of.stat == of.stat)
            return r;
    }
    add_row(c, measure(c, NULL, of, false));
    return c->failed ? NULL : &c->rows.items[c->rows.count - 1];
}

/* --- gates ------------------------------------------------------------------------------------ */

bool pr_case_failed(const struct pr_case *k, struct proctor_error *err)
{
    if (!k->good)
        pr_error(err, EINVAL,
                 "%.60s (%.60s) is no run that ended well, and what it used says little of the "
                 "job; leave it out, or take it with --allow-failed",
                 k->id, k->ending ? k->ending : "its end is not known");
    return !k->good;
}

/* What is known in few samples may be anything: that nothing was seen is no pass. */
static bool is_doubtful(const struct pr_comparison *c, const struct pr_gate *g, int side,
                        const struct pr_case *k, struct proctor_error *err)
{
    const struct pr_used *whole = pr_case_part(k, NULL);
    bool absent = isnan(pr_case_value(k, NULL, g->of)),
         few = whole && g->of.id != METRIC_DURATION && whole->few[g->of.id];
    if (!c->allow_failed && pr_case_failed(k, err))
        return true;
    if (!absent && !few)
        return false;
    struct pr_buf name = {0};
    const char *where = side ? "" : ", of the baseline";
    pr_figure_name(&name, g->of);
    if (absent)
        pr_error(err, ENODATA, "%s is absent in %.60s%s; %s", pr_buf_text(&name), k->id, where,
                 side == 0 && c->side[0].filed ? "save the baseline again from runs that have it"
                                               : "`proctor show RUN --json` says why, in absent");
    else
        pr_error(err, ENODATA, "%s is known in few samples of %.60s%s; %srecord with a shorter -i",
                 pr_buf_text(&name), k->id, where,
                 pr_figure_unit(g->of) == UNIT_BYTES
                     ? "take mem.rss.peak, which has the kernel's marks, or "
                     : "");
    pr_buf_done(&name);
    return true;
}

static bool can_decide(const struct pr_comparison *c, struct pr_gate *g)
{
    for (int s = g->against ? 0 : 1; s < 2; s++)
        for (size_t i = 0; i < c->side[s].count; i++)
            if (is_doubtful(c, g, s, &c->side[s].items[i], &g->why))
                return false;
    return true;
}

static void decide(struct pr_comparison *c, struct pr_gate *g)
{
    struct pr_row *r = can_decide(c, g) ? row_of(c, g->of) : NULL;
    g->limit = NAN;
    if (!r)
        return;
    g->limit = g->relative  ? r->median[0] * (1 + g->threshold)
               : g->against ? r->median[0] + g->threshold
                            : g->threshold;
    double v = r->median[1];
    g->holds = g->op[0] == '>' ? v > g->limit : v < g->limit;
    g->holds |= g->op[1] == '=' && v == g->limit;
    if (g->holds)
        r->severity = SEVERITY_BAD;
}

/* --- phases ----------------------------------------------------------------------------------- */

static bool all_have(const struct pr_comparison *c, const char *phase)
{
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < c->side[s].count; i++)
            if (!pr_case_part(&c->side[s].items[i], phase))
                return false;
    return true;
}

static int by_phases(struct pr_comparison *c, struct proctor_error *err)
{
    const struct pr_case *first = &c->side[0].items[0];
    for (size_t i = 1; i < first->count; i++) {
        const char *phase = first->parts[i].phase;
        if (!all_have(c, phase))
            continue;
        if (!c->aligned)
            c->aligned = phase;
        add_rows(c, phase);
    }
    return c->aligned ? 0
                      : pr_error(err, ENOENT,
                                 "--align phase: no phase is in all runs; `proctor show RUN` lists "
                                 "those of a run, --align start needs none");
}

int pr_compare(struct pr_comparison *c, bool by_phase, struct proctor_error *err)
{
    int code = 0;
    add_rows(c, NULL);
    for (size_t i = 0; i < c->gates.count; i++)
        decide(c, &c->gates.items[i]);
    if (by_phase)
        code = by_phases(c, err);
    return code == 0 && c->failed ? pr_error(err, ENOMEM, "out of memory") : code;
}
