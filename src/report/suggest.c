/* SPDX-License-Identifier: Apache-2.0 */
/* From what runs used to what the next one needs. Of several the largest counts. */
#include "report/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/metric.h"
#include "core/stats.h"
#include "core/oom.h"
#include "report/model_parts.h"
#include "report/recorded.h"
#include "util/text.h"

#define AFTER_OOM      1.5  /* times the limit that was met: how much was wanted nobody knows */
#define MOST           1e15 /* no figure of a run is larger */
#define THROTTLED_MUCH 0.01 /* of the time */
#define WAITED_MUCH    0.25 /* of the CPU time that it got, */
#define WAITED_LEAST   0.05 /* and of the time that it took: who sleeps is not short of a CPU */

/* --- what a run used -------------------------------------------------------------------------- */

enum column {
    USED_RSS_MARK,
    USED_RSS,
    USED_PSS,
    USED_PSS_MARK,
    USED_PSS_PEAK_MARK,
    USED_ONE, /* process that is known: it has this mark */
    USED_COMPLETE,
    USED_UPPER,
    USED_LIMIT,
    USED_OOM,
    USED_OOM_EVENTS,
    USED_P95,
    USED_MEAN,
    USED_CORES,
    USED_THROTTLED,
    USED_TIME,
    USED_DELAY,
    USED_SECONDS,
    USED_GPUS,
    USED_GPU_MEMORY,
    USED_GPU_DRIVER,
    USED_FINDING,
};
#define METRIC_OF(key, stat) "json_extract(?1, '$.metrics.\"" key "\"." stat "')"
/* Where each is in a summary. */
static const char *const places[] = {
    [USED_RSS_MARK] = METRIC_OF("mem.rss.peak", "peak"),
    [USED_RSS] = METRIC_OF("mem.rss", "peak"),
    [USED_PSS] = METRIC_OF("mem.pss", "peak"),
    [USED_PSS_MARK] = METRIC_OF("mem.pss", "mark"),
    [USED_PSS_PEAK_MARK] = METRIC_OF("mem.pss", "peak_mark"),
    [USED_ONE] = "(SELECT max(json_extract(value, '$.\"mem.rss.peak\"'))"
                 " FROM json_each(?1, '$.processes.commands'))",
    [USED_COMPLETE] = "json_extract(?1, '$.accounting.memory_peak.complete')",
    [USED_UPPER] = "json_extract(?1, '$.accounting.memory_peak.upper')",
    [USED_LIMIT] = "json_extract(?1, '$.limits.memory.bytes')",
    [USED_OOM] = METRIC_OF("oom.kills", "total"),
    [USED_OOM_EVENTS] = "(SELECT count(*) FROM json_each(?1, '$.events')"
                        " WHERE json_extract(value, '$.type') = 'oom'"
                        " AND json_extract(value, '$.text') NOT LIKE '%" OOM_ELSEWHERE "%')",
    [USED_P95] = METRIC_OF("cpu.usage", "p95"),
    [USED_MEAN] = METRIC_OF("cpu.usage", "mean"),
    [USED_CORES] = "json_extract(?1, '$.limits.cpu.cores')",
    [USED_THROTTLED] = METRIC_OF("cpu.throttled", "total"),
    [USED_TIME] = METRIC_OF("cpu.time", "total"),
    [USED_DELAY] = METRIC_OF("sched.delay", "total"),
    [USED_SECONDS] = "json_extract(?1, '$.run.duration')",
    [USED_GPUS] = METRIC_OF("gpu.count", "peak"),
    [USED_GPU_MEMORY] = "(SELECT max(json_extract(value, '$.metrics.\"gpu.job.mem\".peak'))"
                        " FROM json_each(?1, '$.devices'))",
    [USED_GPU_DRIVER] = "(SELECT json_extract(value, '$.driver')"
                        " FROM json_each(?1, '$.devices') LIMIT 1)",
    [USED_FINDING] = "json_extract(?1, '$.findings[0]')",
};

static int ask(struct pr_query **ret, const struct pr_stored *r, const char *json)
{
    struct pr_buf sql = {0};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        pr_buf_printf(&sql, "%s %s", i ? "," : "SELECT", places[i]);
    int code = pr_query_new(ret, r->db, pr_buf_text(&sql));
    if (code == 0)
        pr_query_text(*ret, 1, json);
    pr_buf_done(&sql);
    return code;
}

