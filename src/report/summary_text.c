/* SPDX-License-Identifier: Apache-2.0 */
/* At most eight lines, the most important first; with --match one more. */
#include <math.h>
#include <string.h>

#include "core/self.h"
#include "report/summary.h"
#include "util/clock.h"
#include "util/text.h"

#define COMMAND_SHOWN 60
#define LEFT_SHOWN    3
#define MATCHES_SHOWN 3

struct page {
    struct pr_buf *out;
    struct pr_session *s;
    const struct pr_facts *facts;
    bool color, bars;
};

static void paint(struct page *p, const char *code)
{
    if (p->color)
        pr_buf_printf(p->out, "\033[%sm", code);
}

static void label(struct page *p, const char *name)
{
    pr_buf_str(p->out, "  ");
    paint(p, "2");
    pr_buf_printf(p->out, "%-8s", name);
    paint(p, "0");
}

static void human(struct page *p, double v, enum pr_unit unit)
{
    pr_units_human(p->out, v, unit);
}

static void curve(struct page *p, const struct pr_spark *k, const char *code)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    double top = 0;
    if (!p->bars || k->used < 3)
        return;
    for (unsigned i = 0; i < k->used; i++)
        top = fmax(top, k->point[i]);
    pr_buf_str(p->out, "  ");
    paint(p, code);
    for (unsigned i = 0; i < k->used; i++)
        pr_buf_str(p->out, blocks[top > 0 ? (int)(k->point[i] / top * 7.49) : 0]);
    paint(p, "0");
}

/* As one would type it: blanks inside an argument do not look like several. */
static void argument(struct pr_buf *line, const char *text)
{
    bool quote = !*text || strpbrk(text, " \t\n\"'\\$&|;<>()*?");
    pr_buf_str(line, quote ? "'" : "");
    pr_text_safe(line, text);
    pr_buf_str(line, quote ? "'" : "");
}

static void command(struct page *p)
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

static void verdict_line(struct page *p)
{
    const struct pr_facts *f = p->facts;
    bool bad = f->exit_code > 0 || f->exit_signal > 0;
    char name[32];
    paint(p, "1");
    pr_buf_str(p->out, "proctor: ");
    command(p);
    paint(p, "0");
    pr_buf_str(p->out, "  ");
    if (bad)
        paint(p, "31");
    if (f->exit_signal > 0)
        pr_buf_printf(p->out, "killed by %s", pr_text_signal(f->exit_signal, name, sizeof name));
    else if (f->exit_code >= 0)
        pr_buf_printf(p->out, "exit %d", f->exit_code);
    else if (f->way < WAY_MATCH)
        pr_buf_str(p->out, p->s->gone ? "ended, " : "still running, ");
    if (bad)
        paint(p, "0");
    pr_buf_str(p->out, f->way >= WAY_ATTACH ? "watched for " : " after ");
    human(p, p->s->stats.seconds, UNIT_SECONDS);
    pr_buf_printf(p->out, ", %lu samples", p->s->taken);
    if (p->s->missed)
        pr_buf_printf(p->out, " (%lu missed)", p->s->missed);
    pr_buf_char(p->out, '\n');
}

static void cpu_line(struct page *p)
{
    const struct pr_stats *st = &p->s->stats;
    double total = pr_stats_total(st, METRIC_CPU_TIME);
    if (isnan(total))
        return;
    label(p, "CPU");
    human(p, total, UNIT_SECONDS);
    double user = pr_stats_total(st, METRIC_CPU_USER),
           both = user + pr_stats_total(st, METRIC_CPU_SYSTEM);
    if (both > 0) { /* the split comes in ticks: its proportion says more than its sum */
        pr_buf_str(p->out, " (user ");
        human(p, total * user / both, UNIT_SECONDS);
        pr_buf_str(p->out, ", system ");
        human(p, total * (1 - user / both), UNIT_SECONDS);
        pr_buf_str(p->out, ")");
    }
    double mean = total / st->seconds, limit = p->s->limits.total[LIMIT_CPU];
    /* CPU times arrive in steps, so a short interval can seem to have more than there is. */
    double peak = st->metric[METRIC_CPU_USAGE].max;
    if (peak > limit && peak < limit * 1.1)
        peak = limit;
    if (p->s->ledger.before[METRIC_CPU_TIME] > 0) {
        pr_buf_str(p->out, ", ");
        human(p, p->s->ledger.before[METRIC_CPU_TIME], UNIT_SECONDS);
        pr_buf_str(p->out, " before that");
    }
    pr_buf_str(p->out, "; mean ");
    human(p, mean, UNIT_CORES);
    if (peak > mean) {
        pr_buf_str(p->out, ", peak ");
        pr_units_fixed(p->out, peak, 2);
    }
    if (limit > 0) {
        pr_buf_str(p->out, " of ");
        pr_units_number(p->out, limit);
    }
    curve(p, &st->cpu, "34");
    pr_buf_char(p->out, '\n');
}

