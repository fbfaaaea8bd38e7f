/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/self/io holds what our threads did and what our reaped children did; the threads' own files
 * hold the former alone. The process's file is read first: what a thread of ours does between the
 * two readings then makes the difference too small for a moment, never too large. */
#include "core/self.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/stat_line.h"
#include "source/pid_io.h"
#include "util/fs.h"

uint64_t pr_self_start(void)
{
    char text[1024];
    struct pr_stat_line line;
    ssize_t n = pr_fs_read(AT_FDCWD, "/proc/self/stat", text, sizeof text);
    return n > 0 && pr_stat_line_parse(text, (size_t)n, &line) ? line.start : 0;
}

static ssize_t read_io(const char *path, double *value)
{
    char text[512];
    ssize_t n = pr_fs_read(AT_FDCWD, path, text, sizeof text);
    if (n > 0)
        pr_scan_keyed(text, (size_t)n, pr_io_rows, IO_ROWS, value);
    return n;
}

/* Takes one thread's own I/O off. A read is counted only after it was made: what the calling thread
 * has read since the process's file was is in its own, and not in the process's. */
static bool subtract_thread(const char *tid, double *since, double *value)
{
    char path[64];
    double own[PROC_METRICS];
    snprintf(path, sizeof path, "/proc/self/task/%.16s/io", tid);
    ssize_t n = read_io(path, own);
    for (size_t i = 0; n > 0 && i < IO_ROWS; i++)
        value[pr_io_rows[i].metric] -= own[pr_io_rows[i].metric];
    if (atoi(tid) == gettid())
        value[METRIC_IO_RCHAR] += *since;
    *since += (double)n;
    return n > 0;
}

static bool subtract_threads(double since, double *value)
{
    char room[4096] __attribute__((aligned(8)));
    bool good = true;
    int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t n;
    if (fd < 0)
        return false;
    while ((n = getdents64(fd, room, sizeof room)) > 0)
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *entry = (const void *)(room + at);
            at += entry->d_reclen;
            if (entry->d_name[0] != '.')
                good = subtract_thread(entry->d_name, &since, value) && good;
        }
    close(fd);
    return good;
}

/* Threads that have ended are in what the process has. */
static bool has_one_thread(void)
{
    struct rusage thread, all;
    return getrusage(RUSAGE_THREAD, &thread) == 0 && getrusage(RUSAGE_SELF, &all) == 0 &&
           thread.ru_minflt > 0 && thread.ru_minflt == all.ru_minflt &&
           thread.ru_majflt == all.ru_majflt && thread.ru_nvcsw == all.ru_nvcsw;
}

/* Has it never waited for anybody? Whoever has run has had page faults. */
static bool has_no_children(void)
{
    struct rusage children;
    return getrusage(RUSAGE_CHILDREN, &children) == 0 && children.ru_minflt == 0 &&
           children.ru_majflt == 0 && children.ru_nvcsw == 0;
}

static bool subtract_all(double since, double *value)
{
    char tid[16];
    if (!has_one_thread())
        return subtract_threads(since, value);
    snprintf(tid, sizeof tid, "%d", (int)gettid());
    return subtract_thread(tid, &since, value);
}

/* This process is who it was before it became this program, too. */
void pr_self_absorbed_io(double *value)
{
    for (size_t i = 0; i < IO_ROWS; i++)
        value[pr_io_rows[i].metric] = 0;
    if (has_no_children() && has_one_thread())
        return;
    ssize_t n = read_io("/proc/self/io", value);
    bool good = n > 0 && subtract_all((double)n, value);
    for (size_t i = 0; i < IO_ROWS; i++)
        if (!good)
            value[pr_io_rows[i].metric] = NAN;
}

void pr_self_expect_io(pid_t child, double *value)
{
    char path[32];
    double io[PROC_METRICS];
    snprintf(path, sizeof path, "/proc/%d/io", (int)child);
    if (read_io(path, io) <= 0)
        return;
    for (size_t i = 0; i < IO_ROWS; i++)
        value[pr_io_rows[i].metric] += io[pr_io_rows[i].metric];
}

double pr_self_rss_peak(void)
{
    static const struct pr_scan_row row = {"VmHWM:", 0, 1024};
    char text[4096];
    double value[1] = {NAN};
    ssize_t n = pr_fs_read(AT_FDCWD, "/proc/self/status", text, sizeof text);
    if (n > 0)
        pr_scan_keyed(text, (size_t)n, &row, 1, value);
    return value[0];
}

double pr_self_copy_peak(pid_t child)
{
    char path[32], text[128];
    uint64_t all, resident; /* pages; it has only grown */
    /* What it still touches on its way to exec, which differs from time to time, and, where it had
     * no CPU yet, on its way to where it waits. */
    const double page = (double)sysconf(_SC_PAGESIZE), more = fmax(1024 * 1024, 32 * page);
    snprintf(path, sizeof path, "/proc/%d/statm", (int)child);
    ssize_t n = pr_fs_read(AT_FDCWD, path, text, sizeof text);
    struct pr_scan s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    if (!pr_scan_u64(&s, &all) || !pr_scan_u64(&s, &resident))
        return NAN;
    return (double)resident * page + more;
}
