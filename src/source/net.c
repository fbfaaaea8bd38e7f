/* SPDX-License-Identifier: Apache-2.0 */
/* Network bytes of a job: a dump of all TCP sockets at a sample, and in between the last words of
 * those that go. UDP has no such counters: the kernel keeps none for a socket. */
#include "core/net.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/machine.h"
#include "source/net_owner.h"
#include "source/net_space.h"
#include "util/clock.h"
#include "util/scan.h"

#define DUMP_LEAST     (NS_PER_S / 10 * 9 / 10) /* ten times a second; the timer may be early */
#define DUMP_MOST      NS_PER_S
#define COUNT_MOST     (NS_PER_S / 4)  /* while nobody of the job runs */
#define IDLE_MOST      (10 * NS_PER_S) /* however little there is to see, */
#define ASLEEP_MOST    (30 * NS_PER_S) /* and while nobody of the job runs */
#define SPARING        200             /* without budget it takes one part in so many of the time */
#define IDLE           1000            /* while the job has no socket: one part in so many */
#define FAMILIES       2
#define LISTENING_MOST 64 /* with so few sockets it may be that all of them listen */
#define LAST_WORDS     5  /* ms: the kernel tells of closing a little later, */
#define LAST_MOST      20 /* and on a busy machine in so many parts */

struct pr_net {
    int dumps, events;    /* netlink sockets, or -1 */
    int counts[FAMILIES]; /* held: how many TCP sockets there are, by family; -1 for none */
    uint64_t count;       /* that, at the last dump */
    bool closed;          /* some, since then */
    bool asleep;          /* nobody of the job has run since the sample before */
    bool stirred;         /* somebody has since they were counted, */
    int64_t counted_at;   /* which was then */
    bool by_family;       /* the kernel does not give both at once */
    struct pr_net_table table;
    struct pr_net_search search;
    struct pr_net_spaces spaces;
    unsigned dump;           /* which one was the last */
    bool before;             /* the job has not begun */
    int64_t dumped_at, cost; /* when, and how much CPU it took, ns */
    int64_t spaced_at;       /* when namespaces were looked at */
    bool lost_events;        /* since the last dump */
    bool short_of;
    char reason[96];
    _Alignas(8) char room[DIAG_ROOM];
};

/* --- the kernel's words ----------------------------------------------------------------------- */

static void see(struct pr_net *n, struct pr_entities *set, const struct pr_diag_socket *s)
{
    if (s->counted)
        pr_net_table_see(&n->table, set, s, n->dump, n->before);
}

