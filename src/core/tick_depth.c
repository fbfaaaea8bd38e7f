/* SPDX-License-Identifier: Apache-2.0 */
/* Turns. Where the files of all members can be held, each that runs is read at each tick. In a
 * crowd they cannot: opening a file costs more than reading it. There stat alone is held, one
 * descriptor for each, and I/O and what only a full reading has come in longer turns. */
#include "core/tick_depth.h"

#include <math.h>

#include "util/clock.h"

#define FILES      3   /* that are held of each, where there is room */
#define SPARE      64  /* descriptors that are not for members, in a crowd */
#define TURN_LEAST 2.0 /* turns in a second, and one at a tick while there is budget */
#define SIZE_TIME                                                                                  \
    (4 * NS_PER_S) /* a size is looked at though nothing tells of another; crowds: I/O */
#define IDLE_TIME (8 * NS_PER_S)  /* the same of one that rests: only others can change it */
#define REST_TIME (64 * NS_PER_S) /* after which one that has not run is read nevertheless */

#define HUGE_PAGE   (2 << 20)  /* the most that one fault brings */
#define MARK_MISSED (64 << 20) /* bytes that a high-water mark may lack, for SIZE_TIME */

/* Without and with a crowd. */
static const struct {
    int64_t turn; /* in which each has its turn for a full reading */
    int64_t age;  /* after which it is read out of turn; said in the names of marks */
} times[] = {{16 * NS_PER_S, 20 * NS_PER_S}, {32 * NS_PER_S, 40 * NS_PER_S}};

bool pr_depth_has_ended(const struct pr_entity *e)
{
    return e->life != LIFE_ALIVE || pr_entity_is_dead(e);
}

/* Its parent has ended, waited for or not: it has another one now. */
static bool is_orphaned(const struct pr_session *s, const struct pr_entity *e)
{
    const struct pr_entity *parent = s->turns.lost ? pr_entities_find_any(&s->set, e->ppid) : NULL;
    return parent && pr_depth_has_ended(parent);
}

/* A clock belongs to a pid: where another process has that by now it shows another time, and
 * reading answers that the one we knew is gone. */
bool pr_depth_has_run(const struct pr_session *s, const struct pr_entity *e)
{
    return e->ran < 0 || e->ran != e->ran_seen || e->state == 'R' || e->awaited ||
           is_orphaned(s, e);
}

static bool has_turn(const struct pr_session *s, size_t k)
{
    size_t n = s->set.count;
    return (k + n - s->turns.from % n) % n < s->turns.count;
}

static bool is_power_of_two(unsigned n)
{
    return (n & (n - 1)) == 0;
}

/* Nobody but the process itself changes what only a full reading has, with rare exceptions, as a
 * table of descriptors that two processes share. Not all at the same time. */
static int64_t rest_time(const struct pr_entity *e)
{
    return REST_TIME + e->pid % 64 * NS_PER_S;
}

static bool is_due(const struct pr_session *s, const struct pr_tick *t, const struct pr_entity *e,
                   bool rests)
{
    unsigned long ticks = rests ? s->turns.idle_sizes : s->turns.sizes;
    return ((unsigned long)e->pid + s->taken) % ticks == 0 ||
           t->now - e->sized_at >= 2 * (rests ? IDLE_TIME : SIZE_TIME);
}

