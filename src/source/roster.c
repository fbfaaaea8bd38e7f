/* SPDX-License-Identifier: Apache-2.0 */
#include "source/roster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"

/* A bond may get members, and a name another device, without a change of names. */
#define GOOD_FOR (60 * NS_PER_S)

static struct pr_roster *roster_of(void **state)
{
    struct pr_roster *r = *state;
    if (!r && (r = *state = calloc(1, sizeof *r)))
        r->fd = -1;
    return r;
}

static bool make_room(struct pr_roster *r)
{
    size_t cap = r->cap ? r->cap * 2 : 16;
    struct pr_roster_line *lines = realloc(r->lines, cap * sizeof *lines);
    if (!lines)
        return false;
    r->lines = lines;
    r->cap = cap;
    return true;
}

/* Who is in line i. A name that was not there before makes all that is known doubtful: an array
 * that comes up stands on disks that have been there. */
static void name_line(struct pr_roster *r, size_t i, struct pr_scan name)
{
    struct pr_roster_line *line = &r->lines[i];
    size_t len = (size_t)(name.end - name.p);
    len = len < DEVICE_NAME ? len : DEVICE_NAME - 1;
    if (i < r->count && strncmp(line->name, name.p, len) == 0 && !line->name[len])
        return;
    *line = (struct pr_roster_line){0};
    memcpy(line->name, name.p, len);
    r->known = false;
}

static int take(const struct pr_roster_rules *rules, struct pr_roster *r, const struct pr_tick *t,
                size_t len)
{
    struct pr_scan s = pr_scan_of(t->text, len), text, name;
    size_t i = 0;
    double value[2];
    while (pr_scan_line(&s, &text)) {
        if (!rules->line(text, &name, value))
            continue;
        if (i == r->cap && !make_room(r))
            return -ENOMEM;
        name_line(r, i, name);
        memcpy(r->lines[i++].value, value, sizeof value);
    }
    if (i != r->count)
        r->known = false;
    r->count = i;
    return 0;
}

/* False where nothing counts. */
static bool put(const struct pr_roster_rules *rules, const struct pr_roster *r,
                struct pr_machine *m)
{
    bool any = false;
    for (size_t i = 0; i < r->count; i++) {
        const struct pr_roster_line *line = &r->lines[i];
        struct pr_device_state *d = NULL;
        if (line->shown)
            d = pr_devices_get(&m->devices, rules->kind, line->name, strlen(line->name));
        if (!d)
            continue;
        d->out.counted = line->counted;
        for (int k = 0; k < 2; k++)
            pr_device_put(d, rules->metric[k], line->value[k]);
        any |= line->counted;
    }
    return any;
}

int pr_roster_read(const struct pr_roster_rules *rules, struct pr_machine *m,
                   const struct pr_tick *t, void **state)
{
    struct pr_roster *r = roster_of(state);
    if (!r)
        return -ENOMEM;
    ssize_t n = rules->text(t, &r->fd);
    int e = n < 0 ? (int)n : take(rules, r, t, (size_t)n);
    if (e < 0)
        return e;
    /* A captured tree may be another one each time. */
    if (!r->known || !t->host->held || t->now - r->known_at >= GOOD_FOR) {
        rules->find_out(r, t);
        r->known = true;
        r->known_at = t->now;
    }
    if (put(rules, r, m))
        return 0;
    pr_machine_explain(m, rules->source, "%s: %s", pr_machine_sources[rules->source]->name,
                       rules->none);
    return -ENODEV;
}

void pr_roster_close(void *state, bool close_files)
{
    struct pr_roster *r = state;
    if (close_files && r->fd >= 0)
        close(r->fd);
    free(r->lines);
    free(r);
}
