/* SPDX-License-Identifier: Apache-2.0 */
/* A file for the node exporter's textfile collector: replaced by a rename, so that nobody reads
 * half of one, and removed at the end, so that nothing is shown of a job that is gone. Where it
 * cannot be written the one before goes, too: it would be taken for what is now. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sink/exposition.h"
#include "sink/latest.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/output.h"
#include "util/text.h"

#define AT_LEAST (NS_PER_S / 10) /* between two files: nobody scrapes each second */

struct textfile {
    struct pr_sink sink;
    struct pr_exposition exposition;
    struct pr_latest latest;
    struct pr_events *events;
    struct pr_buf page;
    char path[PATH_MAX], temporary[PATH_MAX];
    int64_t written;  /* elapsed at the last sample that was, ns */
    bool there, said; /* there: the file is ours */
};

static int replace(struct textfile *t)
{
    size_t done;
    if (t->page.failed)
        return -ENOMEM;
    int fd = open(t->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    int r = fd < 0 ? -errno : pr_fs_write(fd, t->page.data, t->page.len, &done);
    if (fd >= 0 && close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(t->temporary, t->path) < 0)
        r = -errno;
    if (r < 0 && fd >= 0)
        unlink(t->temporary);
    t->there |= r == 0;
    return r;
}

static void remove_file(struct textfile *t)
{
    if (t->there)
        unlink(t->path);
    t->there = false;
}

static void complain(struct textfile *t, int code, double at)
{
    if (!t->said)
        pr_event_problem(t->events, at, "--textfile: %s: '%s'; it is tried again at each sample",
                         strerror(-code), pr_text_tail(t->path, 80));
    t->said = true;
}

static void textfile_write(struct pr_sink *sink, const struct proctor_snapshot *s)
{
    struct textfile *t = (struct textfile *)sink;
    int r = pr_latest_take(&t->latest, s);
    /* The last has no gauges, and the file is about to go. */
    if (s->last || (!s->first && s->elapsed - t->written < AT_LEAST))
        return;
    t->written = s->elapsed;
    pr_buf_reset(&t->page);
    pr_exposition_write(&t->page, &t->exposition, EXPOSITION_TEXT, &t->latest.now);
    r = r < 0 ? r : replace(t);
    if (r == 0)
        return;
    remove_file(t);
    complain(t, r, pr_seconds(s->elapsed));
}

static void free_all(struct textfile *t)
{
    pr_exposition_done(&t->exposition);
    pr_latest_done(&t->latest);
    pr_buf_done(&t->page);
    free(t);
}

static void textfile_close(struct pr_sink *sink)
{
    struct textfile *t = (struct textfile *)sink;
    remove_file(t);
    free_all(t);
}

static const struct pr_sink_ops ops = {
    .write = textfile_write, .close = textfile_close, .devices = true, .matches = true};

/* The collector takes what ends in .prom: the other must not. */
static int name_files(struct textfile *t, const char *path)
{
    int n = snprintf(t->path, sizeof t->path, "%s", path);
    int m = snprintf(t->temporary, sizeof t->temporary, "%s.%d.tmp", path, (int)getpid());
    if (!pr_output_is_plain(path))
        return -EINVAL;
    return n < (int)sizeof t->path && m < (int)sizeof t->temporary ? 0 : -ENAMETOOLONG;
}

/* Whether it can be written is known before the job starts. */
static int try_out(struct textfile *t)
{
    int fd = open(t->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return -errno;
    close(fd);
    return unlink(t->temporary) < 0 ? -errno : 0;
}

int pr_textfile_open(const struct pr_sink_setting *setting, struct pr_sink **ret_sink,
                     struct proctor_error *err)
{
    struct textfile *t = calloc(1, sizeof *t);
    if (!t)
        return pr_error(err, ENOMEM, "out of memory");
    t->sink.ops = &ops;
    t->events = setting->events;
    int r = name_files(t, setting->path);
    if (r == 0)
        r = try_out(t);
    if (r == 0)
        r = pr_exposition_init(&t->exposition, setting);
    if (r == 0) {
        *ret_sink = &t->sink;
        return 0;
    }
    free_all(t);
    return pr_error(err, -r, "--textfile: %s: '%.150s'",
                    r == -EINVAL ? "it has to be a file of its own" : strerror(-r), setting->path);
}
