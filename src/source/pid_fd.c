/* SPDX-License-Identifier: Apache-2.0 */
/* How many descriptors a process has open: the size of /proc/PID/fd since Linux 6.2, before that
 * its entries. And what share of its limit that is, which it can have changed itself. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/source.h"
#include "util/fs.h"
#include "util/scan.h"

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

/* "Max open files            1024                 524288               files" */
static double limit_in_file(const struct pr_tick *t, pid_t pid)
{
    char path[32];
    struct pr_scan s, line;
    uint64_t soft;
    snprintf(path, sizeof path, "%d/limits", (int)pid);
    ssize_t n = pr_fs_read(t->host->proc, path, t->text, t->text_size);
    s = pr_scan_of(t->text, n > 0 ? (size_t)n : 0);
    while (pr_scan_line(&s, &line))
        if (pr_scan_prefix(&line, "Max open files"))
            return pr_scan_u64(&line, &soft) ? (double)soft : NAN;
    return NAN;
}

/* The call takes a tenth of the time that the file does, but not for processes of others. */
static double limit_of(const struct pr_tick *t, pid_t pid)
{
    struct rlimit limit;
    if (t->host->foreign || prlimit(pid, RLIMIT_NOFILE, NULL, &limit) < 0)
        return limit_in_file(t, pid);
    return limit.rlim_cur == RLIM_INFINITY ? NAN : (double)limit.rlim_cur;
}

static int read_fd(const struct pr_tick *t, struct pr_entity *e)
{
    char path[32];
    double *count = &e->value[METRIC_FDS];
    snprintf(path, sizeof path, "%d/fd", (int)e->pid);
    int r = t->host->fd_size ? by_size(t, path, count) : by_entries(t, path, count);
    if (r == 0) {
        double limit = limit_of(t, e->pid);
        e->value[METRIC_FDS_RATIO] = limit > 0 ? *count / limit : NAN;
    }
    return r;
}

const struct pr_source pr_source_pid_fd = {
    .name = "fd", .gives = READ_FD, .seldom = true, .read = read_fd};
