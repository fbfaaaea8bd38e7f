/* SPDX-License-Identifier: Apache-2.0 */
#include "core/phase.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats_json.h"
#include "util/clock.h"
#include "util/scan.h"

#define OTHERS        "(others)"
#define EXTRA_SAMPLES 20.0 /* in a second, for phases */
#define ENDS          2    /* samples at its beginning and its end */

struct pr_phase_open {
    struct pr_phase phase;
    int owner;                 /* the process that it ends with, 0 for none */
    bool over;                 /* it has ended, and waits for the last sample */
    double from;               /* elapsed at the sample that it counts from */
    double base[METRIC_COUNT]; /* what counters and high-water marks were then */
    unsigned char base_mark[METRIC_COUNT];
    struct pr_stats stats;
};

void pr_phases_init(struct pr_phases *p, const struct pr_select *select,
                    const struct pr_limits *limits, bool machine)
{
    *p = (struct pr_phases){.select = select,
                            .limits = limits,
                            .metrics = machine ? (int)METRIC_COUNT : (int)JOB_METRICS};
    pr_values_none(p->latest, METRIC_COUNT);
    pr_notes_init(&p->notes);
}

static void free_all(struct pr_phase *phases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(phases[i].stat);
        free(phases[i].quantiles);
    }
    free(phases);
}

/* To map and unmap them takes longer than all else that is done for a phase. */
static void take_sketches(struct pr_phases *p, struct pr_stats *stats)
{
    stats->sketches = p->spare;
    p->spare = NULL;
    if (!stats->sketches)
        pr_stats_want_quantiles(stats, p->metrics);
}

static void give_sketches(struct pr_phases *p, struct pr_stats *stats)
{
    if (!p->spare && stats->sketches) {
        p->spare = stats->sketches;
        pr_sketches_reset(p->spare);
        stats->sketches = NULL;
    }
    pr_stats_done(stats);
}

static void free_open(struct pr_phases *p, struct pr_phase_open *o)
{
    give_sketches(p, &o->stats);
    free(o->phase.quantiles);
    free(o);
}

void pr_phases_done(struct pr_phases *p, bool close_notes)
{
    for (size_t i = 0; i < p->open_count; i++)
        free_open(p, p->open[i]);
    pr_sketches_free(p->spare);
    for (size_t i = 0; i < p->marks_kept; i++) {
        free(p->marks[i].name);
        free(p->marks[i].data);
    }
    free_all(p->kept, p->kept_count);
    free_all(p->folded, p->folded_count);
    pr_map_done(&p->by_name);
    if (close_notes)
        pr_notes_done(&p->notes);
    p->open_count = p->marks_kept = p->kept_count = p->folded_count = 0;
    p->kept = p->folded = NULL;
    p->spare = NULL;
}

/* Where it is in the run; seconds are absent while it lasts. */
static void put_place(struct pr_json *j, const struct pr_phase *phase, double seconds)
{
    pr_json_key(j, "name");
    pr_json_string(j, phase->name);
    pr_json_key(j, "start");
    pr_json_number(j, phase->start);
    pr_json_key(j, "seconds");
    pr_json_number(j, seconds);
    pr_json_key(j, "depth");
    pr_json_int(j, phase->depth);
}

/* --- while it lasts --------------------------------------------------------------------------- */

/* What a value of the run is to the phase: a counter its growth; a kernel's high-water mark only
 * where it has risen in the phase, for else it is of an earlier one. */
static double within(const struct pr_phase_open *o, int id, double v)
{
    double base = o->base[id];
    switch (pr_metrics[id].kind) {
    case KIND_COUNTER:
        return isnan(base) ? v : v < base ? 0 : v - base;
    case KIND_HIGH_WATER:
        return v <= base ? NAN : v;
    default:
        return v;
    }
}

/* What was a lower bound at the begin, and is exact when the job has ended, has grown by what was
 * missing then, too: the phase keeps what it had. */
static bool catches_up(const struct pr_phase_open *o, int id, const struct proctor_snapshot *s)
{
    bool at_end = s->last || pr_metric_ages((enum pr_metric_id)id); /* which are exact only then */
    return at_end && pr_metrics[id].kind == KIND_COUNTER && o->base_mark[id] == MARK_LOWER_BOUND &&
           s->mark[id] != MARK_LOWER_BOUND;
}

