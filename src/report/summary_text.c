/* SPDX-License-Identifier: Apache-2.0 */
/* At most eight lines, the most important first; one more for names, for phases, for a cgroup that
 * matters, and for each GPU. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/self.h"
#include "report/page.h"
#include "util/clock.h"
#include "util/text.h"

#define COMMAND_SHOWN  60
#define LEFT_SHOWN     3
#define MATCHES_SHOWN  4
#define COMMANDS_SHOWN 3

/* As one would type it: blanks inside an argument do not look like several. */
static void argument(struct pr_buf *line, const char *text)
{
    bool quote = !*text || strpbrk(text, " \t\n\"'\\$&|;<>()*?");
    pr_buf_str(line, quote ? "'" : "");
    for (const char *p = text; *p;) { /* a script of several lines reads as one */
        char part[256];
        size_t n = strcspn(p, "\n");
        snprintf(part, sizeof part, "%.*s", (int)n, p);
        pr_text_safe(line, part);
        p += n;
        if (*p && *p++)
            pr_buf_str(line, "\\n");
    }
    pr_buf_str(line, quote ? "'" : "");
}

static void command(struct pr_page *p)
{
    struct pr_buf line = {0};
    for (char **arg = p->facts->argv; arg && *arg; arg++) {
        pr_buf_str(&line, arg == p->facts->argv ? "" : " ");
        argument(&line, *arg);
    }
    const char *text = pr_buf_text(&line);
    size_t shown = strlen(text);
    if (shown > COMMAND_SHOWN) {
        shown = COMMAND_SHOWN - 3;
        while (shown && ((unsigned char)text[shown] & 0xc0) == 0x80)
            shown--; /* not in the middle of a character */
    }
    if (p->facts->pid)
        pr_buf_printf(p->out, "%d ", (int)p->facts->pid);
    pr_text_safe(p->out, p->facts->target);
    pr_buf_printf(p->out, "%.*s%s", (int)shown, text, text[shown] ? "..." : "");
    pr_buf_done(&line);
}

static void verdict_line(struct pr_page *p)
{
    const struct pr_facts *f = p->facts;
    bool bad = f->exit_code > 0 || f->exit_signal > 0;
    char name[32];
    pr_page_paint(p, "1");
    pr_buf_str(p->out, "proctor: ");
    command(p);
    pr_page_paint(p, "0");
    pr_buf_str(p->out, "  ");
    if (bad)
        pr_page_paint(p, "31");
    if (f->exit_signal > 0)
        pr_buf_printf(p->out, "killed by %s", pr_text_signal(f->exit_signal, name, sizeof name));
    else if (f->exit_code >= 0)
        pr_buf_printf(p->out, "exit %d", f->exit_code);
    else if (f->way < WAY_MATCH)
        pr_buf_str(p->out, p->s->gone                                   ? "ended, "
                           : p->s->stats.metric[METRIC_PROCS].last == 0 ? "empty, "
                                                                        : "still running, ");
    if (bad)
        pr_page_paint(p, "0");
    pr_buf_str(p->out, f->way >= WAY_ATTACH ? "watched for " : " after ");
    pr_page_human(p, p->s->stats.seconds, UNIT_SECONDS);
    pr_buf_printf(p->out, ", %lu samples", p->s->taken);
    if (p->s->missed)
        pr_buf_printf(p->out, " (%lu missed)", p->s->missed);
    pr_page_end(p);
}

