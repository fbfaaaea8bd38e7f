/* SPDX-License-Identifier: Apache-2.0 */
#include "core/match.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

/* A process is looked at when it is new, when its comm changes, and now and then: another script of
 * the same interpreter goes by the same comm. */
#define LOOKS_AT_FIRST 3
#define NAMES_EVERY    (10 * NS_PER_S)

/* --- rules ------------------------------------------------------------------------------------ */

/* The length of NAME in "NAME=REGEX", 0 where there is none. */
static size_t name_length(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || (text[n] && strchr("_.-", text[n])))
        n++;
    return text[n] == '=' ? n : 0;
}

int pr_match_parse(const char *text, const char *what, char *ret_name, regex_t *ret_regex,
                   struct proctor_error *err)
{
    char why[100];
    regex_t regex;
    size_t n = name_length(text);
    const char *pattern = n ? text + n + 1 : text;
    if (!*pattern)
        return pr_error(err, EINVAL, "%s: '%.80s' has no pattern; write it as NAME=REGEX or REGEX",
                        what, text);
    int r = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (r != 0) {
        regerror(r, &regex, why, sizeof why);
        return pr_error(err, EINVAL,
                        "%s: '%.60s' is not a regular expression: %s; a backslash makes a special "
                        "character plain",
                        what, pattern, why);
    }
    if (ret_name)
        snprintf(ret_name, NAME_SIZE, "%.*s", n ? (int)n : (int)strlen(text), text);
    if (ret_regex)
        *ret_regex = regex;
    else
        regfree(&regex);
    return 0;
}

static bool is_taken(const struct pr_matches *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->items[i].name, name) == 0)
            return true;
    return false;
}

int pr_matches_init(struct pr_matches *m, const struct pr_list *rules, struct proctor_error *err)
{
    *m = (struct pr_matches){.items = calloc(rules->count + 1, sizeof *m->items)};
    if (!m->items)
        return pr_error(err, ENOMEM, "out of memory");
    if (rules->count > MATCHES_MOST)
        return pr_error(err, EINVAL, "--match: %zu are too many; the most is %d", rules->count,
                        MATCHES_MOST);
    for (size_t i = 0; i < rules->count; i++) {
        struct pr_match *rule = &m->items[i];
        int r = pr_match_parse(rules->items[i], "--match", rule->name, &rule->regex, err);
        if (r < 0)
            return r;
        pr_stats_init(&rule->stats);
        pr_stats_want_quantiles(&rule->stats, PROC_METRICS);
        rule->first_seen = rule->last_seen = NAN;
        pr_values_none(rule->previous, PROC_METRICS);
        for (int id = 0; id < PROC_METRICS; id++)
            rule->each[id] = STAT_NONE;
        if (is_taken(m, rule->name)) {
            regfree(&rule->regex);
            pr_stats_done(&rule->stats);
            return pr_error(
                err, EINVAL,
                "--match: there are two named '%.80s'; give one another NAME=", rule->name);
        }
        m->count++;
    }
    return 0;
}

void pr_matches_done(struct pr_matches *m)
{
    for (size_t i = 0; i < m->count; i++) {
        regfree(&m->items[i].regex);
        pr_stats_done(&m->items[i].stats);
    }
    free(m->items);
    *m = (struct pr_matches){0};
}

int pr_matches_find(const struct pr_matches *m, const struct pr_host *host, pid_t pid,
                    const char *comm)
{
    struct pr_names names;
    pr_names_read(host, pid, comm, &names);
    for (size_t i = 0; i < m->count; i++)
        for (int k = 0; k < names.count; k++)
            if (regexec(&m->items[i].regex, names.text[k], 0, NULL, 0) == 0)
                return (int)i;
    return MATCH_NONE;
}

/* --- who belongs where ------------------------------------------------------------------------ */

static bool is_due(const struct pr_entity *e, int64_t now)
{
    return e->looks <= LOOKS_AT_FIRST || now - e->named->at >= NAMES_EVERY ||
           strcmp(e->named->comm, e->comm) != 0;
}

/* Network bytes are each process's own, whoever waits for it. */
static bool is_own(int id)
{
    return pr_metric_in_ledger((enum pr_metric_id)id) ||
           (pr_metrics[id].kind == KIND_COUNTER && pr_metrics[id].needs == READ_NET);
}

/* What it used under its rule, up to these values, stays there. */
static void leave(struct pr_matches *m, struct pr_entity *e, const double *value)
{
    if (e->match == MATCH_NONE)
        return;
    for (int id = 0; id < PROC_METRICS; id++)
        if (is_own(id))
            m->items[e->match].ended[id] += pr_value_known(value[id]) - e->named->since[id];
    e->match = MATCH_NONE;
}

/* Once for each process, though it may come back. */
static void count_instance(struct pr_match *rule, struct pr_entity *e, int match)
{
    uint64_t bit = UINT64_C(1) << match;
    rule->instances += !(e->named->matched & bit);
    e->named->matched |= bit;
}