enum pr_depth pr_depth_of(const struct pr_session *s, const struct pr_tick *t,
                          const struct pr_entity *e, size_t k)
{
    int64_t age = t->now - e->refreshed_at;
    bool ran = pr_depth_has_run(s, e), changed = ran || e->aged;
    if (!t->host->held || s->now.last || s->config->peaks || !e->looks ||
        (changed && age >= times[s->turns.crowd].age))
        return DEPTH_ALL;
    bool young = e->looks < LOOKS_YOUNG && is_power_of_two(e->looks);
    if ((ran && young) || (has_turn(s, k) && (changed || age >= rest_time(e))))
        return DEPTH_ALL;
    bool due = is_due(s, t, e, !ran && !e->io_old);
    if (ran && (e->awaited || (due && s->turns.crowd))) /* else stat tells, and its turn comes */
        return DEPTH_USE;
    if (ran)
        return s->turns.crowd ? DEPTH_TIMES : DEPTH_COUNTS;
    if (due && e->io_old)
        return DEPTH_USE;
    return due && !pr_entity_is_dead(e) ? DEPTH_SIZE : DEPTH_NONE;
}

/* A new high-water mark takes faults. As many as could not raise the size by a hundredth do not
 * count, and a few, as a process that works has them all the time, can wait, but not beyond the
 * phase that they belong to: status is dearer than all else that is read at a tick. */
bool pr_depth_wants_mark(const struct pr_session *s, const struct pr_tick *t,
                         const struct pr_entity *e)
{
    double faults = e->value[METRIC_FAULTS_MINOR] + e->value[METRIC_FAULTS_MAJOR];
    double raised = (faults - e->faults_seen) * HUGE_PAGE;
    bool waits = raised < MARK_MISSED && t->now - e->marked_at < SIZE_TIME && !s->phases.bound;
    return !(raised < e->value[METRIC_MEM_RSS] / 100) && !waits;
}

static unsigned long ticks_in(const struct pr_session *s, int64_t time)
{
    return s->step < time ? (unsigned long)(time / s->step) : 1;
}

/* Turns go round: so many at a tick that all have had one in time. */
void pr_depth_turns(struct pr_session *s)
{
    struct pr_turns *turns = &s->turns;
    struct pr_host *h = &s->host;
    size_t count = s->set.count;
    turns->crowd = s->set.crowd = count * FILES > (size_t)h->hold_limit;
    double passed = pr_seconds(s->now.interval), all = pr_seconds(times[turns->crowd].turn);
    turns->from = count ? (turns->from + turns->count) % count : 0;
    turns->owed += fmax(s->allowance >= 0, passed * fmax(TURN_LEAST, (double)count / all));
    turns->count = (size_t)fmin((double)count, floor(turns->owed));
    turns->owed -= floor(turns->owed);
    turns->sizes = ticks_in(s, SIZE_TIME);
    turns->idle_sizes = ticks_in(s, IDLE_TIME);
    turns->lost = false;
    h->others_limit =
        turns->crowd ? (int)fmax(0, h->hold_limit - (double)count - SPARE) : h->hold_limit;
    h->crowded = h->refused;
    h->refused = false;
}

/* In a crowd I/O of each is read in turn: its rates come when all have had theirs, over that time,
 * and stand till then; so for one turn more when it is no crowd any more. */
void pr_depth_time_io(struct pr_session *s, double dt)
{
    struct pr_turns *turns = &s->turns;
    bool crowd = turns->crowd && s->host.held && !s->config->peaks; /* else all is read */
    double *before = s->totals_before;
    turns->io_time += pr_seconds(s->now.interval);
    if (crowd && !turns->io_crowd) /* that of one interval is none of a turn */
        before[METRIC_IO_READ_RATE] = before[METRIC_IO_WRITE_RATE] = NAN;
    if (crowd != turns->io_crowd)
        turns->io_left = turns->sizes;
    else
        turns->io_left -= turns->io_left > 0;
    turns->io_crowd = crowd;
    bool late = turns->io_time >= pr_seconds(2 * SIZE_TIME), in_turn = crowd || turns->io_left;
    bool all = s->now.first || !in_turn || (!isnan(dt) && (late || !turns->io_left));
    turns->io_dt = all && !isnan(dt) ? turns->io_time : all || s->now.last ? NAN : 0;
    if (!all)
        return;
    turns->io_time = 0;
    turns->io_left = crowd ? turns->sizes : 0;
}
