/* SPDX-License-Identifier: Apache-2.0 */
#include "report/rebuild.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/annotate.h"
#include "report/summary.h"
#include "store/job.h"
#include "store/replay.h"
#include "util/clock.h"

#define PENDING   64   /* requests that wait for the sample taken for them */
#define SAME_NS   1000 /* what ended together ended at one moment, as doubles have it */
#define NO_SAMPLE "no sample of the record has it"

struct pending {
    struct pr_replayed_phase phase;
    char name[REQUEST_NAME + 1];
    bool ends;
};

struct rebuild {
    const struct pr_stored *stored;
    struct pr_session s; /* as far as a summary looks at it */
    struct pr_config config;
    struct pr_facts facts;
    struct pr_phase_tokens tokens;
    int64_t ended; /* when the last phase did, and whether a sample was taken for it */
    bool ended_exact;
    struct pending pending[PENDING];
    size_t pending_count;
    struct pr_buf about[3]; /* texts that config has: name, node, file */
};

/* --- phases ----------------------------------------------------------------------------------- */

static void begin_phase(struct rebuild *b, const struct pr_replayed_phase *phase, bool exact)
{
    pr_phases_begin(&b->s.phases, phase->name, pr_seconds(phase->start), (int)phase->id, exact,
                    &b->s.now);
}

/* By its number: each has one of its own here, so that none takes others with it. */
static void end_phase(struct rebuild *b, const struct pr_replayed_phase *phase, bool exact)
{
    if (pr_phases_is_owned(&b->s.phases, (int)phase->id))
        pr_phases_end_owner(&b->s.phases, (int)phase->id, pr_seconds(phase->start) + phase->seconds,
                            exact, false);
}

/* exact: the sample that they waited for has come. */
static void catch_up(struct rebuild *b, bool exact)
{
    for (size_t i = 0; i < b->pending_count; i++) {
        struct pending *p = &b->pending[i];
        p->phase.name = p->name;
        (p->ends ? end_phase : begin_phase)(b, &p->phase, exact);
    }
    b->pending_count = 0;
}

/* The sample for it comes next. Where the record has a gap it does not come for long. */
static void put_off(struct rebuild *b, const struct pr_replayed_phase *phase, bool ends)
{
    if (b->pending_count == PENDING)
        catch_up(b, false);
    struct pending *p = &b->pending[b->pending_count++];
    *p = (struct pending){.phase = *phase, .ends = ends};
    snprintf(p->name, sizeof p->name, "%s", phase->name);
}

static size_t count_pending(const struct rebuild *b, bool ends)
{
    size_t n = 0;
    for (size_t i = 0; i < b->pending_count; i++)
        n += b->pending[i].ends == ends;
    return n;
}

static bool waits_to_begin(const struct rebuild *b, int64_t id)
{
    for (size_t i = 0; i < b->pending_count; i++)
        if (!b->pending[i].ends && b->pending[i].phase.id == id)
            return true;
    return false;
}

/* A sample was taken for a phase where that was not too often: the same count says so again. */
static void on_begin(void *of, const struct pr_replayed_phase *phase)
{
    struct rebuild *b = of;
    size_t most = b->s.phases.open_count + count_pending(b, false);
    if (most >= PHASES_OPEN + count_pending(b, true))
        return;
    if (pr_phase_tokens_take(&b->tokens, phase->start)) {
        put_off(b, phase, false);
        return;
    }
    if (most >= PHASES_OPEN) /* those that end make room */
        catch_up(b, false);
    begin_phase(b, phase, false);
}

static void on_end(void *of, const struct pr_replayed_phase *phase)
{
    struct rebuild *b = of;
    int64_t at = phase->end;
    if (phase->data && strstr(phase->data, "\"left_open\":true"))
        return; /* it ends with the run */
    if (llabs(at - b->ended) > SAME_NS)
        b->ended_exact = pr_phase_tokens_take(&b->tokens, at);
    b->ended = at;
    if (b->ended_exact) {
        put_off(b, phase, true);
        return;
    }
    if (waits_to_begin(b, phase->id))
        catch_up(b, false);
    end_phase(b, phase, false);
}

/* --- the rest --------------------------------------------------------------------------------- */

