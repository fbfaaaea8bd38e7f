/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets that are known, whose they are, and what they have moved. */
#pragma once
#include "core/entity.h"
#include "source/net_diag.h"
#include "util/map.h"

enum pr_side {
    SIDE_UNKNOWN,
    SIDE_MEMBER,
    SIDE_OTHER, /* all members were looked at, and none holds it */
};

struct pr_net_socket {
    struct pr_diag_socket now; /* a listening one has here what it accepted and nobody saw */
    uint64_t rx_done, tx_done; /* what is accounted for */
    enum pr_side side;
    pid_t pid; /* who holds it: the first that was found; 0 where that is not known */
    uint64_t start;
    unsigned since; /* the reading from which on we want to know that */
    unsigned seen;  /* the last dump that had it */
};

struct pr_net_table {
    struct pr_net_socket *items;
    size_t count, cap;
    struct pr_map by_cookie, by_inode; /* index + 1 */
    struct pr_map by_port;             /* cookies of listening sockets */
    unsigned reading;                  /* which one this is */
    bool nobody_here; /* no member is in our network namespace: what is unclear is not theirs */
    double rx, tx, unattributed;
    bool out_of_memory;
};

void pr_net_table_done(struct pr_net_table *n);
/* What a dump says of a socket. `before`: what it has moved so far does not count. */
void pr_net_table_see(struct pr_net_table *n, struct pr_entities *set,
                      const struct pr_diag_socket *s, unsigned dump, bool before);
/* A socket is gone; these are its last words. */
void pr_net_table_gone(struct pr_net_table *n, struct pr_entities *set,
                       const struct pr_diag_socket *s);
/* After events were lost: those that the dump did not have are gone. */
void pr_net_table_sweep(struct pr_net_table *n, struct pr_entities *set, unsigned dump);
/* Nothing more will be learned: what is unclear is unattributed. */
void pr_net_table_settle(struct pr_net_table *n, struct pr_entities *set);

/* Somebody has to look for who holds it. */
bool pr_net_socket_is_wanted(const struct pr_net_socket *s);
size_t pr_net_table_wanted(const struct pr_net_table *n);
/* e holds the socket with this inode. True where that was wanted. */
bool pr_net_table_found(struct pr_net_table *n, struct pr_entities *set, const struct pr_entity *e,
                        uint64_t inode);
/* What is known so far is somebody else's. */
void pr_net_table_disown(struct pr_net_table *n);
/* All members were looked at, from that reading on: what was there before and was not found is not
 * theirs. */
void pr_net_table_not_found(struct pr_net_table *n, unsigned from);