static void add(const struct pr_phases *p, struct pr_phase_open *o,
                const struct proctor_snapshot *s, const double *value, double dt)
{
    double mine[METRIC_COUNT];
    for (int id = 0; id < p->metrics; id++)
        mine[id] = catches_up(o, id, s) ? NAN : within(o, id, value[id]);
    double at = pr_seconds(s->elapsed),
           lasted = fmin(at - o->from, pr_seconds(s->machine_interval));
    pr_stats_add_values(&o->stats, mine, s->mark, p->metrics,
                        (struct pr_span){at, dt, dt > 0 ? lasted : 0});
    o->stats.seconds = at - o->from;
}

void pr_phases_add(struct pr_phases *p, const struct proctor_snapshot *s)
{
    for (int id = 0; id < METRIC_COUNT; id++)
        if (pr_metric_is_total((enum pr_metric_id)id) && !isnan(s->value[id])) {
            p->latest[id] = s->value[id];
            p->latest_mark[id] = s->mark[id];
        }
    p->latest_at = pr_seconds(s->elapsed);
    for (size_t i = 0; i < p->open_count; i++)
        add(p, p->open[i], s, s->value, pr_seconds(s->interval));
}

/* The sample at its begin: what was read at that moment is in the phase, rates are of before. */
static void add_first(const struct pr_phases *p, struct pr_phase_open *o,
                      const struct proctor_snapshot *s)
{
    double value[METRIC_COUNT];
    for (int id = 0; id < METRIC_COUNT; id++) {
        const struct pr_metric *m = &pr_metrics[id];
        bool gauge = m->kind == KIND_GAUGE ||
                     (m->kind == KIND_RATIO && pr_metrics[m->of].kind == KIND_GAUGE);
        value[id] = gauge || m->kind == KIND_COUNTER ? s->value[id] : NAN;
    }
    add(p, o, s, value, 0);
}

static void note_begin(struct pr_phases *p, const struct pr_phase *phase)
{
    struct pr_buf line = {0};
    struct pr_json j = {.out = &line};
    if (!p->notes.wanted)
        return;
    put_place(&j, phase, NAN);
    pr_notes_add(&p->notes, (struct pr_note){NOTE_BEGIN, llround(phase->start * 1e9)}, line.data,
                 line.len);
    pr_buf_done(&line);
}

int pr_phases_begin(struct pr_phases *p, const char *name, double at, int owner, bool exact,
                    const struct proctor_snapshot *s)
{
    if (p->open_count == PHASES_OPEN)
        return -EMFILE;
    struct pr_phase_open *o = malloc(sizeof *o);
    if (!o)
        return -ENOMEM;
    o->phase = (struct pr_phase){
        .start = at, .depth = (unsigned)p->open_count, .instances = 1, .exact = exact};
    memccpy(o->phase.name, name, '\0', sizeof o->phase.name - 1);
    o->owner = owner;
    o->over = false;
    o->from = p->latest_at;
    memcpy(o->base, p->latest, sizeof o->base);
    memcpy(o->base_mark, p->latest_mark, sizeof o->base_mark);
    pr_stats_init(&o->stats);
    take_sketches(p, &o->stats);
    o->stats.limits = p->limits;
    if (exact)
        add_first(p, o, s);
    p->open[p->open_count++] = o;
    note_begin(p, &o->phase);
    return 0;
}

/* --- when it has ended ------------------------------------------------------------------------ */

static struct pr_phase *room_for(struct pr_phase **phases, size_t count, size_t *cap)
{
    if (count == *cap) {
        size_t more = *cap ? *cap * 2 : 16;
        struct pr_phase *bigger = realloc(*phases, more * sizeof *bigger);
        if (!bigger)
            return NULL;
        *phases = bigger;
        *cap = more;
    }
    return &(*phases)[count];
}

static bool keep(struct pr_phases *p, struct pr_phase **phases, size_t *count, size_t *cap,
                 const struct pr_phase_open *o, const char *name)
{
    struct pr_phase *to = room_for(phases, *count, cap);
    struct pr_stat *stat = to ? malloc((size_t)p->metrics * sizeof *stat) : NULL;
    if (!stat)
        return false;
    *to = o->phase;
    to->quantiles = NULL;
    if (name != o->phase.name)
        memccpy(to->name, name, '\0', sizeof to->name - 1);
    to->stat = memcpy(stat, o->stats.metric, (size_t)p->metrics * sizeof *stat);
    ++*count;
    return true;
}