static void share_of_limit(struct page *p, double v)
{
    double limit = p->s->limits.total[LIMIT_MEMORY], percent = v / limit * 100;
    if (!(limit > 0))
        return;
    pr_buf_str(p->out, percent < 0.1 ? "; <0.1" : "; ");
    if (percent >= 0.1)
        pr_units_fixed(p->out, percent, percent < 10 ? 1 : 0);
    pr_buf_str(p->out, " % of ");
    human(p, limit, UNIT_BYTES);
}

static void figure(struct page *p, const char *before, double v, const char *name)
{
    pr_buf_str(p->out, before);
    human(p, v, UNIT_BYTES);
    pr_buf_str(p->out, name);
}

/* The largest that is known comes first. A sum of RSS counts shared pages again and again: it
 * stands behind PSS, unless the budget let that be read only now and then. */
static void memory_line(struct page *p)
{
    const struct pr_stat *v = p->s->stats.metric;
    double mark = v[METRIC_MEM_RSS_PEAK].max, rss = v[METRIC_MEM_RSS].max;
    double pss =
        v[METRIC_MEM_PSS].known * 2 > v[METRIC_MEM_RSS].known ? v[METRIC_MEM_PSS].max : NAN;
    bool marked = !isnan(mark) && !(mark <= rss);
    if (isnan(pss) && isnan(rss) && !marked)
        return;
    label(p, "memory");
    const char *next = "peak ";
    if (marked) {
        figure(p, "peak ", mark, " in one process");
        next = "; sampled: ";
    }
    if (!isnan(pss)) {
        figure(p, next, pss, " PSS");
        next = ", ";
    }
    if (!isnan(rss))
        figure(p, next, rss, " RSS");
    share_of_limit(p, marked ? mark : isnan(pss) ? rss : pss);
    curve(p, &p->s->stats.memory, "35");
    pr_buf_char(p->out, '\n');
}

static void io_line(struct page *p)
{
    const struct pr_stats *st = &p->s->stats;
    if (isnan(pr_stats_total(st, METRIC_IO_READ)))
        return;
    label(p, "I/O");
    if (p->s->io_unreadable && p->facts->way >= WAY_ATTACH)
        pr_buf_printf(p->out, "not readable of %lu processes, the others: ", p->s->io_unreadable);
    pr_buf_str(p->out, "storage: ");
    human(p, pr_stats_total(st, METRIC_IO_READ), UNIT_BYTES);
    pr_buf_str(p->out, " read, ");
    human(p, pr_stats_total(st, METRIC_IO_WRITE), UNIT_BYTES);
    pr_buf_str(p->out, " written");
    if (!isnan(pr_stats_total(st, METRIC_IO_RCHAR))) {
        pr_buf_str(p->out, "; all calls: ");
        human(p, pr_stats_total(st, METRIC_IO_RCHAR), UNIT_BYTES);
        pr_buf_str(p->out, " read, ");
        human(p, pr_stats_total(st, METRIC_IO_WCHAR), UNIT_BYTES);
        pr_buf_str(p->out, " written");
    }
    pr_buf_char(p->out, '\n');
}

