/* SPDX-License-Identifier: Apache-2.0 */
/* Network bytes of the members and of the job, without privileges: what the kernel counts for each
 * TCP socket, and who holds the socket. Done by src/source/net*.c.
 *
 * A byte of a socket's payload counts once: for the job where a member holds the socket, for the
 * process that was found first to hold it, in net.unattributed where the socket was gone before
 * anybody saw whose it was, and nowhere where it is known to be somebody else's. Both ends of a
 * connection within the job are sockets of members, and both count. */
#pragma once
#include "core/source.h"

struct pr_net;

/* Since the recording began; NaN is absent. */
struct pr_net_sum {
    double rx, tx, unattributed;
    bool short_of; /* something was missed: the values are lower bounds */
};

/* What there is before the job does not count: call it before the job starts. empty_handed: no
 * socket that there is now can be the job's. Always gives one, unless memory is out; where nothing
 * can be read its values are absent, and there is a reason. 0 or -errno, which says why values will
 * be absent. */
int pr_net_open(struct pr_net **ret, const struct pr_host *host, bool empty_handed);
/* Takes what the kernel tells into the members' values and the sum. may_spend: there is budget for
 * what can wait; last: it cannot wait. */
void pr_net_read(struct pr_net *n, struct pr_entities *set, const struct pr_tick *t, bool may_spend,
                 bool last);
/* Nothing more will be read: what is unclear stays so. Waits for some milliseconds for what the
 * kernel tells of sockets that have just been closed. */
void pr_net_settle(struct pr_net *n, struct pr_entities *set);
struct pr_net_sum pr_net_sum(const struct pr_net *n);
/* Why values are absent; NULL where they are not. */
const char *pr_net_reason(const struct pr_net *n);
/* Without this, sockets that live between two samples are not seen at all. */
bool pr_net_hears_closing(const struct pr_net *n);
/* Descriptors that it holds from the beginning. */
int pr_net_descriptors(const struct pr_net *n);
/* n may be NULL. close_files: false where a fork has copied the handle. */
void pr_net_close(struct pr_net *n, bool close_files);
