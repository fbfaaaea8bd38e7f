/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a link costs about a microsecond, and a process may have many: descriptors are looked at
 * only while somebody is looked for. That nobody has a socket is known when every member was looked
 * at, those included that were found after the socket was first seen: a child may be born, and have
 * its socket, between the finding of members and the dump. */
#include "source/net_owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/scan.h"

#define SPARING     200                 /* it takes one part in so many of the time, */
#define SEARCH_MOST (NS_PER_S * 9 / 10) /* or comes once a second, where there is budget for it */
#define SLICE       3000000             /* ns of CPU at a time, */
#define SLICE_FIRST 30000000            /* and while everybody is new, when all is read anyway */

uint64_t pr_net_link_inode(const char *text, size_t len)
{
    uint64_t inode;
    struct pr_scan s = pr_scan_of(text, len);
    return pr_scan_prefix(&s, "socket:[") && pr_scan_u64(&s, &inode) && s.p + 1 == s.end &&
                   *s.p == ']'
               ? inode
               : 0;
}

static void look_at(struct pr_net_search *search, struct pr_net_table *n, struct pr_entities *set,
                    const struct pr_entity *e, int dir, const char *name)
{
    char text[64];
    ssize_t len = name[0] == '.' ? 0 : readlinkat(dir, name, text, sizeof text);
    uint64_t inode = len > 0 ? pr_net_link_inode(text, (size_t)len) : 0;
    if (inode && pr_net_table_found(n, set, e, inode))
        search->wanted--;
}

static int look_at_all(struct pr_net_search *search, struct pr_net_table *n,
                       struct pr_entities *set, const struct pr_entity *e, const struct pr_tick *t)
{
    char path[32];
    ssize_t len = 0;
    snprintf(path, sizeof path, "%d/fd", (int)e->pid);
    int dir = openat(t->host->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    while ((len = getdents64(dir, t->text, t->text_size)) > 0)
        for (ssize_t at = 0; at < len;) {
            const struct dirent64 *entry = (const void *)(t->text + at);
            look_at(search, n, set, e, dir, entry->d_name);
            at += entry->d_reclen;
        }
    int r = len < 0 ? -errno : 0;
    close(dir);
    return r;
}

static bool begin(struct pr_net_search *search, const struct pr_net_table *n, int64_t now,
                  bool may_spend)
{
    int64_t since = now - search->began;
    if (search->under_way)
        return true;
    if (since < SPARING * search->cost && !(may_spend && since >= SEARCH_MOST))
        return false;
    *search = (struct pr_net_search){
        .number = search->number + 1, .under_way = true, .from = n->reading, .began = now};
    return true;
}

/* Whoever has not run since has got no other descriptors (but for those of ours, where we are in
 * it), and had none of what is looked for: a socket is known from when it is bound or connected,
 * for which somebody runs. */
static bool is_as_it_was(const struct pr_entity *e)
{
    return e->net_search && e->idle && e->ran == e->net_ran && !e->net_denied;
}

/* False where there was not the time for all. */
static bool look_at_members(struct pr_net_search *search, struct pr_net_table *n,
                            struct pr_entities *set, const struct pr_tick *t)
{
    int64_t until = pr_clock_thread_cpu() + (search->number == 1 ? SLICE_FIRST : SLICE);
    for (size_t k = 0; k < set->count && search->wanted; k++) {
        struct pr_entity *e = set->items[k];
        if (!pr_entity_is_here(e) || e->kernel_thread || e->net_search == search->number)
            continue;
        if (is_as_it_was(e)) {
            e->net_search = search->number;
            continue;
        }
        if (pr_clock_thread_cpu() > until)
            return false;
        int r = look_at_all(search, n, set, e, t);
        e->net_denied = r == -EACCES || r == -EPERM;
        search->blind |= r < 0 && r != -ENOENT && r != -ESRCH;
        e->net_search = search->number;
        e->net_ran = e->ran;
    }
    return true;
}

void pr_net_search(struct pr_net_search *search, struct pr_net_table *n, struct pr_entities *set,
                   const struct pr_tick *t, bool may_spend)
{
    size_t wanted = pr_net_table_wanted(n);
    if (!wanted || !begin(search, n, t->now, may_spend)) {
        search->under_way &= wanted > 0;
        return;
    }
    search->wanted = wanted;
    int64_t began = pr_clock_thread_cpu();
    search->under_way = !look_at_members(search, n, set, t);
    search->cost += pr_clock_thread_cpu() - began;
    if (!search->under_way && search->wanted && !search->blind)
        pr_net_table_not_found(n, search->from);
}