static void process_line(struct page *p)
{
    const struct pr_stats *st = &p->s->stats;
    double most = st->metric[METRIC_PROCS].max, threads = st->metric[METRIC_THREADS].max;
    label(p, "procs");
    /* Who reaps children may have had some that we never saw. */
    pr_buf_printf(p->out, "%s%lu seen", p->s->ledger.absorbed ? "at least " : "",
                  (unsigned long)p->s->set.started);
    if (most > 0)
        pr_buf_printf(p->out, ", most at once %.0f", most);
    if (threads > 0)
        pr_buf_printf(p->out, " with %.0f thread%s", threads, threads > 1 ? "s" : "");
    if (p->s->left_count) {
        pr_buf_printf(p->out, "; %zu left running:", p->s->left_count);
        for (size_t i = 0; i < p->s->left_count && i < LEFT_SHOWN; i++) {
            pr_buf_str(p->out, i ? ", " : " ");
            pr_text_safe(p->out, p->s->left[i].comm);
            pr_buf_printf(p->out, " (%d)", (int)p->s->left[i].pid);
        }
        pr_buf_str(p->out, p->s->left_count > LEFT_SHOWN ? ", ..." : "");
    }
    pr_buf_char(p->out, '\n');
}

static void account_line(struct page *p)
{
    bool cpu = pr_summary_complete(p->s, p->facts, ACCOUNT_CPU);
    bool complete = pr_summary_complete(p->s, p->facts, ACCOUNT_IO) && cpu;
    struct pr_buf note = {0};
    pr_summary_note(p->s, p->facts, cpu ? ACCOUNT_IO : ACCOUNT_CPU, &note);
    label(p, "counted");
    pr_buf_str(p->out, pr_summary_source(p->s, p->facts, ACCOUNT_CPU));
    if (!complete)
        paint(p, "33");
    pr_buf_str(p->out, complete ? "; complete" : cpu ? "; I/O not complete" : "; not complete");
    if (note.len)
        pr_buf_printf(p->out, ": %s", pr_buf_text(&note));
    if (!complete)
        paint(p, "0");
    pr_buf_char(p->out, '\n');
    pr_buf_done(&note);
}

static void self_line(struct page *p)
{
    double cpu = pr_seconds(p->s->self_cpu), rss = pr_self_rss_peak();
    label(p, "cost");
    human(p, cpu, UNIT_SECONDS);
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
        human(p, rss, UNIT_BYTES);
    }
    pr_buf_char(p->out, '\n');
}

static void trouble_line(struct page *p)
{
    if (!p->s->events.problems)
        return;
    label(p, "trouble");
    paint(p, "33");
    for (size_t i = 0; i < p->s->events.count; i++) {
        if (p->s->events.item[i].type != EVENT_PROBLEM)
            continue;
        pr_text_safe(p->out, p->s->events.item[i].text);
        break;
    }
    if (p->s->events.problems > 1)
        pr_buf_printf(p->out, " (and %u more)", p->s->events.problems - 1);
    paint(p, "0");
    pr_buf_char(p->out, '\n');
}

/* --- by name ---------------------------------------------------------------------------------- */

static void match_line(struct page *p)
{
    const struct pr_matches *m = &p->s->matches;
    if (!m->count)
        return;
    label(p, "by name");
    for (size_t i = 0; i < m->count && i < MATCHES_SHOWN; i++) {
        const struct pr_stat *v = m->items[i].stats.metric;
        double memory = v[METRIC_MEM_PSS].known ? v[METRIC_MEM_PSS].max : v[METRIC_MEM_RSS].max;
        pr_buf_str(p->out, i ? "; " : "");
        pr_text_safe(p->out, m->items[i].name);
        pr_buf_printf(p->out, ": %lu seen", (unsigned long)m->items[i].instances);
        if (!isnan(v[METRIC_CPU_TIME].last)) {
            pr_buf_str(p->out, ", ");
            human(p, v[METRIC_CPU_TIME].last, UNIT_SECONDS);
            pr_buf_str(p->out, " of CPU");
        }
        if (!isnan(memory))
            figure(p, ", peak ", memory, v[METRIC_MEM_PSS].known ? " PSS" : " RSS");
    }
    pr_buf_str(p->out, m->count > MATCHES_SHOWN ? "; ...\n" : "\n");
}

/* --- a machine -------------------------------------------------------------------------------- */