/* One by one, and so with its quantiles. */
static bool keep_one(struct pr_phases *p, struct pr_phase_open *o)
{
    if (!keep(p, &p->kept, &p->kept_count, &p->kept_cap, o, o->phase.name))
        return false;
    p->kept[p->kept_count - 1].quantiles = o->phase.quantiles;
    o->phase.quantiles = NULL;
    return true;
}

static void merge(struct pr_stat *to, const struct pr_stat *from, bool counter)
{
    if (!from->known)
        return;
    to->last = counter && to->known ? to->last + from->last : from->last;
    to->known += from->known;
    to->min = fmin(to->min, from->min);
    if (!(to->max >= from->max)) {
        to->max = from->max;
        to->at = from->at;
        to->said.peak = from->said.peak;
    }
    to->integral += from->integral;
    to->weight += from->weight;
    pr_said_merge(&to->said, &from->said);
}

/* As with the commands of the roll, two names with one hash share an account. */
static bool fold(struct pr_phases *p, const struct pr_phase_open *o, const char *name)
{
    uint64_t at, key = pr_scan_hash(name, strlen(name)) | 1;
    if (!pr_map_get(&p->by_name, key, &at)) {
        if (p->folded_count >= PHASES_NAMES - 1 && strcmp(name, OTHERS) != 0)
            return fold(p, o, OTHERS);
        return keep(p, &p->folded, &p->folded_count, &p->folded_cap, o, name) &&
               pr_map_set(&p->by_name, key, p->folded_count);
    }
    struct pr_phase *to = &p->folded[at - 1];
    for (int id = 0; id < p->metrics; id++)
        merge(&to->stat[id], &o->stats.metric[id], pr_metrics[id].kind == KIND_COUNTER);
    to->seconds += o->phase.seconds;
    to->sampled += o->phase.sampled;
    to->instances++;
    to->exact &= o->phase.exact;
    to->left_open |= o->phase.left_open;
    return true;
}

/* All that is left of them when it has ended. Out of memory: nothing. */
static double *quantiles_of(const struct pr_phases *p, const struct pr_stats *stats)
{
    size_t rows = (size_t)pr_quantile_rows(p->metrics), row = 0;
    double(*all)[QUANTILES] = stats->sketches ? malloc(rows * sizeof *all) : NULL;
    for (int id = 0; all && id < p->metrics; id++)
        if (pr_metric_has_quantiles((enum pr_metric_id)id))
            pr_stats_quantiles(stats, (enum pr_metric_id)id, all[row++]);
    return (double *)all;
}

static void note(struct pr_phases *p, struct pr_phase_open *o)
{
    struct pr_buf line = {0};
    struct pr_json j = {.out = &line};
    if (!p->notes.wanted)
        return;
    o->phase.stat = o->stats.metric;
    pr_phase_put(&j, p, &o->phase);
    o->phase.stat = NULL;
    int64_t end = llround((o->phase.start + o->phase.seconds) * 1e9);
    pr_notes_add(&p->notes, (struct pr_note){NOTE_PHASE, end}, line.data, line.len);
    pr_buf_done(&line);
}

static void close_one(struct pr_phases *p, size_t i)
{
    struct pr_phase_open *o = p->open[i];
    memmove(&p->open[i], &p->open[i + 1], (--p->open_count - i) * sizeof *p->open);
    o->phase.sampled = o->stats.seconds;
    o->phase.quantiles = quantiles_of(p, &o->stats);
    note(p, o);
    bool kept = p->ended < PHASES_KEPT ? keep_one(p, o) : fold(p, o, o->phase.name);
    p->ended += kept;
    p->refused += !kept;
    free_open(p, o);
}

static void end_one(struct pr_phases *p, size_t i, double at, bool exact, bool last)
{
    struct pr_phase_open *o = p->open[i];
    if (!o->over)
        o->phase.seconds = fmax(0, at - o->phase.start);
    o->phase.exact &= exact;
    o->over = true;
    if (!last)
        close_one(p, i);
}

/* PHASES_OPEN where there is none. */
static size_t find(const struct pr_phases *p, const char *name)
{
    for (size_t i = p->open_count; i-- > 0;)
        if (!p->open[i]->over && strcmp(p->open[i]->phase.name, name) == 0)
            return i;
    return PHASES_OPEN;
}

bool pr_phases_is_open(const struct pr_phases *p, const char *name)
{
    return find(p, name) < PHASES_OPEN;
}

/* With those inside it, but for those that end with a process. */
static void end_from(struct pr_phases *p, size_t outer, double at, bool exact, bool last)
{
    for (size_t i = p->open_count; i-- > outer;)
        if (i == outer || !p->open[i]->owner)
            end_one(p, i, at, exact, last);
}

