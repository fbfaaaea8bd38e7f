/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes a report shows: those with the most CPU time, those with the highest peaks, and
 * whoever started them. */
#include <math.h>
#include <stdlib.h>

#include "core/roll.h"
#include "report/model_parts.h"
#include "util/clock.h"
#include "util/text.h"

#define BY_CPU  90
#define BY_PEAK 60

enum order { ORDER_CPU, ORDER_PEAK };
struct chosen {
    struct pr_query *command; /* NULL: an older record, which has none */
    const struct pr_roll *roll;
    enum order order;
    int *place; /* of each entry in the model's list, -1 for not there */
};

static double rank(const struct chosen *c, size_t i)
{
    const struct pr_roll_entry *e = pr_roll_at(c->roll, i);
    return pr_value_known(c->order == ORDER_CPU ? e->cpu : e->peak);
}

static int larger_first(const void *a, const void *b, void *of)
{
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    double x = rank(of, i), y = rank(of, k);
    return x != y ? (x < y ? 1 : -1) : (i > k) - (i < k);
}

/* The one that was there under this pid when a child began; -1 for nobody. Pids come again. */
static ssize_t parent_of(const struct pr_roll *roll, const struct pr_roll_entry *child)
{
    for (size_t i = roll->count; i-- > 0;) {
        const struct pr_roll_entry *e = pr_roll_at(roll, i);
        if (e->pid == child->ppid && e != child && e->started <= child->started &&
            (!e->ended || e->ended >= child->started))
            return (ssize_t)i;
    }
    return -1;
}

static const char *exit_words(struct pr_model *m, int status)
{
    char name[32];
    if (status < 0)
        return NULL;
    if (status & 0x7f)
        return pr_model_text(m, "killed by %s", pr_text_signal(status & 0x7f, name, sizeof name));
    return pr_model_text(m, "exit %d", (status >> 8) & 0xff);
}

static double elapsed(const struct pr_stored *r, int64_t wall)
{
    return fmax(0, pr_seconds(wall) - pr_seconds(r->started));
}

/* What it was called with; NULL where the record has not got that. */
static const char *command_of(struct pr_model *m, const struct chosen *c,
                              const struct pr_roll_entry *e)
{
    if (!c->command)
        return NULL;
    pr_query_reset(c->command);
    pr_query_int(c->command, 1, e->pid);
    pr_query_int(c->command, 2, e->started);
    const char *text = pr_query_step(c->command) == 1 ? pr_query_get_text(c->command, 0) : NULL;
    return text && *text ? pr_model_text(m, "%s", text) : NULL;
}

/* Its index in the list, its ancestors being there before it. */
static int add(struct pr_model *m, const struct pr_stored *r, struct chosen *c, size_t i, int deep)
{
    const struct pr_roll_entry *e = pr_roll_at(c->roll, i);
    if (c->place[i] >= 0 || m->processes.count >= MODEL_PROCESSES || deep > 32)
        return c->place[i];
    ssize_t above = parent_of(c->roll, e);
    int parent = above < 0 ? -1 : add(m, r, c, (size_t)above, deep + 1);
    if (c->place[i] >= 0) /* it was its own ancestor: a file may say anything */
        return c->place[i];
    struct pr_model_process *p =
        m->processes.count < MODEL_PROCESSES ? LIST_ADD(m, &m->processes) : NULL;
    if (!p)
        return -1;
    *p = (struct pr_model_process){.pid = e->pid,
                                   .parent = parent,
                                   .name = pr_model_text(m, "%s", e->comm),
                                   .command = command_of(m, c, e),
                                   .exit = exit_words(m, e->status),
                                   .started = e->started,
                                   .begin = elapsed(r, e->started),
                                   .end = e->ended ? elapsed(r, e->ended) : NAN,
                                   .cpu = e->cpu,
                                   .peak = e->peak,
                                   .read = e->io[0],
                                   .written = e->io[1]};
    return c->place[i] = (int)m->processes.count - 1;
}

static void add_first(struct pr_model *m, const struct pr_stored *r, struct chosen *c,
                      enum order order, size_t most, size_t *index)
{
    c->order = order;
    qsort_r(index, c->roll->count, sizeof *index, larger_first, c);
    for (size_t i = 0; i < c->roll->count && i < most; i++)
        add(m, r, c, index[i], 0);
}

void pr_model_processes(struct pr_model *m, const struct pr_stored *r, const struct pr_roll *roll)
{
    size_t *index = calloc(roll->count + 1, sizeof *index);
    struct chosen c = {.roll = roll, .place = calloc(roll->count + 1, sizeof *c.place)};
    m->failed |= !index || !c.place;
    if (pr_query_new(&c.command, r->db,
                     "SELECT command FROM entities WHERE pid = ?1 AND started = ?2"
                     " AND command IS NOT NULL") < 0)
        c.command = NULL;
    for (size_t i = 0; index && c.place && i < roll->count; i++) {
        index[i] = i;
        c.place[i] = -1;
    }
    if (index && c.place) {
        add_first(m, r, &c, ORDER_CPU, BY_CPU, index);
        add_first(m, r, &c, ORDER_PEAK, BY_PEAK, index);
    }
    m->seen = (double)(roll->count + roll->folded);
    if (m->seen > (double)m->processes.count)
        m->processes_note = pr_model_text(
            m, "Of %.0f processes, those with the most CPU time and the highest peaks.", m->seen);
    pr_query_free(c.command);
    free(index);
    free(c.place);
}
