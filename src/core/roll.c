/* SPDX-License-Identifier: Apache-2.0 */
#include "core/roll.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "util/scan.h"

#define OTHERS "(others)"

void pr_roll_done(struct pr_roll *r)
{
    for (size_t i = 0; i < ROLL_MOST / ROLL_PIECE; i++)
        free(r->piece[i]);
    free(r->commands);
    pr_map_done(&r->by_comm);
    *r = (struct pr_roll){0};
}

const char *pr_roll_way_name(enum pr_roll_way way)
{
    static const char *const names[] = {
        [ROLL_SAMPLED] = "sampled", [ROLL_WAITED] = "waited", [ROLL_RECORD] = "record"};
    return names[way];
}

bool pr_roll_failed(int status)
{
    return status >= 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

const struct pr_roll_entry *pr_roll_at(const struct pr_roll *r, size_t index)
{
    return &r->piece[index / ROLL_PIECE][index % ROLL_PIECE];
}

/* --- by command ------------------------------------------------------------------------------- */

static bool make_room(struct pr_roll *r)
{
    if (r->command_count < r->command_cap)
        return true;
    size_t cap = r->command_cap ? r->command_cap * 2 : 16;
    struct pr_roll_command *more = realloc(r->commands, cap * sizeof *more);
    if (!more)
        return false;
    r->commands = more;
    r->command_cap = cap;
    return true;
}

/* Two names with one hash are not worth a chain: they would share an account that neither has. */
static struct pr_roll_command *command_of(struct pr_roll *r, const char *comm)
{
    uint64_t at, key = pr_scan_hash(comm, strlen(comm)) | 1;
    if (pr_map_get(&r->by_comm, key, &at))
        return &r->commands[at - 1];
    if (r->command_count == ROLL_COMMANDS - 1 && strcmp(comm, OTHERS) != 0)
        return command_of(r, OTHERS);
    if (r->command_count == ROLL_COMMANDS)
        return &r->commands[ROLL_COMMANDS - 1];
    if (!make_room(r) || !pr_map_set(&r->by_comm, key, r->command_count + 1))
        return NULL;
    struct pr_roll_command *c = &r->commands[r->command_count++];
    *c = (struct pr_roll_command){.peak = NAN};
    memcpy(c->comm, comm, strlen(comm) + 1);
    return c;
}

static void fold(struct pr_roll *r, const struct pr_roll_entry *e)
{
    struct pr_roll_command *c = command_of(r, e->comm);
    if (!c)
        return;
    c->count++;
    c->failed += pr_roll_failed(e->status);
    c->told += e->status >= 0;
    c->cpu += pr_value_known(e->cpu);
    c->peak = fmax(c->peak, e->peak);
    for (int i = 0; i < ROLL_IO; i++)
        c->io[i] += pr_value_known(e->io[i]);
}

static bool may_be_killed(const struct pr_roll_entry *e)
{
    if (e->status < 0)
        return e->ended != 0;
    return WIFSIGNALED(e->status) ? WTERMSIG(e->status) == SIGKILL
                                  : WEXITSTATUS(e->status) == 128 + SIGKILL;
}

/* --- entries ---------------------------------------------------------------------------------- */

void pr_roll_add(struct pr_roll *r, const struct pr_roll_entry *entry)
{
    r->unsampled += entry->looks == 0;
    r->killed |= may_be_killed(entry);
    fold(r, entry);
    size_t piece = r->count / ROLL_PIECE;
    bool full = r->count == ROLL_MOST;
    if (!full && !r->piece[piece])
        r->piece[piece] = malloc(ROLL_PIECE * sizeof *entry);
    if (full || !r->piece[piece]) {
        r->folded++;
        return;
    }
    r->piece[piece][r->count % ROLL_PIECE] = *entry;
    r->count++;
}

struct pr_roll_entry pr_roll_entry_of(const struct pr_entity *e)
{
    struct pr_roll_entry entry = {.pid = e->pid,
                                  .ppid = e->ppid,
                                  .cpu = e->value[METRIC_CPU_TIME],
                                  .peak = fmax(e->end.mark, e->value[METRIC_MEM_RSS_PEAK]),
                                  .peak_final = e->end.mark_final,
                                  .status = e->end.status,
                                  .looks = e->looks,
                                  .way = e->end.waited ? ROLL_WAITED
                                         : e->told > 0 ? ROLL_RECORD
                                                       : ROLL_SAMPLED};
    if (entry.way == ROLL_RECORD)
        entry.cpu = fmax(entry.cpu, e->told);
    entry.cpu -= e->end.cpu_before;
    if (entry.cpu < 0) /* clocks of two kinds */
        entry.cpu = 0;
    for (int i = 0; i < ROLL_IO; i++) {
        double own = pr_entity_io(e, i) - e->end.io_brought[i];
        entry.io[i] = own < 0 ? 0 : own;
    }
    memcpy(entry.comm, e->comm, ROLL_COMM - 1);
    return entry;
}

/* --- together --------------------------------------------------------------------------------- */

struct edge {
    int64_t at;
    double by;
};

/* Who comes comes before who goes: they may have met. */
static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->by < y->by) - (x->by > y->by);
}

static double highest(struct edge *edges, size_t count)
{
    double sum = 0, most = 0;
    qsort(edges, count, sizeof *edges, by_time);
    for (size_t i = 0; i < count; i++) {
        sum += edges[i].by;
        most = fmax(most, sum);
    }
    return most;
}

double pr_roll_upper(const struct pr_roll *r)
{
    struct edge *edges = r->count && !r->folded ? malloc(2 * r->count * sizeof *edges) : NULL;
    double most = NAN;
    size_t count = 0;
    for (size_t i = 0; edges && i < r->count; i++) {
        const struct pr_roll_entry *e = pr_roll_at(r, i);
        if (isnan(e->peak) || !e->peak_final)
            break;
        edges[count++] = (struct edge){e->started, e->peak};
        edges[count++] = (struct edge){e->ended ? e->ended : INT64_MAX, -e->peak};
    }
    if (edges && count == 2 * r->count)
        most = highest(edges, count);
    free(edges);
    return most;
}
