/* SPDX-License-Identifier: Apache-2.0 */
/* One run on its way from its file to an outlet: who calls says when, publisher.c. */
#pragma once
#include "core/publishing.h"
#include "publish/outlet.h"
#include "store/published.h"
#include "store/tail.h"

struct pr_sending {
    struct pr_outlet *outlet;
    char *path;
    struct pr_published progress; /* as the file has it, or will: `unsaved` */
    struct pr_tail tail;
    bool begun, described, unsaved;
    bool resumed;        /* by somebody else than its recorder, which may be at work */
    bool pending, full;  /* samples are in the outlet; it had no room for all that there were */
    bool done;           /* all is there, and the end */
    double took;         /* seconds: the last request */
    int64_t sent, batch; /* samples: all; in the outlet */
    int64_t from;        /* the last one before those in the outlet */
    int64_t passed;      /* samples that were refused since the server last took some */
    unsigned refusals;   /* in a row */
    _Atomic int *files;  /* where descriptors are counted; NULL for nowhere */
    bool kept;           /* the file has been open */
    char why[300];
};

/* The outlet is ours from here on, also where this fails: -ENOMEM. */
int pr_sending_init(struct pr_sending *s, struct pr_outlet *o, const char *path);
void pr_sending_done(struct pr_sending *s);
/* Goes on where it was left off. */
int pr_sending_resume(struct pr_sending *s, struct proctor_error *err);
/* A place for the run, once. Returns as outlets do; s->why says what was wrong. */
int pr_sending_begin(struct pr_sending *s);
/* All that there is, after a beginning. ending: nothing more comes. */
int pr_sending_step(struct pr_sending *s, bool ending);
/* The run was called off: it never began. */
int pr_sending_call_off(struct pr_sending *s);
/* Who gives up still writes down how far he came. */
void pr_sending_keep(struct pr_sending *s);
/* What has become of it; left is counted in the file. */
void pr_sending_tell(struct pr_sending *s, struct pr_publishing *ret);
