/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of --fail-if: KEY[.STAT] OP THRESHOLD. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/compare_words.h"
#include "report/model_parts.h"

#define DURATION "duration"

enum pr_unit pr_figure_unit(struct pr_figure of)
{
    return of.id == METRIC_DURATION ? UNIT_SECONDS : pr_metrics[of.id].unit;
}

/* The one that the summary shows first: the total of a counter, the mean of a rate, the peak of the
 * rest. */
static enum pr_compare_stat usual(enum pr_metric_id id)
{
    const struct pr_metric *m = &pr_metrics[id];
    bool rate =
        m->kind == KIND_RATE || (m->kind == KIND_RATIO && pr_metrics[m->of].kind == KIND_RATE);
    return m->kind == KIND_COUNTER ? OF_TOTAL : rate ? OF_MEAN : OF_PEAK;
}

void pr_figure_name(struct pr_buf *out, struct pr_figure of)
{
    if (of.id == METRIC_DURATION) {
        pr_buf_str(out, DURATION);
        return;
    }
    pr_buf_str(out, pr_metrics[of.id].key);
    if (of.stat != OF_TOTAL && pr_metrics[of.id].kind != KIND_HIGH_WATER)
        pr_buf_printf(out, ".%s", pr_figure_stat(of));
}

/* --- reading ---------------------------------------------------------------------------------- */

static int check_stat(struct pr_figure of, const char *text, struct proctor_error *err)
{
    if (of.id == METRIC_DURATION)
        return 0;
    const struct pr_metric *m = &pr_metrics[of.id];
    if (!pr_metric_is_single(of.id))
        return pr_error(err, EINVAL,
                        "--fail-if '%.80s': %s is of each device alone; runs have one "
                        "figure only of what is the job's or the machine's",
                        text, m->key);
    if ((of.stat == OF_TOTAL) != (m->kind == KIND_COUNTER))
        return pr_error(err, EINVAL, "--fail-if '%.80s': %s has no %s; it has %s", text, m->key,
                        pr_figure_stat(of),
                        m->kind == KIND_COUNTER ? "total" : "peak, mean, min and last");
    return 0;
}

/* The longest key that matches wins: mem.rss.peak is a metric, mem.pss.peak one and a statistic. */
static int read_figure(struct pr_figure *of, const char *key, const char *text,
                       struct proctor_error *err)
{
    char left[64];
    const char *dot = strrchr(key, '.');
    if (strcmp(key, DURATION) == 0) {
        *of = (struct pr_figure){METRIC_DURATION, OF_TOTAL};
        return 0;
    }
    of->id = pr_metric_find(key);
    if (of->id != METRIC_NONE) {
        of->stat = usual(of->id);
        return check_stat(*of, text, err);
    }
    snprintf(left, sizeof left, "%.*s", dot ? (int)(dot - key) : 0, key);
    of->id = pr_metric_find(left);
    for (int i = 0; i < COMPARE_STATS && of->id != METRIC_NONE; i++) {
        of->stat = (enum pr_compare_stat)i;
        if (strcmp(dot + 1, pr_figure_stat(*of)) == 0)
            return check_stat(*of, text, err);
    }
    if (of->id != METRIC_NONE)
        return pr_error(err, EINVAL,
                        "--fail-if '%.80s': '%s' is no statistic; write total, peak, "
                        "mean, min or last",
                        text, dot + 1);
    return pr_error(err, EINVAL,
                    "--fail-if '%.80s': there is no metric '%s'; `proctor metrics` lists "
                    "them, and duration is one here",
                    text, key);
}