static void cpu_line(struct pr_page *p)
{
    const struct pr_stats *st = &p->s->stats;
    double total = pr_stats_total(st, METRIC_CPU_TIME);
    if (isnan(total))
        return;
    pr_page_label(p, "CPU");
    pr_page_human(p, total, UNIT_SECONDS);
    double user = pr_stats_total(st, METRIC_CPU_USER),
           both = user + pr_stats_total(st, METRIC_CPU_SYSTEM);
    if (both > 0) { /* the split comes in ticks: its proportion says more than its sum */
        pr_buf_str(p->out, " (user ");
        pr_page_human(p, total * user / both, UNIT_SECONDS);
        pr_buf_str(p->out, ", system ");
        pr_page_human(p, total * (1 - user / both), UNIT_SECONDS);
        pr_buf_str(p->out, ")");
    }
    double mean = total / st->seconds, limit = p->s->limits.total[LIMIT_CPU];
    /* CPU times arrive in steps, so a short interval can seem to have more than there is. */
    double peak = st->metric[METRIC_CPU_USAGE].max;
    if (peak > limit && peak < limit * 1.1)
        peak = limit;
    if (p->s->ledger.before[METRIC_CPU_TIME] > 0) {
        pr_buf_str(p->out, ", ");
        pr_page_human(p, p->s->ledger.before[METRIC_CPU_TIME], UNIT_SECONDS);
        pr_buf_str(p->out, " before it was watched");
    }
    pr_buf_str(p->out, "; mean ");
    pr_page_human(p, mean, UNIT_CORES);
    if (peak > mean) {
        pr_buf_str(p->out, ", peak ");
        pr_units_fixed(p->out, peak, 2);
    }
    if (limit > 0) {
        pr_buf_str(p->out, " of ");
        pr_units_number(p->out, limit);
    }
    pr_page_curve(p, &st->cpu, "34");
    pr_page_end(p);
}

static void share_of_limit(struct pr_page *p, double v)
{
    double limit = p->s->limits.total[LIMIT_MEMORY], percent = v / limit * 100;
    if (!(limit > 0))
        return;
    pr_buf_str(p->out, percent < 0.1 ? "; <0.1" : "; ");
    if (percent >= 0.1)
        pr_units_fixed(p->out, percent, percent < 10 ? 1 : 0);
    pr_buf_str(p->out, " % of ");
    pr_page_human(p, limit, UNIT_BYTES);
}

/* The largest that is known comes first. A sum of RSS counts shared pages again and again: it
 * stands behind PSS, unless the budget let that be read only now and then. */
static void memory_line(struct pr_page *p)
{
    const struct pr_stat *v = p->s->stats.metric;
    double mark = v[METRIC_MEM_RSS_PEAK].max, rss = v[METRIC_MEM_RSS].max;
    double pss =
        v[METRIC_MEM_PSS].known * 2 > v[METRIC_MEM_RSS].known ? v[METRIC_MEM_PSS].max : NAN;
    bool marked = !isnan(mark) && !(mark <= rss);
    if (isnan(pss) && isnan(rss) && !marked)
        return;
    pr_page_label(p, "memory");
    const char *next = "peak ";
    if (marked) {
        pr_page_bytes(p, "peak ", mark, " in one process");
        next = "; sampled: ";
    }
    if (!isnan(pss)) {
        pr_page_bytes(p, next, pss, pr_page_memory(v, true));
        next = ", ";
    }
    if (!isnan(rss))
        pr_page_bytes(p, next, rss, pr_page_memory(v, false));
    share_of_limit(p, marked ? mark : isnan(pss) ? rss : pss);
    pr_page_curve(p, isnan(pss) ? &p->s->stats.rss : &p->s->stats.memory, "35");
    pr_page_end(p);
}

static void io_line(struct pr_page *p)
{
    const struct pr_stats *st = &p->s->stats;
    if (isnan(pr_stats_total(st, METRIC_IO_READ)))
        return;
    pr_page_label(p, "I/O");
    if (p->s->io_unreadable && p->facts->way >= WAY_ATTACH)
        pr_buf_printf(p->out, "not readable of %lu processes, the others: ", p->s->io_unreadable);
    pr_buf_str(p->out, "storage: ");
    pr_page_human(p, pr_stats_total(st, METRIC_IO_READ), UNIT_BYTES);
    pr_buf_str(p->out, " read, ");
    pr_page_human(p, pr_stats_total(st, METRIC_IO_WRITE), UNIT_BYTES);
    pr_buf_str(p->out, " written");
    if (!isnan(pr_stats_total(st, METRIC_IO_RCHAR))) {
        pr_buf_str(p->out, "; all calls: ");
        pr_page_human(p, pr_stats_total(st, METRIC_IO_RCHAR), UNIT_BYTES);
        pr_buf_str(p->out, " read, ");
        pr_page_human(p, pr_stats_total(st, METRIC_IO_WCHAR), UNIT_BYTES);
        pr_buf_str(p->out, " written");
    }
    pr_page_end(p);
}

