/* SPDX-License-Identifier: Apache-2.0 */
/* A socket counts from when it is first seen on, and what it had moved by then counts, too, unless
 * it was there before the recording. Until it is known whose it is, nothing of it is accounted for.
 * Where it goes before that, the listening socket on its port says whose it was: who holds that one
 * has accepted it. Where there is none, or several that do not agree, it is unattributed. */
#include "source/net_table.h"

#include <math.h>
#include <stdlib.h>

#define FIRST_ROOM 64                  /* sockets */
#define SHARED     (UINT64_C(1) << 63) /* in by_port: there are several */

void pr_net_table_done(struct pr_net_table *n)
{
    free(n->items);
    pr_map_done(&n->by_cookie);
    pr_map_done(&n->by_inode);
    pr_map_done(&n->by_port);
    *n = (struct pr_net_table){0};
}

/* --- the account ------------------------------------------------------------------------------ */

static struct pr_entity *holder(const struct pr_entities *set, const struct pr_net_socket *s)
{
    struct pr_entity *e = pr_entities_find(set, s->pid);
    return e && e->start == s->start ? e : NULL;
}

static void add(double *value, double bytes)
{
    *value = isnan(*value) ? bytes : *value + bytes;
}

static double growth(uint64_t now, uint64_t done)
{
    return now > done ? (double)(now - done) : 0;
}

/* Accounts for what it has moved, as far as its side is known. */
static void account(struct pr_net_table *n, struct pr_entities *set, struct pr_net_socket *s)
{
    double rx = growth(s->now.rx, s->rx_done), tx = growth(s->now.tx, s->tx_done);
    if (s->side == SIDE_UNKNOWN)
        return;
    s->rx_done = s->now.rx;
    s->tx_done = s->now.tx;
    struct pr_entity *e = holder(set, s);
    if (s->side == SIDE_OTHER || (e && e->left))
        return;
    n->rx += rx;
    n->tx += tx;
    if (e) {
        add(&e->value[METRIC_NET_RX], rx);
        add(&e->value[METRIC_NET_TX], tx);
    }
}

/* --- places ----------------------------------------------------------------------------------- */

static struct pr_net_socket *find(const struct pr_net_table *n, const struct pr_map *by,
                                  uint64_t key)
{
    uint64_t at;
    return key && pr_map_get(by, key, &at) ? &n->items[at - 1] : NULL;
}

static bool reserve(struct pr_net_table *n)
{
    size_t room = n->count < FIRST_ROOM ? FIRST_ROOM : n->count + 1;
    if (!pr_map_reserve(&n->by_cookie, room) || !pr_map_reserve(&n->by_inode, room))
        return false;
    if (n->count < n->cap)
        return true;
    size_t cap = n->cap ? n->cap * 2 : FIRST_ROOM;
    struct pr_net_socket *items = realloc(n->items, cap * sizeof *items);
    if (!items)
        return false;
    n->items = items;
    n->cap = cap;
    return true;
}

static void point(struct pr_net_table *n, const struct pr_net_socket *s)
{
    uint64_t at = (uint64_t)(s - n->items) + 1;
    pr_map_set(&n->by_cookie, s->now.cookie, at);
    if (s->now.inode)
        pr_map_set(&n->by_inode, s->now.inode, at);
}

/* The inode may be another socket's by now. */
static void forget_inode(struct pr_net_table *n, const struct pr_net_socket *s)
{
    if (find(n, &n->by_inode, s->now.inode) == s)
        pr_map_remove(&n->by_inode, s->now.inode);
}

static void listens(struct pr_net_table *n, const struct pr_net_socket *s)
{
    uint64_t other, cookie = s->now.cookie;
    if (pr_map_get(&n->by_port, s->now.port, &other) && (other & ~SHARED) != cookie)
        cookie = other | SHARED;
    if (s->now.port && !pr_map_set(&n->by_port, s->now.port, cookie))
        n->out_of_memory = true;
}

