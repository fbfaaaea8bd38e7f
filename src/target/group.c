/* SPDX-License-Identifier: Apache-2.0 */
/* A process group. A child is in its parent's group, and often finds its own a moment later: who
 * has left the group does not count any further. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/listing.h"
#include "target/targets.h"

#define CHECK_TEXT 32768

struct group {
    struct pr_target target;
    struct pr_target_setting setting;
    struct pr_listing listing;
};

static bool is_member(const struct group *g, const struct pr_stat_line *line)
{
    return line->pgrp == g->setting.root && line->pid != g->setting.self &&
           !pr_stat_line_is_dead(line);
}

static bool wants(const struct pr_target *target, const struct pr_tick *t,
                  const struct pr_stat_line *line)
{
    (void)t;
    return is_member((const struct group *)target, line);
}

static int group_update(struct pr_target *target, const struct pr_tick *t, struct pr_entities *set)
{
    struct group *g = (struct group *)target;
    for (size_t i = 0; i < set->count; i++)
        set->items[i]->left = set->items[i]->pgrp != g->setting.root;
    return pr_listing_update(&g->listing, target, t, set, wants);
}

static bool group_over(const struct pr_target *target, const struct pr_entities *set)
{
    const struct group *g = (const struct group *)target;
    for (size_t i = 0; i < set->count; i++)
        if (pr_entity_is_here(set->items[i]))
            return false;
    return g->listing.looked; /* there was somebody when we were told to watch it */
}

static void group_free(struct pr_target *target, bool close_files)
{
    struct group *g = (struct group *)target;
    pr_listing_done(&g->listing, close_files);
    free(g);
}

static const struct pr_target_ops ops = {
    .update = group_update, .over = group_over, .free = group_free};

/* Looks at all processes once, to know whether there is such a group. */
static int check(struct group *g, const struct pr_host *host, struct proctor_error *err)
{
    struct pr_host copy = *host;
    char *text = malloc(CHECK_TEXT);
    struct pr_tick t = {&copy, 0, text, CHECK_TEXT};
    struct pr_listing all;
    bool found = false;
    pr_listing_open(&all, host, false);
    int r = text ? pr_listing_look(&all, &t, 0) : -ENOMEM;
    /* Kernel threads, and processes of other namespaces, are in group 0, which is none. */
    for (size_t i = 0; i < all.count && r == 0 && g->setting.root > 0; i++)
        found |= is_member(g, &all.candidates[i].line);
    pr_listing_done(&all, true);
    free(text);
    if (r < 0)
        return pr_error(err, -r, "cannot look for the group: %s", strerror(-r));
    return found
               ? 0
               : pr_error(err, ESRCH, "there is no process group %d; `ps -eo pgid,comm` lists them",
                          (int)g->setting.root);
}

int pr_group_new(const struct pr_target_setting *setting, const struct pr_host *host,
                 struct pr_target **ret_target, struct proctor_error *err)
{
    struct group *g = calloc(1, sizeof *g);
    if (!g)
        return pr_error(err, ENOMEM, "out of memory");
    *g = (struct group){.target.ops = &ops, .setting = *setting};
    int r = check(g, host, err);
    if (r < 0) {
        free(g);
        return r;
    }
    pr_listing_open(&g->listing, host, true);
    g->target.files = pr_listing_files(&g->listing);
    *ret_target = &g->target;
    return 0;
}