/* A file may say anything; what cannot be is not known. */
static double number(struct pr_query *q, enum column column)
{
    double v = pr_query_get_number(q, (int)column);
    return v >= 0 && v <= MOST ? v : NAN;
}

/* A sum of samples may miss a peak between them, a kernel's mark is of one process alone: the
 * larger of the two is the least that it was. */
static void take_memory(struct pr_use *u, struct pr_query *q)
{
    bool few = pr_said_is(pr_query_get_text(q, USED_PSS_MARK), MARK_FEW_SAMPLES);
    double pss = few ? NAN : number(q, USED_PSS), one = number(q, USED_ONE),
           sum = isnan(pss) ? number(q, USED_RSS) : pss;
    if (number(q, USED_RSS_MARK) > number(q, USED_RSS)) /* no sum has it: it is of one alone */
        one = number(q, USED_RSS_MARK);
    u->upper = number(q, USED_UPPER);
    if (pr_query_get_int(q, USED_COMPLETE) == 1) {
        u->memory = number(q, USED_RSS_MARK);
        u->memory_how = "the kernel's mark of its one process";
    } else if (isnan(sum) && isnan(one)) {
        u->memory = number(q, USED_RSS_MARK);
        u->memory_how = "the kernel's largest mark of one process";
    } else {
        u->memory = fmax(sum, one);
        u->memory_how = one > sum || isnan(sum) ? "the kernel's largest mark of one process"
                        : isnan(pss)
                            ? "RSS summed over processes at a sample, shared pages more than once"
                        : pr_said_is(pr_query_get_text(q, USED_PSS_PEAK_MARK), MARK_ESTIMATED)
                            ? "PSS summed over processes at a sample, " SAID_ESTIMATED
                            : "PSS summed over processes at a sample";
    }
}

/* What Kubernetes' device plugins offer, by the driver: NVIDIA's has a version for its name. */
static const char *vendor_of(const char *driver)
{
    static const char *const rows[][2] = {
        {"amdgpu", "amd.com/gpu"}, {"i915", "gpu.intel.com/i915"}, {"xe", "gpu.intel.com/xe"}};
    for (size_t i = 0; driver && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(driver, rows[i][0]) == 0)
            return rows[i][1];
    return "nvidia.com/gpu";
}

/* What a job used while it waited for a CPU says how busy others were, not what it needs. It wanted
 * both; in whole cores, of which no more than there were. */
static void take_wanted(struct pr_use *u, double time, double delay)
{
    u->wanted = NAN;
    u->ask = u->cores;
    if (!(u->seconds > 0 && delay > WAITED_MUCH * time && delay > WAITED_LEAST * u->seconds))
        return;
    double most = ceil(u->cores_limit), wanted = (time + delay) / u->seconds,
           whole = fmin(ceil(wanted), fmax(1, isnan(most) ? wanted : most));
    if (!(u->cores >= whole)) {
        u->wanted = wanted;
        u->used = time;
        u->delay = delay;
        u->ask = whole;
    }
}

static void take_rest(struct pr_use *u, struct pr_query *q, const struct pr_stored *r)
{
    double p95 = number(q, USED_P95), mean = number(q, USED_MEAN);
    /* That of the start and that of the end: a group that is gone may have left the machine's. */
    u->limit = fmin(number(q, USED_LIMIT), r->limits.total[LIMIT_MEMORY]);
    u->own_limit = strcmp(r->limits.source[LIMIT_MEMORY], "machine") != 0;
    u->oom = number(q, USED_OOM) > 0 || pr_query_get_int(q, USED_OOM_EVENTS) > 0;
    u->cores_limit = number(q, USED_CORES);
    u->cores = fmax(p95, mean);
    if (u->cores > u->cores_limit && u->cores_limit > 0) /* times come in steps: more cannot be */
        u->cores = u->cores_limit;
    u->throttled = number(q, USED_THROTTLED);
    u->seconds = number(q, USED_SECONDS);
    take_wanted(u, number(q, USED_TIME), number(q, USED_DELAY));
    u->gpus = number(q, USED_GPUS);
    u->gpu_memory = number(q, USED_GPU_MEMORY);
    struct pr_buf finding = {0};
    const char *words = pr_query_get_text(q, USED_FINDING);
    pr_text_safe(&finding, words ? words : "");
    snprintf(u->finding, sizeof u->finding, "%s", pr_buf_text(&finding));
    pr_buf_done(&finding);
    snprintf(u->vendor, sizeof u->vendor, "%s", vendor_of(pr_query_get_text(q, USED_GPU_DRIVER)));
}

