/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds a socket: the descriptors of members, "socket:[inode]". */
#pragma once
#include "core/source.h"
#include "source/net_table.h"

struct pr_net_search {
    unsigned number; /* of the search that is under way, or was the last */
    bool under_way;
    bool blind;    /* somebody's descriptors may not be seen: he may hold anything */
    unsigned from; /* the reading in which it began */
    int64_t began; /* boot time, 0 for never */
    int64_t cost;  /* of this one so far, ns of CPU */
    size_t wanted; /* how many are still looked for */
};

/* Looks for the holders that the table wants. What takes long goes on at the next call; it begins
 * anew as often as what it costs is little, and else once a second where there is budget. */
void pr_net_search(struct pr_net_search *search, struct pr_net_table *n, struct pr_entities *set,
                   const struct pr_tick *t, bool may_spend);
/* The inode in "socket:[inode]"; 0 where it is no such text. */
uint64_t pr_net_link_inode(const char *text, size_t len);