/* Who used most. What was used between samples is in the total, and may be nobody's here. */
static void top_commands(struct pr_page *p)
{
    const struct pr_roll *r = &p->s->roll;
    if (r->command_count < 2 || p->s->matches.count)
        return;
    pr_summary_sort_commands(&p->s->roll);
    for (size_t i = 0; i < r->command_count && i < COMMANDS_SHOWN; i++) {
        const struct pr_roll_command *c = &r->commands[i];
        pr_buf_str(p->out, i ? ", " : "; most CPU: ");
        pr_text_safe(p->out, c->comm);
        if (c->count > 1)
            pr_buf_printf(p->out, " (%lu)", c->count);
        pr_buf_char(p->out, ' ');
        pr_page_human(p, c->cpu, UNIT_SECONDS);
    }
    pr_buf_str(p->out, r->command_count > COMMANDS_SHOWN ? ", ..." : "");
}

static void process_line(struct pr_page *p)
{
    const struct pr_stats *st = &p->s->stats;
    double most = st->metric[METRIC_PROCS].max, threads = st->metric[METRIC_THREADS].max;
    pr_page_label(p, "procs");
    /* Who reaps children may have had some that we never saw. */
    pr_buf_printf(p->out, "%s%lu seen", p->s->ledger.absorbed ? "at least " : "",
                  (unsigned long)(p->s->set.started + p->s->roll.recorded));
    if (most > 0)
        pr_buf_printf(p->out, ", most at once %.0f", most);
    if (threads > 0)
        pr_buf_printf(p->out, " with %.0f thread%s", threads, threads > 1 ? "s" : "");
    top_commands(p);
    if (p->s->left_count) {
        pr_buf_printf(p->out, "; %zu left running:", p->s->left_count);
        for (size_t i = 0; i < p->s->left_count && i < LEFT_SHOWN; i++) {
            pr_buf_str(p->out, i ? ", " : " ");
            pr_text_safe(p->out, p->s->left[i].comm);
            pr_buf_printf(p->out, " (%d)", (int)p->s->left[i].pid);
        }
        pr_buf_str(p->out, p->s->left_count > LEFT_SHOWN ? ", ..." : "");
    }
    pr_page_end(p);
}

static void account_line(struct pr_page *p)
{
    bool cpu = pr_summary_complete(p->s, p->facts, ACCOUNT_CPU);
    bool complete = pr_summary_complete(p->s, p->facts, ACCOUNT_IO) && cpu;
    struct pr_buf note = {0};
    pr_summary_note(p->s, p->facts, cpu ? ACCOUNT_IO : ACCOUNT_CPU, &note);
    pr_page_label(p, "counted");
    pr_buf_str(p->out, pr_summary_source(p->s, p->facts, ACCOUNT_CPU));
    if (!complete)
        pr_page_paint(p, "33");
    pr_buf_str(p->out, complete ? "; complete" : cpu ? "; I/O not complete" : "; not complete");
    if (note.len)
        pr_buf_printf(p->out, ": %s", pr_buf_text(&note));
    if (!complete)
        pr_page_paint(p, "0");
    pr_page_end(p);
    pr_buf_done(&note);
}

static void self_line(struct pr_page *p)
{
    double cpu = pr_seconds(p->s->self_cpu), rss = pr_summary_self_rss(p->s);
    pr_page_label(p, "cost");
    pr_page_human(p, cpu, UNIT_SECONDS);
    pr_buf_str(p->out, " of CPU");
    if (p->s->stats.seconds >= 1) { /* starting costs 2 ms: no rate of a moment */
        pr_buf_str(p->out, ", ");
        pr_units_fixed(p->out, cpu / p->s->stats.seconds * 100, 2);
        pr_buf_str(p->out, " % of one core");
    }
    if (p->s->over_budget)
        pr_buf_printf(p->out, ", over the budget of %s", p->s->config->text[OPTION_BUDGET]);
    if (!isnan(rss)) {
        pr_buf_str(p->out, "; ");
        pr_page_human(p, rss, UNIT_BYTES);
    }
    pr_page_end(p);
}

static void trouble_line(struct pr_page *p)
{
    if (!p->s->events.problems)
        return;
    pr_page_label(p, "trouble");
    pr_page_paint(p, "33");
    for (size_t i = 0; i < p->s->events.count; i++) {
        if (p->s->events.item[i].type != EVENT_PROBLEM)
            continue;
        pr_text_safe(p->out, p->s->events.item[i].text);
        break;
    }
    if (p->s->events.problems > 1)
        pr_buf_printf(p->out, " (and %u more)", p->s->events.problems - 1);
    pr_page_paint(p, "0");
    pr_page_end(p);
}

