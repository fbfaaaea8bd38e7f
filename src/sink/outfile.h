/* SPDX-License-Identifier: Apache-2.0 */
/* A file that rows are streamed into. A full disk keeps rows back and tries again with the next; a
 * fifo without a reader is opened as soon as there is one; anything else ends the file. Each is
 * said once, and touches neither the job nor other outputs. */
#pragma once
#include "core/error.h"
#include "core/event.h"
#include "util/buf.h"

struct pr_outfile {
    struct pr_buf out; /* rows are added here; what is not written yet */
    int fd;
    char *path;
    char name[112]; /* for people */
    struct pr_events *events;
    size_t row; /* where the newest row begins */
    double at;  /* elapsed at the newest row */
    bool dead, said_full, unread;
    unsigned long lost; /* rows */
};

/* Takes path over, also on failure; NULL is out of memory. `option` begins the message. */
int pr_outfile_open(struct pr_outfile *f, char *path, const char *option, struct pr_events *events,
                    struct proctor_error *err);
/* A row, or several that go together, will now be added to f->out. */
void pr_outfile_begin(struct pr_outfile *f, double at);
/* It has been: write what there is. */
void pr_outfile_end(struct pr_outfile *f);
void pr_outfile_close(struct pr_outfile *f);