/* Several figures of one kind in a line; those that are absent are left out. */
struct item {
    const char *before;
    enum pr_metric_id id;
    bool peak; /* else the total, or the last value */
    const char *behind;
};

static bool items(struct page *p, const char *name, const struct item *item, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const struct pr_stat *v = &p->s->stats.metric[item[i].id];
        double value = item[i].peak ? v->max : v->last;
        if (isnan(value))
            continue;
        if (!any)
            label(p, name);
        else
            pr_buf_str(p->out, ", ");
        any = true;
        pr_buf_str(p->out, item[i].before);
        human(p, value, pr_metrics[item[i].id].unit);
        pr_buf_str(p->out, item[i].behind);
    }
    return any;
}
#define ITEMS(p, name, list) items(p, name, list, sizeof list / sizeof *list)

static void machine_cpu_line(struct page *p)
{
    static const struct item parts[] = {
        {"user ", METRIC_SYSTEM_CPU_USER, false, ""},
        {"system ", METRIC_SYSTEM_CPU_SYSTEM, false, ""},
        {"waiting for storage ", METRIC_SYSTEM_CPU_IOWAIT, false, ""},
        {"stolen ", METRIC_SYSTEM_CPU_STEAL, false, ""},
    };
    const struct pr_stats *st = &p->s->stats;
    double peak = st->metric[METRIC_SYSTEM_CPU_USAGE].max;
    if (!ITEMS(p, "CPU", parts))
        return;
    pr_buf_str(p->out, "; mean ");
    human(p, pr_stats_mean(st, METRIC_SYSTEM_CPU_USAGE), UNIT_CORES);
    if (!isnan(peak)) {
        pr_buf_str(p->out, ", peak ");
        pr_units_fixed(p->out, peak, 2);
    }
    pr_buf_str(p->out, " of ");
    pr_units_number(p->out, p->s->limits.total[LIMIT_CPU]);
    curve(p, &st->cpu, "34");
    pr_buf_char(p->out, '\n');
}

static void machine_lines(struct page *p)
{
    static const struct item memory[] = {
        {"peak ", METRIC_SYSTEM_MEM_USED, true, " used"},
        {"", METRIC_SYSTEM_MEM_TOTAL, false, " in all"},
        {"swap peak ", METRIC_SYSTEM_SWAP_USED, true, ""},
    };
    static const struct item disk[] = {
        {"", METRIC_SYSTEM_DISK_READ, false, " read"},
        {"", METRIC_SYSTEM_DISK_WRITE, false, " written"},
        {"", METRIC_SYSTEM_DISK_SPACE_FREE, false, " free"},
        {"", METRIC_SYSTEM_DISK_SPACE_TOTAL, false, " in all"},
    };
    static const struct item net[] = {
        {"", METRIC_SYSTEM_NET_RX, false, " received"},
        {"", METRIC_SYSTEM_NET_TX, false, " sent"},
    };
    static const struct item pressure[] = {
        {"for a CPU ", METRIC_SYSTEM_PSI_CPU, false, ""},
        {"for memory ", METRIC_SYSTEM_PSI_MEMORY, false, ""},
        {"for storage ", METRIC_SYSTEM_PSI_IO, false, ""},
    };
    machine_cpu_line(p);
    if (ITEMS(p, "memory", memory)) {
        curve(p, &p->s->stats.memory, "35");
        pr_buf_char(p->out, '\n');
    }
    pr_buf_str(p->out, ITEMS(p, "disk", disk) ? "\n" : "");
    pr_buf_str(p->out, ITEMS(p, "network", net) ? "\n" : "");
    pr_buf_str(p->out, ITEMS(p, "waiting", pressure) ? "\n" : "");
}

static void job_lines(struct page *p)
{
    cpu_line(p);
    memory_line(p);
    io_line(p);
    process_line(p);
    match_line(p);
    account_line(p);
}

void pr_summary_text(struct pr_buf *out, struct pr_session *s, const struct pr_facts *facts,
                     bool color, bool bars)
{
    struct page p = {out, s, facts, color, bars};
    verdict_line(&p);
    if (facts->way == WAY_SYSTEM)
        machine_lines(&p);
    else
        job_lines(&p);
    self_line(&p);
    trouble_line(&p);
}