/* --- by name ---------------------------------------------------------------------------------- */

static double cpu_of(const struct pr_match *m)
{
    double v = m->stats.metric[METRIC_CPU_TIME].last;
    return isnan(v) ? -1 : v; /* who was never there stands last */
}

static void one_match(struct pr_page *p, const struct pr_match *m)
{
    const struct pr_stat *v = m->stats.metric;
    bool pss = v[METRIC_MEM_PSS].known;
    double memory = pss ? v[METRIC_MEM_PSS].max : v[METRIC_MEM_RSS].max;
    pr_text_safe(p->out, m->name);
    pr_buf_printf(p->out, ": %lu seen", (unsigned long)m->instances);
    if (cpu_of(m) >= 0) {
        pr_buf_str(p->out, ", ");
        pr_page_human(p, cpu_of(m), UNIT_SECONDS);
        pr_buf_str(p->out, " of CPU");
    }
    if (!isnan(memory))
        pr_page_bytes(p, ", peak ", memory, pr_page_memory(v, pss));
}

/* The one with the most CPU time that has not been shown yet. */
static size_t next_match(const struct pr_matches *m, const bool *shown)
{
    size_t best = m->count;
    for (size_t i = 0; i < m->count; i++)
        if (!shown[i] && (best == m->count || cpu_of(&m->items[i]) > cpu_of(&m->items[best])))
            best = i;
    return best;
}

/* Of processes as they were sampled: what lived between two samples is the job's, and nobody's by
 * name. */
static void match_line(struct pr_page *p)
{
    const struct pr_matches *m = &p->s->matches;
    bool shown[MATCHES_MOST] = {false};
    double rest = pr_stats_total(&p->s->stats, METRIC_CPU_TIME);
    if (!m->count)
        return;
    pr_page_label(p, "by name");
    pr_buf_str(p->out, "as sampled: ");
    for (size_t k = 0; k < m->count && k < MATCHES_SHOWN; k++) {
        size_t i = next_match(m, shown);
        shown[i] = true;
        pr_buf_str(p->out, k ? "; " : "");
        one_match(p, &m->items[i]);
    }
    for (size_t i = 0; i < m->count; i++)
        rest -= fmax(0, cpu_of(&m->items[i]));
    if (m->count > MATCHES_SHOWN)
        pr_buf_str(p->out, "; ...");
    if (rest >= 0.001 && p->facts->way != WAY_MATCH) {
        pr_buf_str(p->out, "; ");
        pr_page_human(p, rest, UNIT_SECONDS);
        pr_buf_str(p->out, " of CPU under none of these");
    }
    pr_page_end(p);
}

/* Why it died, or what else stands out most. */
static void finding_line(struct pr_page *p)
{
    struct pr_buf text = {0};
    struct pr_finding worst = {.severity = SEVERITY_BAD};
    pr_summary_finding(p->s, p->facts, &text);
    bool why = text.len > 0;
    if (why || pr_summary_worst(p->s, &worst, &text)) {
        pr_page_label(p, why ? "why" : "finding");
        pr_page_paint(p, worst.severity == SEVERITY_BAD ? "31" : "33");
        pr_buf_str(p->out, pr_buf_text(&text));
        pr_page_paint(p, "0");
        pr_page_end(p);
    }
    pr_buf_done(&text);
}

static void job_lines(struct pr_page *p)
{
    finding_line(p);
    cpu_line(p);
    memory_line(p);
    io_line(p);
    process_line(p);
    match_line(p);
    pr_page_cgroup(p);
    pr_page_gpu(p);
    account_line(p);
}

void pr_summary_text(struct pr_buf *out, struct pr_session *s, const struct pr_facts *facts,
                     const struct pr_look *look)
{
    struct pr_page p = {.out = out, .s = s, .facts = facts, .look = *look};
    verdict_line(&p);
    if (facts->way >= WAY_SYSTEM)
        pr_page_machine(&p);
    else
        job_lines(&p);
    pr_page_phases(&p);
    self_line(&p);
    trouble_line(&p);
}