static void listens_no_more(struct pr_net_table *n, const struct pr_net_socket *s)
{
    uint64_t cookie;
    if (!s->now.port || !pr_map_get(&n->by_port, s->now.port, &cookie))
        return;
    if (cookie != s->now.cookie && !(cookie & SHARED))
        return;
    pr_map_remove(&n->by_port, s->now.port);
    for (size_t i = 0; i < n->count && (cookie & SHARED); i++)
        if (n->items[i].now.state == DIAG_LISTEN && n->items[i].now.port == s->now.port &&
            &n->items[i] != s)
            listens(n, &n->items[i]);
}

/* The last one takes its place. */
static void drop(struct pr_net_table *n, struct pr_net_socket *s)
{
    forget_inode(n, s);
    pr_map_remove(&n->by_cookie, s->now.cookie);
    if (s->now.state == DIAG_LISTEN)
        listens_no_more(n, s);
    struct pr_net_socket *last = &n->items[--n->count];
    if (s == last)
        return;
    bool has_inode = find(n, &n->by_inode, last->now.inode) == last;
    *s = *last;
    pr_map_set(&n->by_cookie, s->now.cookie, (uint64_t)(s - n->items) + 1);
    if (has_inode)
        pr_map_set(&n->by_inode, s->now.inode, (uint64_t)(s - n->items) + 1);
}

/* --- what is told ----------------------------------------------------------------------------- */

/* Its counters. A listening one moves nothing itself, and keeps what was put there. */
static void take_counters(struct pr_net_socket *s, const struct pr_diag_socket *told)
{
    if (!told->counted || s->now.state == DIAG_LISTEN)
        return;
    if (told->sent < s->now.sent || told->rx < s->now.rx) /* it has connected anew */
        s->rx_done = s->tx_done = s->now.tx = 0;
    s->now.rx = told->rx;
    s->now.sent = told->sent;
    if (told->tx > s->now.tx)
        s->now.tx = told->tx;
    s->now.counted = true;
}

/* It was accepted, or closed, or its number is another's now. */
static void take_inode(struct pr_net_table *n, struct pr_net_socket *s, uint32_t inode)
{
    if (s->now.inode == inode && (!inode || find(n, &n->by_inode, inode) == s))
        return;
    forget_inode(n, s);
    if (inode && inode != s->now.inode)
        s->since = n->reading;
    s->now.inode = inode;
    point(n, s);
}

static struct pr_net_socket *add_socket(struct pr_net_table *n, const struct pr_diag_socket *told)
{
    if (!reserve(n)) {
        n->out_of_memory = true;
        return NULL;
    }
    struct pr_net_socket *s = &n->items[n->count++];
    *s = (struct pr_net_socket){.now = *told, .since = n->reading};
    point(n, s);
    return s;
}

void pr_net_table_see(struct pr_net_table *n, struct pr_entities *set,
                      const struct pr_diag_socket *told, unsigned dump, bool before)
{
    struct pr_net_socket *s = find(n, &n->by_cookie, told->cookie);
    bool listened = s && s->now.state == DIAG_LISTEN;
    if (!s && !(s = add_socket(n, told)))
        return;
    s->seen = dump;
    take_inode(n, s, told->inode);
    take_counters(s, told);
    s->now.state = told->state;
    s->now.port = told->port;
    if (told->state == DIAG_LISTEN && !listened)
        listens(n, s);
    if (before) {
        s->rx_done = s->now.rx;
        s->tx_done = s->now.tx;
    }
    if (s->side == SIDE_MEMBER && s->pid && s->now.inode) {
        const struct pr_entity *e = holder(set, s);
        if (!e || pr_entity_is_dead(e)) { /* somebody else must hold it */
            s->pid = 0;
            s->since = n->reading;
        }
    }
    account(n, set, s);
}

/* The listening socket that this one came from; NULL where several do not agree. */
static struct pr_net_socket *accepted_by(const struct pr_net_table *n,
                                         const struct pr_diag_socket *told)
{
    uint64_t cookie;
    if (!told->port || !pr_map_get(&n->by_port, told->port, &cookie))
        return NULL;
    struct pr_net_socket *from = find(n, &n->by_cookie, cookie & ~SHARED);
    for (size_t i = 0; from && i < n->count && (cookie & SHARED); i++)
        if (n->items[i].now.state == DIAG_LISTEN && n->items[i].now.port == told->port &&
            n->items[i].side != from->side)
            return NULL;
    return from;
}

