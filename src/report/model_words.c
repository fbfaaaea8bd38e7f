/* SPDX-License-Identifier: Apache-2.0 */
/* What the run was, what it may use, and how it was measured: in words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/nodes.h"
#include "util/clock.h"
#include "util/text.h"

#define COUNT(list)   (sizeof list / sizeof *list)
#define COMMAND_BYTES 120

/* The first column of a row of a query on the summary, or of the file; NULL for none. */
static const char *one(struct pr_model *m, const struct pr_stored *r, const char *sql)
{
    struct pr_query *q = NULL;
    const char *text = NULL;
    if (pr_query_new(&q, r->db, sql) == 0) {
        pr_query_text(q, 1, m->summary.data);
        const char *found = pr_query_step(q) == 1 ? pr_query_get_text(q, 0) : NULL;
        text = found ? pr_model_text(m, "%s", found) : NULL;
    }
    pr_query_free(q);
    return text;
}

static void pairs(struct pr_model *m, const struct pr_stored *r, struct pr_model_pairs *list,
                  const char *title, const char *sql)
{
    struct pr_query *q = NULL;
    if (pr_query_new(&q, r->db, sql) == 0) {
        pr_query_text(q, 1, m->summary.data);
        while (pr_query_step(q) == 1) {
            const char *what = pr_query_get_text(q, 0), *words = pr_query_get_text(q, 1);
            if (!what || !words)
                continue;
            pr_model_say(m, list, title, pr_model_text(m, "%s", what),
                         pr_model_text(m, "%s", words));
            title = NULL;
        }
    }
    pr_query_free(q);
}

/* --- who and where -----------------------------------------------------------------------------
 */

static void command(struct pr_model *m, const struct pr_stored *r)
{
    struct pr_query *q = NULL;
    struct pr_buf line = {0};
    if (pr_query_new(&q, r->db, "SELECT value FROM json_each(?1, '$.run.command')") == 0) {
        pr_query_text(q, 1, m->summary.data);
        while (pr_query_step(q) == 1) {
            const char *text = pr_query_get_text(q, 0), **kept = LIST_ADD(m, &m->argv);
            if (kept)
                *kept = pr_model_text(m, "%s", text ? text : "");
        }
    }
    pr_query_free(q);
    for (size_t i = 0; i < m->argv.count; i++) {
        const char *arg = m->argv.items[i], *slash = i ? NULL : strrchr(arg, '/');
        pr_buf_printf(&line, "%s%s", i ? " " : "", slash && slash[1] ? slash + 1 : arg);
    }
    for (size_t i = 0; i < line.len; i++) /* one line */
        if (line.data[i] == '\n' || line.data[i] == '\t')
            line.data[i] = ' ';
    bool cut = line.len > COMMAND_BYTES;
    while (cut && line.len > COMMAND_BYTES - 3)
        do /* whole characters */
            line.len--;
        while (line.len && ((unsigned char)line.data[line.len] & 0xc0) == 0x80);
    pr_buf_str(&line, cut ? "..." : "");
    const char *target = line.len ? NULL : one(m, r, "SELECT json_extract(?1, '$.run.target')");
    m->command = line.len     ? pr_model_keep(m, &line)
                 : target     ? target
                 : m->machine ? "machine"
                              : "a run";
    pr_buf_done(&line);
}

static void host(struct pr_model *m, const struct pr_stored *r)
{
    struct pr_buf text = {0};
    struct pr_query *q = NULL;
    const char *cores = one(m, r, "SELECT count(*) FROM entities WHERE kind = 'core' AND ?1 <> ''");
    pr_buf_str(&text, r->host);
    if (cores && atoi(cores) > 0)
        pr_buf_printf(&text, "%s%s core%s", text.len ? ", " : "", cores,
                      atoi(cores) > 1 ? "s" : "");
    if (pr_query_new(&q, r->db,
                     "SELECT count(*), coalesce(model, 'GPU') FROM entities"
                     " WHERE kind = 'gpu' AND counted GROUP BY 2 ORDER BY 1 DESC") == 0)
        while (pr_query_step(q) == 1)
            pr_buf_printf(&text, ", %d x %s", (int)pr_query_get_int(q, 0), pr_query_get_text(q, 1));
    pr_query_free(q);
    m->host = pr_model_keep(m, &text);
    pr_buf_done(&text);
}