static void take_end(struct pr_use *u, const struct pr_stored *r)
{
    enum pr_way way = pr_recorded_way(r);
    snprintf(u->id, sizeof u->id, "%s", r->id);
    for (char *p = u->id; *p; p++) /* a file may have any, and it goes into a comment */
        *p = (unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p;
    u->good = pr_recorded_ending(r, u->ending, sizeof u->ending);
    u->timed = way == WAY_RUN || way == WAY_RUN_NO_SUBREAPER;
}

int pr_suggestion_add(struct pr_suggestion *s, const struct pr_stored *r, struct proctor_error *err)
{
    struct pr_buf json = {0};
    struct pr_query *q = NULL;
    struct pr_use *uses = reallocarray(s->uses, s->count + 1, sizeof *uses);
    if (!uses)
        return pr_error(err, ENOMEM, "out of memory");
    s->uses = uses;
    struct pr_use *u = &uses[s->count];
    *u = (struct pr_use){0};
    int code = pr_recorded_machine(r)
                   ? pr_error(err, EINVAL, "'%.180s' is of a machine; name a run of a job", r->id)
                   : pr_recorded_summary(r, &json, err);
    if (code == 0) {
        int found = ask(&q, r, pr_buf_text(&json));
        found = found < 0 ? found : pr_query_step(q);
        if (found == 1) {
            take_memory(u, q);
            take_rest(u, q, r);
            take_end(u, r);
            s->count++;
        } else {
            code = pr_stored_failure(r, found < 0 ? found : -EUCLEAN, err);
        }
    }
    pr_query_free(q);
    pr_buf_done(&json);
    return code;
}

/* --- what follows from it --------------------------------------------------------------------- */

static void put(struct pr_buf *out, const char *before, double v, enum pr_unit unit)
{
    pr_buf_str(out, before);
    pr_model_human(out, v, unit);
}

static void put_margin(struct pr_buf *out, const struct pr_suggestion *s)
{
    pr_buf_str(out, ", and ");
    pr_units_number(out, s->margin * 100);
    pr_buf_str(out, " % more");
}

static void note_run(struct pr_suggestion *s, const struct pr_use *u)
{
    if (s->notes.len)
        pr_buf_char(&s->notes, '\n');
    pr_buf_printf(&s->notes, "%s ", u->id);
}

/* A run that ended well with more than that limit has shown how much it takes. */
static bool is_answered(const struct pr_suggestion *s, const struct pr_use *oom)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->uses[i].good && !s->uses[i].oom && s->uses[i].memory >= oom->limit && oom->own_limit)
            return true;
    return false;
}

static double memory_of(const struct pr_suggestion *s, const struct pr_use *u)
{
    if (!u->oom || is_answered(s, u))
        return u->memory * (1 + s->margin);
    return AFTER_OOM * (u->own_limit ? u->limit : u->memory);
}

static void suggest_memory(struct pr_suggestion *s)
{
    const struct pr_use *best = NULL;
    for (size_t i = 0; i < s->count; i++)
        if (!isnan(memory_of(s, &s->uses[i])) &&
            (!best || memory_of(s, &s->uses[i]) > memory_of(s, best)))
            best = &s->uses[i];
    struct pr_buf *why = &s->why[NEED_MEMORY];
    if (!best)
        return;
    s->need[NEED_MEMORY] = memory_of(s, best);
    if (best->oom && !is_answered(s, best)) {
        put(why, "the kernel killed for want of memory: the peak of ", best->memory, UNIT_BYTES);
        pr_buf_str(why, " is only what there was until then; asked is 1.5 times ");
        put(why, best->own_limit ? "the limit of " : "that, the machine having ", best->limit,
            UNIT_BYTES);
        return;
    }
    put(why, s->count > 1 ? "the largest peak was " : "the peak was ", best->memory, UNIT_BYTES);
    pr_buf_printf(why, " (%s)", best->memory_how);
    if (best->upper > best->memory)
        put(why, ", at the most ", best->upper, UNIT_BYTES);
    put_margin(why, s);
}

