/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/ns/net says where a process is, /proc/PID/net/dev what went through the interfaces
 * there. A held net/dev keeps the namespace: it is given back as soon as no member is in it. */
#include "source/net_space.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "source/parse.h"
#include "util/clock.h"
#include "util/fs.h"

/* Its number, as the link names it: to follow the link costs twice as much, since the kernel makes
 * an inode for it. */
static uint64_t space_of(const struct pr_host *host, const char *who)
{
    char path[40], text[40];
    struct pr_scan name;
    uint64_t inode;
    snprintf(path, sizeof path, "%s/ns/net", who);
    ssize_t n = readlinkat(host->proc, path, text, sizeof text);
    name = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    return pr_scan_prefix(&name, "net:[") && pr_scan_u64(&name, &inode) ? inode : 0;
}

void pr_net_spaces_open(struct pr_net_spaces *s, const struct pr_host *host)
{
    *s = (struct pr_net_spaces){.ours = space_of(host, "self")};
}

bool pr_net_dev_sum(const char *text, size_t len, double *ret_bytes)
{
    struct pr_scan s = pr_scan_of(text, len), line, name;
    double bytes[2];
    bool any = false;
    ret_bytes[0] = ret_bytes[1] = 0;
    while (pr_scan_line(&s, &line)) {
        if (!pr_netdev_line(line, &name, bytes))
            continue;
        any = true;
        for (int i = 0; i < 2 && !pr_scan_equals(name, "lo"); i++)
            ret_bytes[i] += bytes[i];
    }
    return any;
}

/* What went through since the last time; it counts where the job is nowhere else. */
static void read_space(struct pr_net_spaces *s, struct pr_net_space *space, const struct pr_tick *t)
{
    double bytes[2];
    ssize_t n = pr_fs_pread_long(space->fd, t->text, t->text_size);
    if (n <= 0 || !pr_net_dev_sum(t->text, (size_t)n, bytes))
        return;
    for (int i = 0; i < 2; i++) {
        double growth = bytes[i] - space->bytes[i]; /* NaN at first; less where a device went */
        if (s->apart && growth > 0)
            s->sum[i] += growth;
        space->bytes[i] = bytes[i];
    }
}

static void inhabit(struct pr_net_spaces *s, const struct pr_entity *e, const struct pr_tick *t)
{
    char path[40];
    for (int i = 0; i < s->count; i++)
        if (s->items[i].inode == e->net_space) {
            s->items[i].inhabited = true;
            return;
        }
    snprintf(path, sizeof path, "%d/net/dev", (int)e->pid);
    int fd = s->count < NET_SPACES ? pr_fs_open(t->host->proc, path) : -1;
    if (fd < 0) {
        s->divided = true;
        return;
    }
    t->host->holding++;
    s->items[s->count++] = (struct pr_net_space){e->net_space, fd, true, {NAN, NAN}};
}

/* Where everybody is. It is looked at when all else of a process is: often where it is new, since
 * `ip netns exec` and its like move soon if at all. */
static void look_around(struct pr_net_spaces *s, struct pr_entities *set, const struct pr_tick *t)
{
    size_t here = 0, there = 0;
    for (size_t k = 0; k < set->count; k++) {
        struct pr_entity *e = set->items[k];
        char who[16];
        if (!pr_entity_is_here(e))
            continue;
        if (!e->net_space_at || e->refreshed_at > e->net_space_at) {
            snprintf(who, sizeof who, "%d", (int)e->pid);
            e->net_space = space_of(t->host, who);
            e->net_space_at = t->now;
        }
        bool elsewhere = e->net_space && e->net_space != s->ours;
        here += !elsewhere;
        there += elsewhere;
        if (elsewhere)
            inhabit(s, e, t);
    }
    s->divided |= here && there;
    if (here || there)
        s->apart = !here;
}

void pr_net_spaces_read(struct pr_net_spaces *s, struct pr_entities *set, const struct pr_tick *t)
{
    int kept = 0;
    if (!s->ours)
        return;
    for (int i = 0; i < s->count; i++)
        s->items[i].inhabited = false;
    look_around(s, set, t);
    for (int i = 0; i < s->count; i++) {
        struct pr_net_space *space = &s->items[i];
        read_space(s, space, t);
        if (space->inhabited) {
            s->items[kept++] = *space;
            continue;
        }
        close(space->fd);
        t->host->holding--;
    }
    s->count = kept;
}

void pr_net_spaces_close(struct pr_net_spaces *s)
{
    for (int i = 0; i < s->count; i++)
        close(s->items[i].fd);
    s->count = 0;
}