static int read_threshold(struct pr_gate *g, const char *value, struct proctor_error *err)
{
    enum pr_unit unit = pr_figure_unit(g->of);
    const char *number = value + (*value == '+' || *value == '-');
    size_t n = strlen(value);
    bool percent = n && value[n - 1] == '%', share = unit == UNIT_RATIO || unit == UNIT_PERCENT;
    g->against = number > value;
    g->relative = g->against && percent;
    if (percent && !g->against && !share)
        return pr_error(err, EINVAL,
                        "--fail-if '%.80s': '%s' of what? Write +%s for so much more than "
                        "the baseline, -%s for less",
                        g->text, value, value, value);
    bool good = g->relative ? pr_units_parse_percent(number, &g->threshold)
                            : pr_units_parse(number, unit, &g->threshold);
    if (!good)
        return pr_error(err, EINVAL,
                        "--fail-if '%.80s': '%s' is no threshold in %s; write it as %s, or "
                        "against the baseline as +10%%",
                        g->text, value, unit == UNIT_COUNT ? "numbers" : pr_units_name(unit),
                        unit == UNIT_SECONDS ? "90s"
                        : unit == UNIT_BYTES ? "512MiB"
                                             : "2.5");
    bool bytes = unit == UNIT_BYTES || unit == UNIT_BYTES_PER_SECOND;
    if (bytes && !g->relative && g->threshold != 0 && strchr("0123456789.", value[n - 1]))
        return pr_error(err, EINVAL,
                        "--fail-if '%.80s': %s of what? Write %sMiB%s, or %sB%s for single bytes",
                        g->text, value, value, unit == UNIT_BYTES ? "" : "/s", value,
                        unit == UNIT_BYTES ? "" : "/s");
    if (g->relative)
        g->threshold /= 100;
    if (*value == '-')
        g->threshold = -g->threshold;
    return 0;
}

int pr_gate_parse(struct pr_gate *g, const char *text, struct proctor_error *err)
{
    char packed[128], key[128];
    size_t n = 0;
    *g = (struct pr_gate){.text = text};
    for (const char *p = text; *p && n < sizeof packed - 1; p++)
        if (*p != ' ' && *p != '\t')
            packed[n++] = *p;
    packed[n] = '\0';
    bool whole = n < sizeof packed - 1;
    size_t name = strcspn(packed, "<>="), sign = strspn(packed + name, "<>=");
    if (!whole || !name || !sign || sign > 2 || packed[name] == '=' ||
        (sign == 2 && packed[name + 1] != '=') || !packed[name + sign])
        return pr_error(err, EINVAL,
                        "--fail-if: '%.80s' is not KEY[.STAT] OP THRESHOLD; write it as "
                        "'mem.pss.peak > +10%%' or 'cpu.time > 90s', OP is > >= < or <=",
                        text);
    snprintf(key, sizeof key, "%.*s", (int)name, packed);
    snprintf(g->op, sizeof g->op, "%.*s", (int)sign, packed + name);
    int code = read_figure(&g->of, key, text, err);
    return code < 0 ? code : read_threshold(g, packed + name + sign, err);
}

/* --- words ------------------------------------------------------------------------------------ */

static const struct pr_row *row_of(const struct pr_comparison *c, const struct pr_gate *g)
{
    for (size_t i = 0; i < c->rows.count; i++) {
        const struct pr_row *r = &c->rows.items[i];
        if (!r->phase && r->of.id == g->of.id && r->of.stat == g->of.stat)
            return r;
    }
    return NULL;
}

void pr_gate_words(struct pr_buf *out, const struct pr_comparison *c, const struct pr_gate *g)
{
    const struct pr_row *r = row_of(c, g);
    enum pr_unit unit = pr_figure_unit(g->of);
    if (*g->why.message)
        pr_buf_printf(out, "%s cannot be told: %s", g->text, g->why.message);
    if (!r || *g->why.message)
        return;
    pr_buf_printf(out, "%s %s: ", g->text, g->holds ? "holds" : "does not hold");
    pr_model_human(out, r->median[1], unit);
    if (r->known[1] > 1)
        pr_buf_printf(out, " (median of %zu)", r->known[1]);
    if (g->against) {
        pr_buf_str(out, ", baseline ");
        pr_model_human(out, r->median[0], unit);
        if (r->known[0] > 1)
            pr_buf_printf(out, " (median of %zu)", r->known[0]);
        pr_buf_str(out, ", which allows ");
        pr_model_human(out, fmax(0, g->limit), unit);
    }
    pr_compare_noise(out, r, ", ");
}