static void suggest_cores(struct pr_suggestion *s)
{
    const struct pr_use *best = NULL;
    for (size_t i = 0; i < s->count; i++)
        if (!isnan(s->uses[i].ask) && (!best || s->uses[i].ask > best->ask))
            best = &s->uses[i];
    if (!best)
        return;
    s->need[NEED_CORES] = best->ask;
    s->cores = best->cores;
    if (isnan(best->wanted)) {
        put(&s->why[NEED_CORES], "for 95 % of the time at most ", best->cores, UNIT_CORES);
        pr_buf_str(&s->why[NEED_CORES],
                   " were busy; no margin: what is short of cores is only slower");
    } else {
        put(&s->why[NEED_CORES], "it used ", best->used, UNIT_SECONDS);
        put(&s->why[NEED_CORES], " of CPU and waited ", best->delay, UNIT_SECONDS);
        put(&s->why[NEED_CORES], " for one: it wanted ", best->wanted, UNIT_CORES);
        pr_buf_str(&s->why[NEED_CORES], "; whole ones, of which no more than there were");
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct pr_use *u = &s->uses[i];
        if (!(u->throttled > THROTTLED_MUCH * u->seconds))
            continue;
        note_run(s, u);
        put(&s->notes, "was held back by its quota of ", u->cores_limit, UNIT_CORES);
        put(&s->notes, " for ", u->throttled, UNIT_SECONDS);
        pr_buf_str(&s->notes, ": it would have used more");
    }
}

/* How long it takes is known of those that ended well; else that it is longer. */
static void suggest_time(struct pr_suggestion *s)
{
    bool good = false;
    double most = NAN;
    for (size_t i = 0; i < s->count; i++)
        good |= s->uses[i].good && s->uses[i].timed;
    for (size_t i = 0; i < s->count; i++)
        if (s->uses[i].timed && (s->uses[i].good || !good))
            most = fmax(most, s->uses[i].seconds);
    if (isnan(most))
        return;
    s->need[NEED_TIME] = most * (1 + s->margin);
    put(&s->why[NEED_TIME], good ? "the longest took " : "no run ended well; the longest came to ",
        most, UNIT_SECONDS);
    put_margin(&s->why[NEED_TIME], s);
}

static void suggest_gpus(struct pr_suggestion *s)
{
    double count = NAN, memory = NAN;
    for (size_t i = 0; i < s->count; i++) {
        count = fmax(count, s->uses[i].gpus);
        memory = fmax(memory, s->uses[i].gpu_memory);
        if (s->uses[i].gpus > 0)
            s->vendor = s->uses[i].vendor;
    }
    if (!(count > 0))
        return;
    s->need[NEED_GPUS] = count;
    s->gpu_memory = memory * (1 + s->margin);
    pr_buf_printf(&s->why[NEED_GPUS], "%.0f did something", count);
    if (isnan(memory))
        return;
    put(&s->why[NEED_GPUS], "; one with at least ", s->gpu_memory, UNIT_BYTES);
    put(&s->why[NEED_GPUS], " of memory each: the job had up to ", memory, UNIT_BYTES);
    put_margin(&s->why[NEED_GPUS], s);
}

static void note_endings(struct pr_suggestion *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct pr_use *u = &s->uses[i];
        if (!u->good) {
            note_run(s, u);
            pr_buf_printf(&s->notes, "(%s): a whole run may take more", u->ending);
            if (*u->finding)
                pr_buf_printf(&s->notes, "; %s", u->finding);
        }
        if (!u->timed) {
            note_run(s, u);
            pr_buf_str(&s->notes, "was attached to: how long it takes from its start is not known");
        }
    }
}

void pr_suggest(struct pr_suggestion *s)
{
    for (int i = 0; i < NEEDS; i++)
        s->need[i] = NAN;
    s->gpu_memory = NAN;
    s->vendor = vendor_of(NULL);
    suggest_memory(s);
    suggest_cores(s);
    suggest_time(s);
    suggest_gpus(s);
    note_endings(s);
}

void pr_suggestion_done(struct pr_suggestion *s)
{
    for (int i = 0; i < NEEDS; i++)
        pr_buf_done(&s->why[i]);
    pr_buf_done(&s->notes);
    free(s->uses);
    *s = (struct pr_suggestion){0};
}
