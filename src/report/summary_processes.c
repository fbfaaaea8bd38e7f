/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a run, by command and one by one. */
#include <math.h>
#include <stdlib.h>

#include "core/exact.h"
#include "report/summary.h"

#define LISTED 100 /* of each kind, unless all are asked for */

/* Without a record of every exit, the machine's own count of forks is the most that it can be, and
 * those that we waited for are the least. */
struct pr_unsampled pr_summary_unsampled(const struct pr_session *s, const struct pr_facts *facts)
{
    const struct pr_exact *x = s->exact;
    struct pr_unsampled u = {(double)s->roll.unsampled, NAN};
    double sampled =
        (double)(s->set.started - s->roll.at_first) - (u.least - (double)s->roll.recorded);
    if (x && x->ops && x->ops->records && !x->lossy)
        u.most = u.least;
    else if (facts->way < WAY_MATCH && s->roll.forks >= sampled + u.least)
        u.most = s->roll.forks - sampled;
    return u;
}

/* --- the most CPU time first ------------------------------------------------------------------ */

static int by_cpu(double a, double b)
{
    return (pr_value_known(a) < pr_value_known(b)) - (pr_value_known(a) > pr_value_known(b));
}

static int entries_by_cpu(const void *a, const void *b)
{
    const struct pr_roll_entry *x = *(const struct pr_roll_entry *const *)a,
                               *y = *(const struct pr_roll_entry *const *)b;
    return by_cpu(x->cpu, y->cpu);
}

static int commands_by_cpu(const void *a, const void *b)
{
    return by_cpu(((const struct pr_roll_command *)a)->cpu,
                  ((const struct pr_roll_command *)b)->cpu);
}

void pr_summary_sort_commands(struct pr_roll *r)
{
    if (r->command_count)
        qsort(r->commands, r->command_count, sizeof *r->commands, commands_by_cpu);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void count(struct pr_json *j, const char *key, double v)
{
    pr_json_key(j, key);
    pr_json_number(j, v);
}

static void put_commands(struct pr_json *j, const struct pr_roll *r, size_t most)
{
    pr_json_key(j, "commands");
    pr_json_open(j, '[');
    for (size_t i = 0; i < r->command_count && i < most; i++) {
        const struct pr_roll_command *c = &r->commands[i];
        pr_json_open(j, '{');
        pr_json_key(j, "command");
        pr_json_string(j, c->comm);
        count(j, "processes", (double)c->count);
        count(j, "exits_known", (double)c->told);
        count(j, "failed", c->told ? (double)c->failed : NAN);
        pr_roll_put_use(j, c->cpu, c->peak, c->io);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
}

static void put_list(struct pr_json *j, const struct pr_roll *r, size_t most)
{
    const struct pr_roll_entry **sorted = calloc(r->count + 1, sizeof *sorted);
    size_t n = sorted ? r->count : 0;
    for (size_t i = 0; i < n; i++)
        sorted[i] = pr_roll_at(r, i);
    if (n)
        qsort(sorted, n, sizeof *sorted, entries_by_cpu);
    pr_json_key(j, "list");
    pr_json_open(j, '[');
    for (size_t i = 0; i < n && i < most; i++) {
        pr_json_open(j, '{');
        pr_roll_put(j, sorted[i]);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
    free(sorted);
}

void pr_summary_processes(struct pr_json *j, struct pr_session *s, const struct pr_facts *facts)
{
    struct pr_unsampled u = pr_summary_unsampled(s, facts);
    size_t most = s->config->processes ? SIZE_MAX : LISTED;
    pr_summary_sort_commands(&s->roll);
    pr_json_key(j, "processes");
    pr_json_open(j, '{');
    count(j, "seen", (double)(s->set.started + s->roll.recorded));
    count(j, "never_sampled", u.least == u.most ? u.least : NAN);
    count(j, "never_sampled_least", u.least);
    count(j, "never_sampled_most", u.most);
    count(j, "folded", (double)s->roll.folded);
    put_commands(j, &s->roll, most);
    put_list(j, &s->roll, most);
    pr_json_close(j, '}');
}
