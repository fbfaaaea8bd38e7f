/* SPDX-License-Identifier: Apache-2.0 */
#include "sink/outfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fs.h"
#include "util/output.h"
#include "util/text.h"

#define KEEP_BACK (1024 * 1024) /* bytes kept while the disk is full */

int pr_outfile_open(struct pr_outfile *f, char *path, const char *option, struct pr_events *events,
                    struct proctor_error *err)
{
    int fd = path ? pr_output_open(path) : -ENOMEM;
    *f = (struct pr_outfile){.fd = fd, .path = path, .events = events, .unread = fd == -ENXIO};
    const char *name = !path                    ? ""
                       : strcmp(path, "-") == 0 ? "standard output"
                                                : path,
               *tail = pr_text_tail(name, 100); /* an event has room for more than its path */
    snprintf(f->name, sizeof f->name, "%s%s", tail > name ? "..." : "", tail);
    if (fd >= 0 || f->unread)
        return 0;
    pr_error(err, -fd, "%s: %s: '%s'", option, strerror(-fd), path ? path : "");
    free(path);
    f->path = NULL;
    return fd;
}

void pr_outfile_begin(struct pr_outfile *f, double at)
{
    f->row = f->out.len;
    f->at = at;
}

/* Drops the newest row where more is kept back than should be. */
static void keep_back(struct pr_outfile *f)
{
    if (f->out.len <= KEEP_BACK)
        return;
    f->out.len = f->row;
    f->lost++;
}

static void complain(struct pr_outfile *f, int code)
{
    bool full = code == -ENOSPC || code == -EDQUOT;
    if (!full || !f->said_full)
        pr_event_problem(f->events, f->at, "%s: %s; %s", f->name, strerror(-code),
                         full ? "rows are kept back until there is room"
                              : "no more rows are written there");
    f->said_full |= full;
    f->dead |= !full;
}

void pr_outfile_end(struct pr_outfile *f)
{
    size_t done = 0;
    if (f->unread)
        f->unread = (f->fd = pr_output_open(f->path)) == -ENXIO;
    if (f->unread) {
        keep_back(f);
        return;
    }
    int r = f->dead ? 0 : f->fd < 0 ? f->fd : pr_fs_write(f->fd, f->out.data, f->out.len, &done);
    if (r == 0) {
        f->out.len = 0;
        return;
    }
    pr_buf_consume(&f->out, done);
    f->row = f->row > done ? f->row - done : 0;
    keep_back(f);
    complain(f, r);
}

void pr_outfile_close(struct pr_outfile *f)
{
    if (f->unread)
        f->unread = (f->fd = pr_output_open_late(f->path)) == -ENXIO;
    if (f->out.len && !f->unread)
        pr_outfile_end(f);
    if (f->unread)
        pr_event_problem(f->events, f->at, "%s: nobody reads this fifo; its rows are lost",
                         f->name);
    else if (!f->dead && (f->out.len || f->lost))
        pr_event_problem(f->events, f->at, "%s: its last rows are lost: there was no room",
                         f->name);
    if (f->fd >= 0)
        close(f->fd);
    pr_buf_done(&f->out);
    free(f->path);
}