/* It went by that name for a moment only. */
static void forget_instance(struct pr_matches *m, struct pr_entity *e)
{
    if (e->match == MATCH_NONE)
        return;
    m->items[e->match].instances--;
    e->named->matched &= ~(UINT64_C(1) << e->match);
}

/* `since`: the counters from which on its use is the rule's. */
static void enter(struct pr_matches *m, struct pr_entity *e, int match, const double *since)
{
    e->match = match;
    count_instance(&m->items[match], e, match);
    for (int id = 0; id < PROC_METRICS; id++)
        e->named->since[id] = pr_value_known(since[id]);
}

void pr_match_return(struct pr_entity *e, const double *value)
{
    for (int id = 0; id < PROC_METRICS && e->named; id++)
        e->named->since[id] += pr_value_known(e->value[id]) - pr_value_known(value[id]);
}

static void place(struct pr_matches *m, struct pr_entity *e, const struct pr_tick *t)
{
    if (e->life != LIFE_ALIVE) {
        leave(m, e, e->value);
        return;
    }
    if (pr_entity_is_dead(e) || !is_due(e, t->now))
        return;
    int match = pr_matches_find(m, t->host, e->pid, e->comm);
    if (match != e->match) {
        /* Who was caught between fork and exec has used next to nothing under its parent's name:
         * what came since the sample before is the new one's. */
        bool caught = e->looks <= LOOKS_AT_FIRST && (e->match == MATCH_NONE || e->born_inside);
        const double *until = caught ? e->previous : e->value;
        if (caught)
            forget_instance(m, e);
        leave(m, e, until);
        if (match != MATCH_NONE)
            enter(m, e, match, until);
    }
    e->named->at = t->now;
    memcpy(e->named->comm, e->comm, sizeof e->named->comm);
}

/* --- what they use ---------------------------------------------------------------------------- */

static void see(struct pr_match *rule, const struct pr_entity *e, struct pr_span span)
{
    rule->samples++;
    rule->last_seen = span.at;
    if (isnan(rule->first_seen))
        rule->first_seen = span.at;
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metrics[id].kind != KIND_COUNTER && !isnan(e->value[id]))
            pr_stat_add(&rule->each[id], e->value[id], span.at, span.dt);
}

static void count(struct pr_match *rule, const struct pr_entities *set, int index,
                  struct pr_span span, const struct pr_basis *basis, double *value)
{
    memcpy(value, rule->ended, sizeof rule->ended);
    for (size_t k = 0; k < set->count; k++) {
        struct pr_entity *e = set->items[k];
        if (e->match != index)
            continue;
        if (pr_entity_is_here(e)) {
            pr_derive(e->value, e->previous, basis, NULL);
            see(rule, e, span);
        }
        for (int id = 0; id < PROC_METRICS; id++) {
            value[id] += pr_value_known(e->value[id]) - e->named->since[id];
            rule->seen[id] |= !isnan(e->value[id]);
        }
    }
    for (int id = 0; id < PROC_METRICS; id++)
        if (!is_own(id) || !rule->seen[id])
            value[id] = NAN;
}

void pr_match_show(const struct pr_match *rule, struct pr_match_values *ret)
{
    ret->name = rule->name;
    memcpy(ret->value, rule->previous, sizeof ret->value);
}

/* Switches and waiting are of first threads, and as of when each was last read, as I/O is in a
 * crowd; the kernel has no other I/O of a process than with that of its children. */
static void mark_counters(unsigned char *mark, bool crowd)
{
    for (int id = 0; id < PROC_METRICS; id++)
        if (pr_metrics[id].kind == KIND_COUNTER && pr_metric_ages((enum pr_metric_id)id))
            mark[id] = MARK_LOWER_BOUND;
        else if (pr_metrics[id].kind == KIND_COUNTER && (pr_metrics[id].needs & READ_IO))
            mark[id] = crowd ? MARK_LOWER_BOUND : MARK_WITH_REAPED;
}

void pr_matches_sample(struct pr_matches *m, struct pr_entities *set, const struct pr_tick *t,
                       const struct proctor_snapshot *sample, const struct pr_basis *basis)
{
    struct pr_basis own = pr_basis_of_member(basis);
    for (size_t k = 0; k < set->count && m->count; k++)
        place(m, set->items[k], t);
    for (size_t i = 0; i < m->count; i++) {
        struct pr_match *rule = &m->items[i];
        struct pr_span span = {pr_seconds(sample->elapsed), pr_seconds(sample->interval), 0};
        double value[PROC_METRICS];
        unsigned char mark[PROC_METRICS] = {0};
        count(rule, set, (int)i, span, &own, value);
        pr_fold_match(set, (int)i, value, mark);
        pr_derive(value, rule->previous, &own, mark);
        mark_counters(mark, set->crowd && !sample->last);
        pr_stats_add_values(&rule->stats, value, mark, PROC_METRICS, span);
        memcpy(rule->previous, value, sizeof rule->previous);
    }
}
