/* SPDX-License-Identifier: Apache-2.0 */
/* How many descriptors a process has open: the size of /proc/PID/fd since Linux 6.2, before that
 * its entries. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/source.h"

static int by_size(const struct pr_tick *t, const char *path, double *ret)
{
    struct stat st;
    if (fstatat(t->host->proc, path, &st, 0) < 0)
        return -errno;
    *ret = (double)st.st_size;
    return 0;
}

static int by_entries(const struct pr_tick *t, const char *path, double *ret)
{
    int fd = openat(t->host->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t n;
    double count = 0;
    if (fd < 0)
        return -errno;
    while ((n = getdents64(fd, t->text, t->text_size)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *entry = (const void *)(t->text + at);
            count += entry->d_name[0] != '.';
            at += entry->d_reclen;
        }
    int r = n < 0 ? -errno : 0;
    close(fd);
    if (r == 0)
        *ret = count;
    return r;
}

static int read_fd(const struct pr_tick *t, struct pr_entity *e)
{
    char path[32];
    snprintf(path, sizeof path, "%d/fd", (int)e->pid);
    return t->host->fd_size ? by_size(t, path, &e->value[METRIC_FDS])
                            : by_entries(t, path, &e->value[METRIC_FDS]);
}

const struct pr_source pr_source_pid_fd = {
    .name = "fd", .gives = READ_FD, .seldom = true, .read = read_fd};
