/* SPDX-License-Identifier: Apache-2.0 */
/* Processes by name, on the whole machine. Who executes another program may come to match, or cease
 * to: the session looks at members' names again (core/match.c), the listing at all others. */
#include <errno.h>
#include <stdlib.h>

#include "target/listing.h"
#include "target/targets.h"

struct match {
    struct pr_target target;
    struct pr_target_setting setting;
    struct pr_listing listing;
};

static bool wants(const struct pr_target *target, const struct pr_tick *t,
                  const struct pr_stat_line *line)
{
    const struct match *m = (const struct match *)target;
    return line->pid != m->setting.self && !pr_stat_line_is_dead(line) &&
           pr_matches_find(m->setting.matches, t->host, line->pid, line->comm) != MATCH_NONE;
}

static int match_update(struct pr_target *target, const struct pr_tick *t, struct pr_entities *set)
{
    struct match *m = (struct match *)target;
    for (size_t i = 0; i < set->count; i++)
        set->items[i]->left = set->items[i]->match == MATCH_NONE && set->items[i]->named->at;
    return pr_listing_update(&m->listing, target, t, set, wants);
}

static bool match_over(const struct pr_target *target, const struct pr_entities *set)
{
    (void)target, (void)set;
    return false; /* there may be others soon */
}

static void match_free(struct pr_target *target, bool close_files)
{
    struct match *m = (struct match *)target;
    pr_listing_done(&m->listing, close_files);
    free(m);
}

static const struct pr_target_ops ops = {.update = match_update,
                                         .over = match_over,
                                         .free = match_free,
                                         .may_be_empty = true,
                                         .own_only = true};

int pr_match_new(const struct pr_target_setting *setting, const struct pr_host *host,
                 struct pr_target **ret_target, struct proctor_error *err)
{
    struct match *m = calloc(1, sizeof *m);
    if (!m)
        return pr_error(err, ENOMEM, "out of memory");
    *m = (struct match){.target.ops = &ops, .setting = *setting};
    pr_listing_open(&m->listing, host, true);
    m->target.files = pr_listing_files(&m->listing);
    *ret_target = &m->target;
    return 0;
}