static struct pr_gpu_card *card_of(struct pr_gpu_account *a, const struct pr_device *d)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->card[i].name, d->name) == 0)
            return &a->card[i];
    if (a->count == GPU_DEVICES)
        return NULL;
    struct pr_gpu_card *c = &a->card[a->count];
    *c = (struct pr_gpu_card){.part = !d->counted, .sure_energy = true};
    snprintf(c->name, sizeof c->name, "%s", d->name);
    snprintf(c->model, sizeof c->model, "%s", d->model ? d->model : "");
    snprintf(c->uuid, sizeof c->uuid, "%s", d->uuid ? d->uuid : "");
    for (int slot = 0; slot < DEVICE_VALUES; slot++) {
        a->stat[a->count][slot] = (struct pr_stat){.min = NAN, .max = NAN, .last = NAN, .at = NAN};
        c->reason[slot] = NO_SAMPLE;
    }
    a->sketches[a->count] = pr_sketches_new(DEVICE_VALUES);
    a->count++;
    return c;
}

static void add_gpu(struct rebuild *b, const struct proctor_snapshot *s, const struct pr_device *d)
{
    struct pr_gpu_account **a = &b->s.machine.gpus;
    if (!*a)
        *a = calloc(1, sizeof **a);
    struct pr_gpu_card *c = *a ? card_of(*a, d) : NULL;
    size_t i = c ? (size_t)(c - (*a)->card) : 0;
    for (int slot = 0; slot < DEVICE_VALUES && c; slot++) {
        if (isnan(d->value[slot]))
            continue;
        double lasted = pr_seconds(s->elapsed - (*a)->read_at[i][slot]);
        pr_stat_add(&(*a)->stat[i][slot], d->value[slot], pr_seconds(s->elapsed), lasted);
        if ((*a)->sketches[i])
            pr_sketch_add((*a)->sketches[i], slot, d->value[slot], lasted);
        (*a)->read_at[i][slot] = s->elapsed;
    }
}

static void on_sample(void *of, const struct proctor_snapshot *s)
{
    struct rebuild *b = of;
    pr_stats_add(&b->s.stats, s);
    pr_phases_add(&b->s.phases, s);
    b->s.taken++;
    memcpy(b->s.now.value, s->value, sizeof s->value); /* what a phase begins with */
    memcpy(b->s.now.mark, s->mark, sizeof s->mark);
    b->s.now.elapsed = s->elapsed;
    b->s.now.interval = s->interval;
    for (size_t i = 0; i < s->device_count; i++)
        if (s->devices[i].kind == DEVICE_GPU)
            add_gpu(b, s, &s->devices[i]);
    catch_up(b, true);
}

static void on_event(void *of, const struct pr_event *e)
{
    struct rebuild *b = of;
    pr_event_add(&b->s.events, e->type, e->at, e->seconds, "%s", e->text);
}

static void on_mark(void *of, int64_t elapsed, const char *name, const char *data)
{
    struct rebuild *b = of;
    pr_phases_mark(&b->s.phases, name, data, pr_seconds(elapsed));
}

static void on_entry(void *of, const struct pr_roll_entry *e)
{
    struct rebuild *b = of;
    pr_roll_add(&b->s.roll, e);
}

/* --- what the run was ------------------------------------------------------------------------- */

static enum pr_way way_of(const char *name)
{
    for (int way = WAY_RUN; way <= WAY_EVERYBODY; way++)
        if (strcmp(pr_way_name((enum pr_way)way), name) == 0)
            return (enum pr_way)way;
    return WAY_ATTACH;
}

static void take_texts(struct rebuild *b)
{
    static const char *const paths[] = {"$.name", "$.node"};
    const char **const fields[] = {&b->config.name, &b->config.node};
    const struct pr_stored *r = b->stored;
    struct pr_buf text = {0};
    for (int i = 0; i < 2; i++)
        if (pr_stored_text(r, r->about, paths[i], &b->about[i]))
            *fields[i] = pr_buf_text(&b->about[i]);
    size_t count;
    b->facts.argv = pr_stored_texts(r, "SELECT value FROM json_each(?1, '$.command')", &count);
    b->config.label.items =
        pr_stored_texts(r, "SELECT key || '=' || value FROM json_each(?1, '$.labels')", &count);
    b->config.label.count = b->config.label.items ? count : 0;
    if (pr_stored_text(r, r->about, "$.target", &text))
        snprintf(b->facts.target, sizeof b->facts.target, "%s", pr_buf_text(&text));
    if (pr_stored_text(r, r->about, "$.cwd", &text))
        snprintf(b->facts.cwd, sizeof b->facts.cwd, "%s", pr_buf_text(&text));
    if (pr_stored_text(r, r->about, "$.parent", &text))
        snprintf(b->s.parent, sizeof b->s.parent, "%s", pr_buf_text(&text));
    pr_stored_text(r, r->about, "$.way", &text);
    b->facts.way = way_of(pr_buf_text(&text));
    pr_buf_done(&text);
}