/* Its side is not known: it is that of whom it came from, or nobody's. */
static void account_unknown(struct pr_net_table *n, struct pr_entities *set,
                            const struct pr_net_socket *s)
{
    double rx = growth(s->now.rx, s->rx_done), tx = growth(s->now.tx, s->tx_done);
    struct pr_net_socket *from = s->now.state == DIAG_LISTEN ? NULL : accepted_by(n, &s->now);
    if (from) {
        from->now.rx += s->now.rx - s->rx_done;
        from->now.tx += s->now.tx - s->tx_done;
        account(n, set, from);
    } else if (!n->nobody_here) {
        n->unattributed += rx + tx;
    }
}

static void close_account(struct pr_net_table *n, struct pr_entities *set, struct pr_net_socket *s)
{
    if (s->side == SIDE_UNKNOWN)
        account_unknown(n, set, s);
    else
        account(n, set, s);
}

void pr_net_table_gone(struct pr_net_table *n, struct pr_entities *set,
                       const struct pr_diag_socket *told)
{
    struct pr_net_socket *s = find(n, &n->by_cookie, told->cookie);
    if (!s) { /* it came and went between two dumps */
        struct pr_net_socket unseen = {.now = *told};
        if (told->counted)
            close_account(n, set, &unseen);
        return;
    }
    take_counters(s, told);
    close_account(n, set, s);
    drop(n, s);
}

void pr_net_table_sweep(struct pr_net_table *n, struct pr_entities *set, unsigned dump)
{
    for (size_t i = n->count; i-- > 0;)
        if (n->items[i].seen != dump) {
            close_account(n, set, &n->items[i]);
            drop(n, &n->items[i]);
        }
}

/* Listening ones last: what others of an unknown side have is put there first. */
void pr_net_table_settle(struct pr_net_table *n, struct pr_entities *set)
{
    for (int listening = 0; listening < 2; listening++)
        for (size_t i = 0; i < n->count; i++) {
            struct pr_net_socket *s = &n->items[i];
            if (s->side != SIDE_UNKNOWN || (s->now.state == DIAG_LISTEN) != listening)
                continue;
            account_unknown(n, set, s);
            s->rx_done = s->now.rx;
            s->tx_done = s->now.tx;
        }
}

/* --- whose ------------------------------------------------------------------------------------ */

bool pr_net_socket_is_wanted(const struct pr_net_socket *s)
{
    return s->now.inode && !s->now.subflow &&
           (s->side == SIDE_UNKNOWN || (s->side == SIDE_MEMBER && !s->pid));
}

size_t pr_net_table_wanted(const struct pr_net_table *n)
{
    size_t wanted = 0;
    for (size_t i = 0; i < n->count; i++)
        wanted += pr_net_socket_is_wanted(&n->items[i]);
    return wanted;
}

bool pr_net_table_found(struct pr_net_table *n, struct pr_entities *set, const struct pr_entity *e,
                        uint64_t inode)
{
    struct pr_net_socket *s = find(n, &n->by_inode, inode);
    if (!s || (s->side == SIDE_MEMBER && s->pid))
        return false;
    bool wanted = pr_net_socket_is_wanted(s);
    s->side = SIDE_MEMBER;
    s->pid = e->pid;
    s->start = e->start;
    account(n, set, s);
    return wanted;
}

static void disown(struct pr_net_socket *s)
{
    s->side = SIDE_OTHER;
    s->rx_done = s->now.rx;
    s->tx_done = s->now.tx;
}

void pr_net_table_disown(struct pr_net_table *n)
{
    for (size_t i = 0; i < n->count; i++)
        disown(&n->items[i]);
}

void pr_net_table_not_found(struct pr_net_table *n, unsigned from)
{
    for (size_t i = 0; i < n->count; i++)
        if (pr_net_socket_is_wanted(&n->items[i]) && n->items[i].since < from)
            disown(&n->items[i]);
}