/* All answers to a question; they are made while we read, so there is no waiting. 0 or -errno. */
static int take_answers(struct pr_net *n, struct pr_entities *set)
{
    struct pr_diag_socket s;
    int error;
    for (;;) {
        ssize_t got = recv(n->dumps, n->room, sizeof n->room, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        const char *text = n->room;
        size_t len = (size_t)got;
        enum pr_diag_kind kind;
        while ((kind = pr_diag_next(&text, &len, n->dump, &s, &error)) != DIAG_END) {
            if (kind == DIAG_DONE)
                return 0;
            if (kind == DIAG_FAILED)
                return error;
            if (kind == DIAG_SOCKET)
                see(n, set, &s);
        }
    }
}

static int ask(struct pr_net *n, struct pr_entities *set, int family, bool listening)
{
    int r = pr_diag_ask(n->dumps, family, listening, n->dump);
    return r < 0 ? r : take_answers(n, set);
}

static int take_dump(struct pr_net *n, struct pr_entities *set, bool listening)
{
    n->dump++;
    int r = n->by_family ? -EINVAL : ask(n, set, 0, listening);
    if (r == 0)
        return 0;
    r = ask(n, set, AF_INET, listening);
    int r6 = ask(n, set, AF_INET6, listening); /* there may be none of these */
    n->by_family |= r == 0;
    return r == 0 && r6 < 0 && r6 != -ENOENT ? r6 : r;
}

/* Those that have gone since the last time. */
static void hear(struct pr_net *n, struct pr_entities *set)
{
    struct pr_diag_socket s;
    int error;
    for (;;) {
        ssize_t got = n->events < 0 ? 0 : recv(n->events, n->room, sizeof n->room, MSG_DONTWAIT);
        if (got < 0 && errno == ENOBUFS) {
            n->lost_events = n->short_of = n->closed = true;
            continue;
        }
        if (got <= 0)
            return;
        const char *text = n->room;
        size_t len = (size_t)got;
        enum pr_diag_kind kind;
        while ((kind = pr_diag_next(&text, &len, 0, &s, &error)) != DIAG_END)
            if (kind == DIAG_SOCKET) {
                n->closed = true;
                pr_net_table_gone(&n->table, set, &s);
            }
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

/* A socket of the job's, or one of which it is not known yet whose it is. */
static bool has_sockets(const struct pr_net *n)
{
    for (size_t i = 0; i < n->table.count; i++)
        if (n->table.items[i].side != SIDE_OTHER)
            return true;
    return false;
}

/* How many TCP sockets there are, and one more; 0 where that is not told. */
static uint64_t count_sockets(struct pr_net *n, const struct pr_tick *t)
{
    static const char *const files[FAMILIES] = {"net/sockstat", "net/sockstat6"};
    static const struct pr_scan_row rows[FAMILIES] = {{"TCP: inuse", 0, 1}, {"TCP6: inuse", 0, 1}};
    double count = 0, found;
    bool told = false;
    for (int i = 0; i < FAMILIES; i++) {
        ssize_t got = pr_machine_text(t, &n->counts[i], t->host->proc, files[i], false);
        if (got <= 0 || !pr_scan_keyed(t->text, (size_t)got, &rows[i], 1, &found))
            continue;
        count += found;
        told = true;
    }
    return told ? (uint64_t)count + 1 : 0;
}

/* The kernel walks its whole table of sockets for a dump, though there be none: a job that does not
 * use the network should not pay for it ten times a second. Where it has no socket, none was closed
 * and there are as many as before, there is nothing new to see. That is asked when somebody has run
 * who could have made one; else less often, so that those of others are known before they close. */
static bool is_due(struct pr_net *n, const struct pr_tick *t, bool may_spend, bool last)
{
    int64_t since = t->now - n->dumped_at;
    bool idle = !has_sockets(n);
    bool late = since >= (!idle ? DUMP_MOST : n->asleep ? ASLEEP_MOST : IDLE_MOST);
    int sparing = idle ? IDLE : may_spend ? 0 : SPARING;
    bool due =
        last || late || n->lost_events || (since >= DUMP_LEAST && since >= sparing * n->cost);
    if (!due || since == 0) /* the last sample reads twice */
        return false;
    if (late || n->lost_events || !idle || n->events < 0 || !n->count)
        return true;
    if (!n->stirred && t->now - n->counted_at < COUNT_MOST)
        return false;
    n->stirred = false;
    n->counted_at = t->now;
    return n->closed || count_sockets(n, t) != n->count;
}

static void look(struct pr_net *n, struct pr_entities *set, const struct pr_tick *t, bool may_spend)
{
    int64_t began = pr_clock_thread_cpu();
    n->count = count_sockets(n, t); /* before: who comes in between makes it differ */
    if (take_dump(n, set, false) < 0) {
        n->short_of = n->closed = true; /* it is not known: the next one asks again */
        return;
    }
    n->dumped_at = t->now;
    n->closed = false;
    n->cost = pr_clock_thread_cpu() - began;
    if (n->lost_events || n->events < 0)
        pr_net_table_sweep(&n->table, set, n->dump);
    n->lost_events = false;
    pr_net_search(&n->search, &n->table, set, t, may_spend);
    n->short_of |= n->search.blind;
}

/* Who had no traffic had none, as far as that can be seen. */
static void begin_members(const struct pr_net *n, struct pr_entities *set)
{
    for (size_t k = 0; k < set->count; k++) {
        struct pr_entity *e = set->items[k];
        bool elsewhere = e->net_space && e->net_space != n->spaces.ours;
        if (!pr_entity_is_here(e) || e->net_denied || elsewhere || !isnan(e->value[METRIC_NET_RX]))
            continue;
        e->value[METRIC_NET_RX] = e->value[METRIC_NET_TX] = 0;
    }
}

void pr_net_read(struct pr_net *n, struct pr_entities *set, const struct pr_tick *t, bool may_spend,
                 bool last)
{
    if (n->dumps < 0)
        return;
    n->table.reading++;
    n->asleep = set->still;
    n->stirred |= !n->asleep;
    if (last)
        n->search.cost = 0; /* it cannot wait for its time */
    hear(n, set);
    if (last || t->now - n->spaced_at >= DUMP_LEAST) {
        n->spaced_at = t->now;
        pr_net_spaces_read(&n->spaces, set, t);
        n->table.nobody_here = n->spaces.apart;
    }
    if (is_due(n, t, may_spend, last))
        look(n, set, t, may_spend);
    begin_members(n, set);
}

void pr_net_settle(struct pr_net *n, struct pr_entities *set)
{
    if (n->dumps < 0)
        return;
    struct pollfd words = {.fd = n->events, .events = POLLIN};
    for (int i = 0; i < LAST_MOST && poll(&words, n->events >= 0, LAST_WORDS) > 0; i++)
        hear(n, set);
    pr_net_table_settle(&n->table, set);
}

struct pr_net_sum pr_net_sum(const struct pr_net *n)
{
    if (n->dumps < 0)
        return (struct pr_net_sum){NAN, NAN, NAN, false};
    bool short_of = n->short_of || n->table.out_of_memory || n->spaces.divided || n->events < 0;
    return (struct pr_net_sum){n->table.rx + n->spaces.sum[0], n->table.tx + n->spaces.sum[1],
                               n->table.unattributed, short_of};
}

/* --- opening and closing ---------------------------------------------------------------------- */

static void close_both(struct pr_net *n)
{
    if (n->dumps >= 0)
        close(n->dumps);
    if (n->events >= 0)
        close(n->events);
    n->dumps = n->events = -1;
    for (int i = 0; i < FAMILIES; i++) {
        if (n->counts[i] >= 0)
            close(n->counts[i]);
        n->counts[i] = -1;
    }
}

static int give_up(struct pr_net *n, int code, const char *what)
{
    snprintf(n->reason, sizeof n->reason, "%s: %s", what, strerror(-code));
    close_both(n);
    return code;
}

/* Where as many sockets listen as there are, the table of the others is empty, and need not be
 * walked through. */
static int take_first(struct pr_net *n, const struct pr_host *host)
{
    struct pr_entities nobody = {0};
    struct pr_host once = *host; /* how many it may hold is not known yet */
    once.hold_limit = 0;
    int r = -EAGAIN;
    n->before = true;
    n->count = count_sockets(n, &(struct pr_tick){&once, 0, n->room, sizeof n->room});
    if (n->count && n->count <= LISTENING_MOST)
        r = take_dump(n, &nobody, true);
    if (r < 0 || n->table.count + 1 != n->count)
        r = take_dump(n, &nobody, false);
    n->before = false;
    return r;
}

static int open_it(struct pr_net *n, const struct pr_host *host, bool empty_handed)
{
    if (host->foreign) {
        snprintf(n->reason, sizeof n->reason, "not under --root: sockets here are not those there");
        return -ENOTSUP;
    }
    n->dumps = pr_diag_open();
    if (n->dumps < 0)
        return give_up(n, n->dumps, "sock_diag");
    n->events = pr_diag_listen(); /* first, so that none is missed */
    int r = take_first(n, host);
    if (r < 0)
        return give_up(n, r, "sock_diag, TCP");
    if (empty_handed)
        pr_net_table_disown(&n->table);
    n->dumped_at = pr_clock_boot();
    pr_net_spaces_open(&n->spaces, host);
    return 0;
}

int pr_net_open(struct pr_net **ret, const struct pr_host *host, bool empty_handed)
{
    struct pr_net *n = *ret = malloc(sizeof *n);
    if (!n)
        return -ENOMEM;
    memset(n, 0, offsetof(struct pr_net, room)); /* what is not touched costs nothing */
    n->dumps = n->events = n->counts[0] = n->counts[1] = -1;
    return open_it(n, host, empty_handed);
}

const char *pr_net_reason(const struct pr_net *n)
{
    return n->dumps < 0 ? n->reason : NULL;
}

bool pr_net_hears_closing(const struct pr_net *n)
{
    return n->events >= 0;
}

int pr_net_descriptors(const struct pr_net *n)
{
    return (n->dumps >= 0) + (n->events >= 0);
}

void pr_net_close(struct pr_net *n, bool close_files)
{
    if (!n)
        return;
    if (close_files) {
        close_both(n);
        pr_net_spaces_close(&n->spaces);
    }
    pr_net_table_done(&n->table);
    free(n);
}
