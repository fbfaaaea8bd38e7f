/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of server that a run can be sent to, behind a table of calls. publisher.c says when they
 * are made; one thread at a time makes them. */
#pragma once
#include "core/snapshot.h"
#include "publish/http.h"
#include "store/stored.h"

struct pr_outlet {
    const struct pr_outlet_ops *ops; /* the first member of every outlet */
    char url[1024];                  /* of the server, without what is secret */
    char remote[128];                /* what the run is called there; "" for not yet */
    char prefix[128], node[64];      /* parts of names, which stay the same for a run */
    bool owned;                      /* we have made it there, and close it */
    bool maybe_there;                /* it may have been made before, by whoever was interrupted */
    struct pr_http *http;
    struct pr_http_answer answer; /* the last one */
    char why[300];                /* of the last failure */
    int64_t rejected;             /* points that the server would not have, of what it took */
    char remark[300];             /* what its user should know; "" for nothing */
};

/* Calls return 0, -EAGAIN where trying again may help, or another -errno where it does not; then
 * `why` says what was wrong. */
struct pr_outlet_ops {
    const char *kind;
    bool each_time; /* it is described whenever somebody goes on with the run, not only at first */
    bool mild;      /* its remarks are of no loss */
    bool sparse;    /* a GPU is in those samples alone in which it was read */
    /* Sees to it that there is a place for the run: `remote`. Nothing where it is known. */
    int (*begin)(struct pr_outlet *o);
    /* What the run is goes out with the next samples. */
    void (*describe)(struct pr_outlet *o, const struct pr_stored *r);
    /* A sample goes out with the next request. False where that is full. */
    bool (*add)(struct pr_outlet *o, int64_t sample, const struct proctor_snapshot *s);
    /* Sends what was added. After a failure it is still there, and nothing may be added; but not
     * after -EBADMSG: this request was refused, and another need not be; and -EMSGSIZE: it was too
     * large, and from now on there is less room. */
    int (*send)(struct pr_outlet *o);
    /* Forgets what was added; NULL where a server may get it twice. */
    void (*drop)(struct pr_outlet *o);
    /* All is there. r: the run with its end; NULL where it has not begun. */
    int (*end)(struct pr_outlet *o, const struct pr_stored *r);
    void (*free)(struct pr_outlet *o);
};
