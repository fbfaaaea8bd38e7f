/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of a process. Children of any thread are found, since every child names its parent
 * process; members stay members when they are orphaned, or in a new session or group. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/listing.h"
#include "target/targets.h"
#include "util/fs.h"
#include "util/scan.h"

struct tree {
    struct pr_target target;
    struct pr_target_setting setting;
    struct pr_candidate root;
    struct pr_listing listing;
    bool joined; /* the root */
};

/* --- is it ours? ------------------------------------------------------------------------------ */

enum place { OURS, NOT_OURS, UNKNOWN };

static bool is_stranger(const struct tree *tree, pid_t pid)
{
    for (size_t i = 0; i < tree->setting.stranger_count; i++)
        if (tree->setting.strangers[i] == pid)
            return true;
    return false;
}

static enum place place_of(const struct tree *tree, const struct pr_entities *set,
                           const struct pr_stat_line *line)
{
    if (line->pid == tree->setting.self || is_stranger(tree, line->pid))
        return NOT_OURS;
    if (tree->setting.adopter && line->ppid == tree->setting.adopter)
        return OURS;
    if (pr_entities_find(set, line->ppid))
        return OURS;
    if (line->ppid <= 1 || line->ppid == tree->setting.self ||
        pr_listing_is_stranger(&tree->listing, line->ppid))
        return NOT_OURS;
    return UNKNOWN;
}

/* Places candidates until nothing moves any more: a child may be listed before its parent. */
static void place_all(struct tree *tree, const struct pr_tick *t, struct pr_entities *set)
{
    struct pr_listing *l = &tree->listing;
    bool moved = true;
    while (moved) {
        size_t left = 0;
        moved = false;
        for (size_t i = 0; i < l->count; i++) {
            struct pr_candidate *c = &l->candidates[i];
            enum place place = place_of(tree, set, &c->line);
            if (place == UNKNOWN ||
                (place == OURS && !pr_listing_join(l, set, c, tree->setting.fresh))) {
                l->candidates[left++] = *c;
                continue;
            }
            pr_listing_placed(l, t, c, place == OURS);
            moved = true;
        }
        l->count = left;
    }
    /* A parent that is in neither list was born, or died, while we looked. */
    l->look_again |= l->count > 0;
}

static int tree_update(struct pr_target *target, const struct pr_tick *t, struct pr_entities *set)
{
    struct tree *tree = (struct tree *)target;
    struct pr_listing *l = &tree->listing;
    if (!tree->joined && !pr_listing_join(l, set, &tree->root, tree->setting.fresh))
        return -ENOMEM;
    tree->joined = true;
    if (tree->setting.alone || !pr_listing_due(l, t))
        return 0;
    int r = pr_listing_look(l, t, tree->setting.held && !l->looked ? tree->root.line.pid : 0);
    if (r < 0)
        return r;
    pr_listing_part_with_reused(l, set);
    place_all(tree, t, set);
    pr_listing_end(l);
    return 0;
}

static bool tree_over(const struct pr_target *target, const struct pr_entities *set)
{
    const struct tree *tree = (const struct tree *)target;
    const struct pr_stat_line *root = &tree->root.line;
    for (size_t i = 0; i < set->count; i++) {
        const struct pr_entity *e = set->items[i];
        if (pr_entity_is_here(e) &&
            (tree->setting.wait_tree || (e->pid == root->pid && e->start == root->start)))
            return false;
    }
    return tree->joined;
}

static void tree_free(struct pr_target *target, bool close_files)
{
    struct tree *tree = (struct tree *)target;
    pr_listing_done(&tree->listing, close_files);
    free(tree);
}

static const struct pr_target_ops ops = {
    .update = tree_update, .over = tree_over, .free = tree_free, .from_within = true};

/* The process that a thread belongs to; 0 where that cannot be read. */
static pid_t thread_group(const struct pr_host *host, pid_t pid)
{
    char path[32], text[4096];
    static const struct pr_scan_row row = {"Tgid:", 0, 1};
    double group[1] = {0};
    snprintf(path, sizeof path, "%d/status", (int)pid);
    ssize_t n = pr_fs_read(host->proc, path, text, sizeof text);
    if (n > 0)
        pr_scan_keyed(text, (size_t)n, &row, 1, group);
    return (pid_t)group[0];
}

static int check_root(const struct pr_host *host, pid_t pid, bool fresh,
                      struct pr_stat_line *ret_line, struct proctor_error *err)
{
    int r = pr_listing_stat(host, pid, ret_line);
    if (r == -ENOENT || r == -ESRCH || (r == 0 && pr_stat_line_is_dead(ret_line)))
        return pr_error(err, ESRCH, "there is no process %d%s", (int)pid, pr_host_hidden(host));
    if (r < 0)
        return pr_error(err, -r, "process %d: %s%s", (int)pid,
                        r == -EIO ? "its stat file is not understood" : strerror(-r),
                        pr_host_hidden(host));
    pid_t group = fresh ? pid : thread_group(host, pid);
    if (group && group != pid)
        return pr_error(err, ESRCH, "%d is a thread of process %d", (int)pid, (int)group);
    return 0;
}

int pr_tree_new(const struct pr_target_setting *setting, const struct pr_host *host,
                struct pr_target **ret_target, struct proctor_error *err)
{
    struct tree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return pr_error(err, ENOMEM, "out of memory");
    *tree = (struct tree){.target.ops = &ops, .setting = *setting};
    int r = check_root(host, setting->root, setting->fresh, &tree->root.line, err);
    if (r < 0) {
        free(tree);
        return r;
    }
    pr_listing_open(&tree->listing, host, false);
    tree->target.files = pr_listing_files(&tree->listing);
    *ret_target = &tree->target;
    return 0;
}