static void verdict(struct pr_model *m, const struct pr_stored *r)
{
    char name[32];
    m->exit_code = r->exit_code;
    m->severity = SEVERITY_NOTE;
    if (r->exit_signal > 0)
        m->signal = pr_model_text(m, "%s", pr_text_signal(r->exit_signal, name, sizeof name));
    if (r->state == RUN_RUNNING) {
        m->verdict = "still running";
    } else if (r->state == RUN_DIED || r->recovered) { /* as `proctor show` has it */
        m->verdict = r->recovered ? "recovered: how the job ended is not known"
                                  : "died: how the job ended is not known";
        m->severity = SEVERITY_WARN;
    } else if (r->state == RUN_ELSEWHERE) { /* of a node that goes on, most likely */
        m->verdict = "no end is recorded: its recorder is of another machine";
    } else if (m->signal) {
        m->verdict = pr_model_text(m, "killed by %s", m->signal);
        m->severity = SEVERITY_BAD;
    } else if (r->exit_code >= 0) {
        m->verdict =
            pr_model_text(m, "%s, exit %d", r->exit_code ? "failed" : "finished", r->exit_code);
        m->severity = r->exit_code ? SEVERITY_BAD : SEVERITY_GOOD;
    } else {
        m->verdict = "recording ended";
    }
}

/* How it ended, where that is worth a look. */
static void last_event(struct pr_model *m)
{
    struct pr_model_event *e =
        m->severity == SEVERITY_BAD && !isnan(m->duration) ? LIST_ADD(m, &m->events) : NULL;
    if (e)
        *e = (struct pr_model_event){m->duration, m->signal ? "signal" : "exit", m->verdict,
                                     SEVERITY_BAD};
}

/* --- limits ------------------------------------------------------------------------------------
 */

static struct pr_bound bound(struct pr_model *m, const char *before, double v, enum pr_unit unit)
{
    struct pr_buf text = {0};
    struct pr_bound b = {v, NULL};
    if (v > 0 && isfinite(v)) {
        pr_buf_printf(&text, "%s ", before);
        pr_model_human(&text, v, unit);
        b.text = pr_model_keep(m, &text);
    }
    pr_buf_done(&text);
    return b;
}

static void limits(struct pr_model *m, const struct pr_stored *r)
{
    const struct pr_limits *l = &r->limits;
    bool cpu_is_machine = strcmp(l->source[LIMIT_CPU], "machine") == 0,
         memory_is_machine = strcmp(l->source[LIMIT_MEMORY], "machine") == 0;
    const char *cores = one(m, r, "SELECT count(*) FROM entities WHERE kind = 'core' AND ?1 <> ''");
    double memory = pr_model_number(m, r, "$.metrics.\"system.mem.total\".peak");
    struct pr_bound cpu = bound(m, cpu_is_machine ? "machine" : "allowed", l->total[LIMIT_CPU],
                                UNIT_CORES),
                    mem = bound(m, memory_is_machine ? "machine" : "limit", l->total[LIMIT_MEMORY],
                                UNIT_BYTES),
                    all_cpu = bound(m, "machine", cores ? atof(cores) : NAN, UNIT_CORES),
                    all_mem = bound(m, "machine", memory, UNIT_BYTES);
    for (size_t i = 0; i < m->series.count; i++) {
        struct pr_model_series *s = &m->series.items[i];
        if (s->group == GROUP_CPU) {
            s->limit = cpu;
            s->host = cpu_is_machine ? (struct pr_bound){0} : all_cpu;
        } else if (s->group == GROUP_MEMORY) {
            s->limit = mem;
            s->host = memory_is_machine ? (struct pr_bound){0} : all_mem;
        }
    }
}

void pr_model_identity(struct pr_model *m, const struct pr_stored *r)
{
    m->id = pr_model_text(m, "%s", r->id);
    m->began = pr_seconds(r->started);
    m->duration = pr_model_number(m, r, "$.run.duration");
    command(m, r);
    m->cwd = one(m, r, "SELECT json_extract(?1, '$.run.cwd')");
    const char *name = one(m, r, "SELECT json_extract(?1, '$.run.name')");
    m->node = one(m, r, "SELECT node FROM run WHERE ?1 <> '' AND node <> ''");
    m->name = name ? name : pr_model_text(m, "%.60s %s", m->command, m->id);
    host(m, r);
    limits(m, r);
    verdict(m, r);
    last_event(m);
    pairs(m, r, &m->labels, NULL, "SELECT key, value FROM json_each(?1, '$.run.labels')");
}

/* --- how it was measured -----------------------------------------------------------------------
 */