static int begin(struct rebuild *b)
{
    const struct pr_stored *r = b->stored;
    struct pr_session *s = &b->s;
    if (pr_config_init(&b->config) < 0)
        return -ENOMEM;
    b->facts = (struct pr_facts){
        .host = r->host, .rebuilt = true, .exit_code = r->exit_code, .exit_signal = r->exit_signal};
    take_texts(b);
    b->ended = INT64_MIN / 4;
    b->config.interval = r->interval;
    b->config.machine = b->facts.way >= WAY_SYSTEM;
    s->config = &b->config;
    s->select = r->select;
    s->limits = r->limits;
    s->run_id = r->id;
    s->file = r->path;
    s->start_wall = r->started;
    s->inside = -1; /* our own size is nobody's business */
    pr_stats_init(&s->stats);
    pr_stats_want_quantiles(&s->stats, METRIC_COUNT);
    s->stats.limits = &s->limits;
    s->stats.machine = b->config.machine;
    pr_phases_init(&s->phases, &s->select, &s->limits, b->config.machine);
    pr_events_init(&s->events);
    pr_values_none(s->high, METRIC_COUNT);
    s->oom.kills = s->oom.machine_kills = s->roll.forks = NAN;
    for (int id = 0; id < METRIC_COUNT; id++)
        snprintf(s->reason[id], sizeof s->reason[id], NO_SAMPLE);
    return 0;
}

static void finish(struct rebuild *b)
{
    struct pr_session *s = &b->s;
    double started = pr_stats_total(&s->stats, METRIC_PROCS_STARTED);
    catch_up(b, true);
    pr_phases_finish(&s->phases, s->stats.seconds);
    s->set.started = started > 0 ? (uint64_t)fmin(started, 1e15) : 0;
    s->oom_kills = pr_value_known(pr_stats_total(&s->stats, METRIC_OOM_KILLS));
    s->high[METRIC_MEM_RSS_PEAK] = pr_stats_peak(&s->stats, METRIC_MEM_RSS_PEAK);
}

static void done(struct rebuild *b)
{
    pr_stored_texts_free(b->facts.argv);
    b->config.name = b->config.node = NULL;
    pr_config_done(&b->config);
    for (size_t i = 0; i < sizeof b->about / sizeof *b->about; i++)
        pr_buf_done(&b->about[i]);
    pr_phases_done(&b->s.phases, true);
    pr_stats_done(&b->s.stats);
    pr_roll_done(&b->s.roll);
    pr_gpu_account_free(b->s.machine.gpus);
    free(b);
}

int pr_rebuild(const struct pr_stored *r, struct pr_buf *out, struct proctor_error *err)
{
    static const struct pr_replay_to to = {.members = true,
                                           .devices = true,
                                           .sample = on_sample,
                                           .event = on_event,
                                           .mark = on_mark,
                                           .begin = on_begin,
                                           .end = on_end,
                                           .entry = on_entry};
    struct rebuild *b = calloc(1, sizeof *b);
    if (!b)
        return pr_error(err, ENOMEM, "out of memory");
    b->stored = r;
    int code = begin(b);
    if (code == 0)
        code = pr_replay(r, &to, b, err);
    else
        pr_error(err, ENOMEM, "out of memory");
    if (code == 0) {
        finish(b);
        pr_buf_reset(out);
        pr_buf_char(out, '{');
        pr_summary_members(out, &b->s, &b->facts);
        pr_buf_char(out, '}');
        code = out->failed ? pr_error(err, ENOMEM, "out of memory") : 0;
    }
    done(b);
    return code;
}
