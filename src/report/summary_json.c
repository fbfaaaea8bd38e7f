/* SPDX-License-Identifier: Apache-2.0 */
/* The keys here are a promise: they may be added to, never renamed. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/self.h"
#include "core/stats_json.h"
#include "report/summary.h"
#include "util/clock.h"
#include "util/json.h"

#define SCHEMA 1

static void number(struct pr_json *j, const char *key, double v)
{
    pr_json_key(j, key);
    pr_json_number(j, v);
}

static void integer(struct pr_json *j, const char *key, int64_t v)
{
    pr_json_key(j, key);
    pr_json_int(j, v);
}

static void text(struct pr_json *j, const char *key, const char *v)
{
    pr_json_key(j, key);
    pr_json_string(j, v);
}

static void boolean(struct pr_json *j, const char *key, bool v)
{
    pr_json_key(j, key);
    pr_json_bool(j, v);
}

static void open(struct pr_json *j, const char *key, char bracket)
{
    pr_json_key(j, key);
    pr_json_open(j, bracket);
}

/* Of labels with the same key the last one counts. */
static bool comes_again(const struct pr_list *labels, size_t at, size_t key_len)
{
    for (size_t i = at + 1; i < labels->count; i++)
        if (strncmp(labels->items[i], labels->items[at], key_len) == 0)
            return true;
    return false;
}

static void put_labels(struct pr_json *j, const struct pr_list *labels)
{
    open(j, "labels", '{');
    for (size_t i = 0; i < labels->count; i++) {
        char key[256];
        const char *equals = strchr(labels->items[i], '=');
        size_t n = (size_t)(equals - labels->items[i]);
        if (comes_again(labels, i, n + 1))
            continue;
        n = n < sizeof key - 1 ? n : sizeof key - 1;
        memcpy(key, labels->items[i], n);
        key[n] = '\0';
        text(j, key, equals + 1);
    }
    pr_json_close(j, '}');
}

static void put_identity(struct pr_json *j, const struct pr_session *s,
                         const struct pr_facts *facts)
{
    char here[256] = "";
    gethostname(here, sizeof here - 1);
    text(j, "id", s->run_id);
    text(j, "parent", *s->parent ? s->parent : NULL);
    open(j, "command", '[');
    for (char **arg = facts->argv; arg && *arg; arg++)
        pr_json_string(j, *arg);
    pr_json_close(j, ']');
    text(j, "target", *facts->target ? facts->target : NULL);
    text(j, "cwd", *facts->cwd ? facts->cwd : NULL);
    text(j, "host", facts->host ? facts->host : here);
    text(j, "name", s->config->name);
    text(j, "node", s->config->node);
    put_labels(j, &s->config->label);
}

static void put_run(struct pr_json *j, const struct pr_session *s, const struct pr_facts *facts)
{
    char started[40];
    pr_clock_rfc3339(s->start_wall, started, sizeof started);
    open(j, "run", '{');
    put_identity(j, s, facts);
    text(j, "file", s->file);
    text(j, "started", started);
    number(j, "duration", s->stats.seconds);
    number(j, "interval", s->config->interval);
    pr_json_close(j, '}');
}

static void put_optional(struct pr_json *j, const char *key, int v)
{
    pr_json_key(j, key);
    if (v < 0)
        pr_json_null(j);
    else
        pr_json_int(j, v);
}

static void put_exit(struct pr_json *j, const struct pr_facts *facts)
{
    open(j, "exit", '{');
    put_optional(j, "code", facts->exit_code);
    put_optional(j, "signal", facts->exit_signal);
    pr_json_close(j, '}');
}

static void put_metrics(struct pr_json *j, const struct pr_session *s)
{
    open(j, "metrics", '{');
    for (int id = 0; id < METRIC_COUNT; id++)
        if (pr_selected(&s->select, id) && pr_summary_known(s, (enum pr_metric_id)id))
            pr_stats_put(j, &s->stats, (enum pr_metric_id)id, NULL);
    pr_json_close(j, '}');
}

