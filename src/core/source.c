/* SPDX-License-Identifier: Apache-2.0 */
/* Held descriptors: a held /proc/PID file answers ESRCH once its process is gone, even when the pid
 * is used again, and costs less than half of open, read and close. Where none may be held (a
 * captured tree, the limit reached) files are opened by path, and the start time in stat says
 * whether the pid is still the same process. */
#include "core/source.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "util/fs.h"

#define SOURCE(name) extern const struct pr_source pr_source_##name;
#include "core/sources.def"
#undef SOURCE

const struct pr_source *const pr_sources[SOURCE_COUNT] = {
#define SOURCE(name) [SOURCE_##name] = &pr_source_##name,
#include "core/sources.def"
#undef SOURCE
};

/* What is read seldom is held as well while this part of what may be held is, and given back when
 * more is. */
#define SPARED 8
#define NEEDED 2

static void release(struct pr_host *host, struct pr_entity *e, int id)
{
    if (e->fd[id] < 0)
        return;
    close(e->fd[id]);
    e->fd[id] = -1;
    host->holding--;
    host->others -= id != SOURCE_pid_stat;
}

static int open_file(const struct pr_host *host, pid_t pid, const char *file)
{
    char path[64];
    snprintf(path, sizeof path, "%d/%s", (int)pid, file);
    return pr_fs_open(host->proc, path);
}

ssize_t pr_source_text(const struct pr_tick *t, struct pr_entity *e, enum pr_source_id id)
{
    int fd = e->fd[id];
    if (fd < 0) {
        fd = open_file(t->host, e->pid, pr_sources[id]->file);
        if (fd < 0)
            return fd;
        bool keep = t->host->held && !pr_sources[id]->can_wait &&
                    (!pr_sources[id]->seldom || t->host->holding < t->host->hold_limit / SPARED);
        bool other = id != SOURCE_pid_stat, full = t->host->holding >= t->host->hold_limit;
        t->host->refused |= keep && full;
        if (keep && !full && (!other || t->host->others < t->host->others_limit)) {
            t->host->holding++;
            t->host->others += other;
            e->fd[id] = fd;
        }
    }
    ssize_t n = pr_fs_pread(fd, t->text, t->text_size);
    if (fd != e->fd[id])
        close(fd);
    else if (pr_sources[id]->seldom && t->host->holding > t->host->hold_limit / NEEDED)
        release(t->host, e, id);
    return n;
}

int pr_source_read(const struct pr_tick *t, struct pr_entity *e, enum pr_source_id id)
{
    const struct pr_source *s = pr_sources[id];
    if (s->read)
        return s->read(t, e);
    ssize_t n = pr_source_text(t, e, id);
    if (n < 0)
        return (int)n;
    return s->parse(t, e, t->text, (size_t)n) ? 0 : -EIO;
}

void pr_source_release(struct pr_host *host, struct pr_entity *e)
{
    for (int i = 0; i < SOURCE_COUNT; i++)
        release(host, e, i);
}

void pr_source_release_others(struct pr_host *host, struct pr_entity *e)
{
    for (int i = 0; i < SOURCE_COUNT; i++)
        if (i != SOURCE_pid_stat && host->others > host->others_limit)
            release(host, e, i);
}
