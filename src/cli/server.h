/* SPDX-License-Identifier: Apache-2.0 */
/* The socket over which a job tells its recorder of phases and marks; request.h has the language.
 * Each line is answered with "ok" or "no". It is served between two samples, by the thread that
 * samples: for a few milliseconds at a time, and only so many requests in a second. */
#pragma once
#include <sys/un.h>

#include "core/session.h"

#define SERVER_CLIENTS 32

struct pr_server {
    char path[sizeof((struct sockaddr_un *)0)->sun_path];      /* "" where there is none */
    char directory[sizeof((struct sockaddr_un *)0)->sun_path]; /* that it was made in */
    char why[160];                                             /* then: why not */
    int listener;
    int events;     /* readable when there is something to do: who has ended, and these two */
    int talk;       /* who connects and what they say; not looked at while paused */
    int pause;      /* a timer: it goes on; there before one is needed for want of descriptors */
    bool paused;    /* enough for now */
    int64_t window; /* boot time at which counting began */
    unsigned count, watched; /* requests since then; processes that phases end with */
    uint64_t turn, first;    /* how often somebody has spoken; who is served first, counting on */
    struct pr_client *clients[SERVER_CLIENTS];
};

#define PR_SERVER_NONE                                                                             \
    {                                                                                              \
        .listener = -1, .events = -1, .talk = -1, .pause = -1                                      \
    }

/* Makes the socket. Without one, everything else does nothing. */
void pr_server_open(struct pr_server *v, const char *run_id);
/* Nobody can connect any more, and the name is gone. */
void pr_server_close(struct pr_server *v);
/* What to wait for, -1 for nothing. */
int pr_server_fd(const struct pr_server *v);
/* It is readable. */
void pr_server_serve(struct pr_server *v, struct pr_session *s);
/* All that has been said already; at the end, before the last sample. */
void pr_server_drain(struct pr_server *v, struct pr_session *s);
/* Removes what recorders that were killed have left beside it; when the account is closed. */
void pr_server_tidy(const struct pr_server *v, const struct pr_session *s);
/* Says why there is none: an event, and on standard error with -v. */
void pr_server_excuse(const struct pr_server *v, struct pr_session *s);