/* A process is in one of them only, with its own use alone. */
static void put_match(struct pr_json *j, const struct pr_session *s, const struct pr_match *m)
{
    pr_json_open(j, '{');
    text(j, "name", m->name);
    integer(j, "instances", (int64_t)m->instances);
    integer(j, "samples", (int64_t)m->samples);
    number(j, "first_seen", m->first_seen);
    number(j, "last_seen", m->last_seen);
    number(j, "duration", m->last_seen - m->first_seen);
    open(j, "metrics", '{');
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_selected(&s->select, id) && m->stats.metric[id].known)
            pr_stats_put(j, &m->stats, (enum pr_metric_id)id, &m->each[id]);
    pr_json_close(j, '}');
    pr_json_close(j, '}');
}

static void put_matches(struct pr_json *j, const struct pr_session *s)
{
    open(j, "matches", '[');
    for (size_t i = 0; i < s->matches.count; i++)
        put_match(j, s, &s->matches.items[i]);
    pr_json_close(j, ']');
}

static void put_findings(struct pr_json *j, const struct pr_session *s,
                         const struct pr_facts *facts)
{
    struct pr_buf finding = {0};
    pr_summary_finding(s, facts, &finding);
    open(j, "findings", '[');
    if (finding.len)
        pr_json_string(j, pr_buf_text(&finding));
    pr_json_close(j, ']');
    pr_buf_done(&finding);
}

static void put_absent(struct pr_json *j, const struct pr_session *s)
{
    open(j, "absent", '[');
    for (int id = 0; id < METRIC_COUNT; id++) {
        if (!pr_selected(&s->select, id) || pr_summary_known(s, (enum pr_metric_id)id) ||
            !pr_metric_is_single((enum pr_metric_id)id))
            continue;
        pr_json_open(j, '{');
        text(j, "metric", pr_metrics[id].key);
        text(j, "reason", pr_summary_reason(s, (enum pr_metric_id)id));
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
}

/* What the peak of the job was at the most: of one process its own mark; of several the sum of the
 * marks of those alive together, where everybody is known and every mark final. Else NaN. */
static double upper_bound(const struct pr_session *s, const struct pr_facts *facts, bool one)
{
    if (one)
        return pr_stats_peak(&s->stats, METRIC_MEM_RSS_PEAK);
    struct pr_unsampled u = pr_summary_unsampled(s, facts);
    return u.most == u.least ? pr_roll_upper(&s->roll) : NAN;
}

/* bounds: the least and the most that it was, where that is another question; else NULL. */
static void put_account(struct pr_json *j, const char *key, const char *source, bool complete,
                        double residual, double before, const char *note, const double *bounds)
{
    open(j, key, '{');
    text(j, "source", source);
    boolean(j, "complete", complete);
    number(j, "residual", residual);
    number(j, "before", before);
    text(j, "note", note && *note ? note : NULL);
    if (bounds) {
        number(j, "lower", bounds[0]);
        number(j, "upper", bounds[1]);
    }
    pr_json_close(j, '}');
}

/* Who waited for whom is not in a record. */
static void put_rebuilt(struct pr_json *j, const struct pr_session *s)
{
    static const char source[] = "rebuilt from the samples of the record",
                      note[] = "what was used after the last sample is not in it";
    open(j, "accounting", '{');
    put_account(j, "cpu", source, false, NAN, NAN, note, NULL);
    put_account(j, "io", source, false, NAN, NAN, note, NULL);
    put_account(j, "memory_peak", source, false, NAN, NAN,
                "a lower bound where several peak together between samples",
                (double[]){pr_stats_peak(&s->stats, METRIC_MEM_RSS_PEAK), NAN});
    pr_json_close(j, '}');
}

static void put_accounting(struct pr_json *j, const struct pr_session *s,
                           const struct pr_facts *facts)
{
    struct pr_buf note = {0};
    const double *before = s->ledger.before;
    bool complete = pr_summary_complete(s, facts, ACCOUNT_IO),
         small = s->high[METRIC_MEM_RSS_PEAK] <= s->rss_floor;
    bool one = s->set.started == 1 && !s->ledger.absorbed && !small;
    pr_summary_note(s, facts, ACCOUNT_CPU, &note);
    open(j, "accounting", '{');
    put_account(j, "cpu", pr_summary_source(s, facts, ACCOUNT_CPU),
                pr_summary_complete(s, facts, ACCOUNT_CPU), pr_summary_residual(s),
                before[METRIC_CPU_TIME], pr_buf_text(&note), NULL);
    pr_buf_reset(&note);
    pr_summary_note(s, facts, ACCOUNT_IO, &note);
    if (s->io_unreadable)
        pr_buf_printf(&note, "%sthe I/O of %lu processes could not be read while they lived",
                      note.len ? "; " : "", s->io_unreadable);
    if (facts->way == WAY_ATTACH_ALONE)
        pr_buf_printf(&note, "%swhat children did that it has reaped is in it",
                      note.len ? "; " : "");
    /* What was reaped brought its I/O with it, readable or not. */
    bool io_complete = complete && (facts->way == WAY_RUN || !s->io_unreadable);
    put_account(j, "io", pr_summary_source(s, facts, ACCOUNT_IO), io_complete, NAN,
                before[METRIC_IO_READ] + before[METRIC_IO_WRITE], pr_buf_text(&note), NULL);
    put_account(
        j, "memory_peak", "VmHWM of living processes, rusage of reaped ones, sampled sums", one,
        NAN, NAN,
        one ? NULL
        : small
            ? "not above proctor's own size at the fork, below which rusage tells nothing"
            : "the larger of the highest sampled sum and the largest mark of one process: a lower "
              "bound where several peak together between samples",
        (double[]){pr_stats_peak(&s->stats, METRIC_MEM_RSS_PEAK), upper_bound(s, facts, one)});
    pr_json_close(j, '}');
    pr_buf_done(&note);
}

static void put_limits(struct pr_json *j, const struct pr_limits *l)
{
    static const struct {
        enum pr_limit id;
        const char *key, *unit;
    } rows[] = {{LIMIT_CPU, "cpu", "cores"}, {LIMIT_MEMORY, "memory", "bytes"}};
    open(j, "limits", '{');
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open(j, rows[i].key, '{');
        number(j, rows[i].unit, l->total[rows[i].id]);
        text(j, "source", l->source[rows[i].id]);
        pr_json_close(j, '}');
    }
    pr_json_close(j, '}');
}

