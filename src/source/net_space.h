/* SPDX-License-Identifier: Apache-2.0 */
/* Members in network namespaces of their own: their sockets are not to be seen from ours, so what
 * went through the interfaces there stands for them. */
#pragma once
#include "core/source.h"

#define NET_SPACES 16

struct pr_net_space {
    uint64_t inode;
    int fd; /* its net/dev, held: it can be read when the last member is gone */
    bool inhabited;
    double bytes[2]; /* received and sent, at the last reading */
};

struct pr_net_spaces {
    uint64_t ours; /* 0 where it is not known */
    struct pr_net_space items[NET_SPACES];
    int count;
    bool apart;    /* members are elsewhere, and none is in ours */
    bool divided;  /* some have been elsewhere while others were in ours: those were not seen */
    double sum[2]; /* what went through interfaces elsewhere, while all were there */
};

void pr_net_spaces_open(struct pr_net_spaces *s, const struct pr_host *host);
void pr_net_spaces_read(struct pr_net_spaces *s, struct pr_entities *set, const struct pr_tick *t);
void pr_net_spaces_close(struct pr_net_spaces *s);
/* Sums of a net/dev file over all interfaces but lo. False where it is none. */
bool pr_net_dev_sum(const char *text, size_t len, double *ret_bytes);