static void facts(struct pr_model *m, const struct pr_stored *r)
{
    static const char *const rows[][2] = {
        {"command", "SELECT group_concat(value, ' ') FROM json_each(?1, '$.run.command')"},
        {"directory", "SELECT json_extract(?1, '$.run.cwd')"},
        {"target", "SELECT json_extract(?1, '$.run.target')"},
        {"run", "SELECT json_extract(?1, '$.run.id')"},
        {"name", "SELECT json_extract(?1, '$.run.name')"},
        {"within run", "SELECT json_extract(?1, '$.run.parent')"},
        {"node", "SELECT json_extract(?1, '$.run.node')"},
        {"began", "SELECT json_extract(?1, '$.run.started')"},
        {"labels",
         "SELECT group_concat(key || '=' || value, ', ') FROM json_each(?1, '$.run.labels')"},
        {"recorded by", "SELECT 'proctor ' || version FROM run WHERE ?1 <> ''"},
    };
    struct pr_buf text = {0};
    for (size_t i = 0; i < COUNT(rows); i++)
        pr_model_say(m, &m->facts, NULL, rows[i][0], one(m, r, rows[i][1]));
    pr_model_say(m, &m->facts, NULL, "machine", m->host);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (isnan(r->limits.total[i]))
            continue;
        pr_model_human(&text, r->limits.total[i], i == LIMIT_CPU ? UNIT_CORES : UNIT_BYTES);
        pr_buf_printf(&text, " (%s)", r->limits.source[i]);
        pr_model_say(m, &m->facts, NULL, i == LIMIT_CPU ? "CPU limit" : "memory limit",
                     pr_model_keep(m, &text));
    }
    pr_buf_done(&text);
}

static const char *memory_way(const struct pr_model *m)
{
    const struct pr_model_series *s = pr_model_find(m, GROUP_MEMORY);
    if (m->machine)
        return "what the machine uses: total less available";
    if (m->rss)
        return "RSS, summed over processes: shared pages count once for each; PSS is not known of "
               "all the runs that are compared";
    return s && s->metric && strcmp(s->metric, "mem.pss") == 0
               ? "PSS, summed over processes: shared pages are divided among those that share them"
               : "RSS, summed over processes: shared pages count once for each; PSS was not read "
                 "often enough";
}

const char *pr_model_points(struct pr_model *m)
{
    struct pr_buf text = {0};
    if (m->curves.width > 0) {
        pr_buf_printf(&text, "%zu parts of ", m->curves.count);
        pr_model_human(&text, m->curves.width, UNIT_SECONDS);
        pr_buf_str(&text, ", each with its least, mean and most");
    } else {
        pr_buf_str(&text, "a point for each sample");
    }
    const char *words = pr_model_keep(m, &text);
    pr_buf_done(&text);
    return words;
}

static void completeness(struct pr_model *m, const struct pr_stored *r)
{
    struct pr_buf text = {0};
    double late = pr_model_number(m, r, "$.samples.late"),
           missed = pr_model_number(m, r, "$.samples.missed");
    pr_model_human(&text, r->interval, UNIT_SECONDS);
    pr_model_say(m, &m->measured, "Completeness", "interval", pr_model_keep(m, &text));
    pr_buf_printf(&text, "%lu in the record", m->curves.samples);
    if (!isnan(late) && !isnan(missed))
        pr_buf_printf(&text, ", %.0f late, %.0f missed", late, missed);
    pr_model_say(m, &m->measured, NULL, "samples", pr_model_keep(m, &text));
    double least = pr_model_number(m, r, "$.processes.never_sampled_least");
    pr_buf_printf(&text, "%.0f seen", m->seen);
    if (least > 0)
        pr_buf_printf(&text, ", at least %.0f of them between two samples", least);
    pr_model_say(m, &m->measured, NULL, "processes", pr_model_keep(m, &text));
    pr_model_say(m, &m->measured, NULL, MODEL_POINTS_SAID, pr_model_points(m));
    pr_buf_done(&text);
}

void pr_model_method(struct pr_model *m, const struct pr_stored *r)
{
    struct pr_buf text = {0};
    facts(m, r);
    pairs(m, r, &m->measured, "Method",
          "SELECT replace(key, '_', ' '), json_extract(value, '$.source') ||"
          " coalesce('; ' || json_extract(value, '$.note'), '')"
          " FROM json_each(?1, '$.accounting')");
    pr_model_say(m, &m->measured, m->measured.count ? NULL : "Method", "memory", memory_way(m));
    completeness(m, r);
    pairs(m, r, &m->measured, "What is absent, and why",
          "SELECT group_concat(json_extract(value, '$.metric'), ', '),"
          " json_extract(value, '$.reason') FROM json_each(?1, '$.absent')"
          " GROUP BY 2 ORDER BY min(key)");
    double cpu = pr_model_number(m, r, "$.self.cpu_seconds"),
           share = pr_model_number(m, r, "$.self.cpu_ratio"),
           rss = pr_model_number(m, r, "$.self.rss_peak_bytes");
    if (!isnan(cpu) && !isnan(share)) {
        pr_model_human(&text, cpu, UNIT_SECONDS);
        pr_buf_str(&text, ", ");
        pr_model_human(&text, share, UNIT_RATIO);
        pr_buf_str(&text, " of one core");
        pr_model_say(m, &m->measured, "proctor itself", "CPU time", pr_model_keep(m, &text));
    }
    if (!isnan(rss)) {
        pr_model_human(&text, rss, UNIT_BYTES);
        pr_model_say(m, &m->measured, isnan(cpu) ? "proctor itself" : NULL, "memory",
                     pr_model_keep(m, &text));
    }
    pr_buf_done(&text);
}