static void put_counts(struct pr_json *j, const struct pr_session *s, bool rebuilt)
{
    open(j, "samples", '{');
    integer(j, "taken", (int64_t)s->taken);
    number(j, "late", rebuilt ? NAN : (double)s->late);
    number(j, "missed", rebuilt ? NAN : (double)s->missed);
    pr_json_close(j, '}');
}

static void put_events(struct pr_json *j, const struct pr_session *s)
{
    const struct pr_events *e = &s->events;
    open(j, "events", '[');
    for (size_t i = 0; i < e->count; i++) {
        pr_json_open(j, '{');
        text(j, "type", pr_event_type_name(e->item[i].type));
        number(j, "at", e->item[i].at);
        number(j, "seconds", e->item[i].seconds);
        text(j, "text", e->item[i].text);
        pr_json_close(j, '}');
    }
    pr_summary_marks(j, s);
    pr_json_close(j, ']');
}

static void put_left(struct pr_json *j, const struct pr_session *s)
{
    open(j, "left_running", '[');
    for (size_t i = 0; i < s->left_count; i++) {
        pr_json_open(j, '{');
        integer(j, "pid", s->left[i].pid);
        text(j, "command", s->left[i].comm);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
}

/* Publishing goes on after the record is closed: what is in there has not got this. */
static void put_publishing(struct pr_json *j, const struct pr_facts *facts)
{
    open(j, "publishing", '[');
    for (size_t i = 0; i < facts->published_count; i++) {
        const struct pr_publishing *p = &facts->published[i];
        pr_json_open(j, '{');
        text(j, "kind", p->kind);
        text(j, "url", p->url);
        text(j, "remote", *p->remote ? p->remote : NULL);
        integer(j, "sent", p->sent);
        number(j, "left", p->left < 0 ? NAN : (double)p->left);
        integer(j, "refused", p->refused);
        integer(j, "rejected_points", p->rejected);
        text(j, "error", *p->error ? p->error : NULL);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
}

double pr_summary_self_rss(const struct pr_session *s)
{
    return s->self_rss > 0 ? s->self_rss : pr_self_rss_peak();
}

static void put_self(struct pr_json *j, const struct pr_session *s, bool rebuilt)
{
    double cpu = rebuilt ? NAN : pr_seconds(s->self_cpu);
    open(j, "self", '{');
    number(j, "cpu_seconds", cpu);
    number(j, "cpu_ratio", s->stats.seconds > 0 ? cpu / s->stats.seconds : NAN);
    number(j, "rss_peak_bytes", s->inside ? NAN : pr_summary_self_rss(s));
    pr_summary_gpu_cost(j, s);
    pr_json_close(j, '}');
}

const char *pr_way_name(enum pr_way way)
{
    static const char *const names[] = {[WAY_RUN] = "run",
                                        [WAY_RUN_NO_SUBREAPER] = "run without subreaper",
                                        [WAY_ATTACH] = "attach",
                                        [WAY_ATTACH_ALONE] = "attach alone",
                                        [WAY_MATCH] = "match",
                                        [WAY_SYSTEM] = "system",
                                        [WAY_EVERYBODY] = "everybody"};
    return names[way];
}

static void put_all(struct pr_json *j, struct pr_session *s, const struct pr_facts *facts)
{
    integer(j, "schema", SCHEMA);
    if (facts->rebuilt)
        boolean(j, "rebuilt", true);
    put_run(j, s, facts);
    put_exit(j, facts);
    put_metrics(j, s);
    if (facts->rebuilt)
        put_rebuilt(j, s);
    else
        put_accounting(j, s, facts);
    pr_summary_processes(j, s, facts);
    put_counts(j, s, facts->rebuilt);
    put_absent(j, s);
    put_limits(j, &s->limits);
    pr_summary_phases(j, s);
    pr_summary_devices(j, s);
    put_matches(j, s);
    put_findings(j, s, facts);
    integer(j, "events_total", (int64_t)(s->events.total + s->phases.marked));
    put_events(j, s);
    put_left(j, s);
    put_self(j, s, facts->rebuilt);
    if (facts->published_count)
        put_publishing(j, facts);
}

void pr_summary_json(struct pr_buf *out, struct pr_session *s, const struct pr_facts *facts)
{
    struct pr_json j = {.out = out, .indent = 2};
    pr_json_open(&j, '{');
    put_all(&j, s, facts);
    pr_json_close(&j, '}');
    pr_buf_char(out, '\n');
}

void pr_summary_members(struct pr_buf *out, struct pr_session *s, const struct pr_facts *facts)
{
    struct pr_json j = {.out = out};
    put_all(&j, s, facts);
}

/* What sinks are told of a job besides its values, for those that are fed from a record. */
static void put_job(struct pr_json *j, const struct pr_session *s)
{
    open(j, "job", '{');
    put_optional(j, "pid", s->job.pid > 0 ? s->job.pid : -1);
    put_optional(j, "group", s->job.group > 0 ? s->job.group : -1);
    boolean(j, "no_gpu", s->job.no_gpu);
    pr_json_close(j, '}');
}

void pr_summary_run_members(struct pr_buf *out, const struct pr_session *s,
                            const struct pr_facts *facts)
{
    struct pr_json j = {.out = out};
    put_identity(&j, s, facts);
    number(&j, "interval", s->config->interval);
    text(&j, "way", pr_way_name(facts->way));
    put_optional(&j, "pid", facts->pid > 0 ? facts->pid : -1);
    put_job(&j, s);
    put_limits(&j, &s->limits);
    open(&j, "recorder", '{');
    integer(&j, "pid", getpid());
    integer(&j, "start_ticks", (int64_t)pr_self_start());
    pr_json_close(&j, '}');
    text(&j, "version", PROCTOR_VERSION);
}