void pr_phases_end(struct pr_phases *p, const char *name, double at, bool exact, bool last)
{
    end_from(p, find(p, name), at, exact, last);
}

static size_t find_owned(const struct pr_phases *p, int owner)
{
    for (size_t i = 0; i < p->open_count; i++)
        if (p->open[i]->owner == owner && !p->open[i]->over)
            return i;
    return PHASES_OPEN;
}

bool pr_phases_is_owned(const struct pr_phases *p, int owner)
{
    return find_owned(p, owner) < PHASES_OPEN;
}

void pr_phases_end_owner(struct pr_phases *p, int owner, double at, bool exact, bool last)
{
    end_from(p, find_owned(p, owner), at, exact, last);
}

void pr_phases_finish(struct pr_phases *p, double at)
{
    while (p->open_count) {
        struct pr_phase_open *o = p->open[p->open_count - 1];
        o->phase.left_open = !o->over;
        end_one(p, p->open_count - 1, at, true, false);
    }
}

bool pr_phase_tokens_take(struct pr_phase_tokens *t, int64_t now)
{
    double earned = t->begun ? pr_seconds(now - t->earned) * EXTRA_SAMPLES : EXTRA_SAMPLES;
    t->left = fmin(EXTRA_SAMPLES, t->left + earned);
    t->earned = now;
    t->begun = true;
    if (t->left < 1)
        return false;
    t->left -= 1;
    return true;
}

/* --- marks ------------------------------------------------------------------------------------ */

void pr_phase_put_mark(struct pr_buf *out, const char *name, const char *data)
{
    struct pr_json j = {.out = out};
    pr_json_key(&j, "event");
    pr_json_string(&j, "mark");
    pr_json_key(&j, "name");
    pr_json_string(&j, name);
    pr_json_key(&j, "data");
    pr_json_raw(&j, data && *data ? data : "{}");
}

void pr_phases_mark(struct pr_phases *p, const char *name, const char *data, double at)
{
    struct pr_buf line = {0};
    bool has_data = data && *data;
    p->marked++;
    if (p->marks_kept < MARKS_KEPT) {
        struct pr_mark_kept kept = {at, strdup(name), has_data ? strdup(data) : NULL};
        if (kept.name)
            p->marks[p->marks_kept++] = kept;
    }
    if (!p->notes.wanted)
        return;
    pr_phase_put_mark(&line, name, data);
    pr_notes_add(&p->notes, (struct pr_note){NOTE_EVENT, llround(at * 1e9)}, line.data, line.len);
    pr_buf_done(&line);
}

/* --- results ---------------------------------------------------------------------------------- */

bool pr_phase_saw(const struct pr_phase *phase, enum pr_metric_id id)
{
    return phase->stat[id].known > ENDS * phase->instances;
}

/* What the job holds at a moment: a kernel's own mark of the highest misses nothing. */
static bool is_memory(int id)
{
    return strncmp(pr_metrics[id].key, "mem.", 4) == 0 && pr_metrics[id].kind != KIND_HIGH_WATER;
}

void pr_phase_stats(const struct pr_phases *p, const struct pr_phase *phase, struct pr_stats *ret)
{
    pr_stats_init(ret);
    memcpy(ret->metric, phase->stat, (size_t)p->metrics * sizeof *ret->metric);
    ret->seconds = phase->sampled;
    ret->limits = p->limits;
    ret->quantiles = phase->quantiles;
}

void pr_phase_put(struct pr_json *j, const struct pr_phases *p, const struct pr_phase *phase)
{
    struct pr_stats stats;
    pr_phase_stats(p, phase, &stats);
    put_place(j, phase, phase->seconds);
    pr_json_key(j, "instances");
    pr_json_int(j, (int64_t)phase->instances);
    pr_json_key(j, "exact");
    pr_json_bool(j, phase->exact);
    pr_json_key(j, "left_open");
    pr_json_bool(j, phase->left_open);
    pr_json_key(j, "metrics");
    pr_json_open(j, '{');
    for (int id = 0; id < p->metrics; id++)
        if (pr_selected(p->select, id) && stats.metric[id].known) {
            if (is_memory(id) && !pr_phase_saw(phase, (enum pr_metric_id)id))
                stats.metric[id].said = (struct pr_said){.mark = MARK_FEW_SAMPLES};
            pr_stats_put(j, &stats, (enum pr_metric_id)id, NULL);
        }
    pr_json_close(j, '}');
}
