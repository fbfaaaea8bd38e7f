/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that look like /: proc and sys in a temporary directory, made from a compact description
 * or copied from tests/fixtures, and changed in place between two ticks. */
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define TREE_PATH 512

struct fake_process {
    int pid, ppid, pgrp;
    const char *comm;
    char state;          /* 0 is S */
    int threads;         /* 0 is 1 */
    unsigned long start; /* ticks; 0 is 1000 + pid */
    unsigned long minflt, cminflt, majflt, cmajflt, utime, stime, cutime, cstime;
    unsigned long vms_pages, rss_pages, hwm_kb, swap_kb, pss_kb, private_kb, hugetlb_kb;
    unsigned long rchar, wchar, read_bytes, write_bytes, voluntary, involuntary;
    int fds;
    bool no_io, no_smaps;
};

static inline void tree_new(char *dir)
{
    char path[TREE_PATH];
    snprintf(dir, TREE_PATH, "/tmp/proctor-unit-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/proc", dir);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/sys", dir);
    assert_int_equal(mkdir(path, 0755), 0);
}

static inline void tree_make_dirs(char *path)
{
    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            fail_msg("mkdir %s: %s", path, strerror(errno));
        *p = '/';
    }
}

static inline void tree_write_bytes(const char *dir, const char *name, const void *data, size_t len)
{
    char path[TREE_PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    tree_make_dirs(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    close(fd);
}

/* Writes a file below dir, directories included. */
static inline void tree_write(const char *dir, const char *name, const char *text)
{
    tree_write_bytes(dir, name, text, strlen(text));
}

static inline int tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static inline void tree_delete(const char *dir, const char *name)
{
    char path[TREE_PATH];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    nftw(path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void tree_done(const char *dir)
{
    nftw(dir, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void tree_write_stat(const char *dir, const struct fake_process *p)
{
    char name[64], text[1024];
    snprintf(name, sizeof name, "proc/%d/stat", p->pid);
    int n = snprintf(
        text, sizeof text,
        "%d (%s) %c %d %d %d 0 -1 4194304 %lu %lu %lu %lu %lu %lu %lu %lu 20 0 %d 0 %lu %lu %lu "
        "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
        p->pid, p->comm ? p->comm : "fake", p->state ? p->state : 'S', p->ppid,
        p->pgrp ? p->pgrp : p->pid, p->pgrp ? p->pgrp : p->pid, p->minflt, p->cminflt, p->majflt,
        p->cmajflt, p->utime, p->stime, p->cutime, p->cstime, p->threads ? p->threads : 1,
        p->start ? p->start : 1000ul + (unsigned long)p->pid, p->vms_pages * 4096, p->rss_pages);
    tree_write_bytes(dir, name, text, (size_t)n);
}

static inline void tree_write_memory(const char *dir, const struct fake_process *p)
{
    char name[64], text[1024];
    snprintf(name, sizeof name, "proc/%d/statm", p->pid);
    snprintf(text, sizeof text, "%lu %lu 0 1 0 2 0\n", p->vms_pages, p->rss_pages);
    tree_write(dir, name, text);
    snprintf(name, sizeof name, "proc/%d/status", p->pid);
    snprintf(text, sizeof text,
             "Name:\tfake\nVmPeak:\t%lu kB\nVmHWM:\t%8lu kB\nVmRSS:\t%lu kB\nVmSwap:\t%8lu kB\n"
             "Threads:\t1\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n"
             "voluntary_ctxt_switches:\t%lu\nnonvoluntary_ctxt_switches:\t%lu\n",
             p->vms_pages * 4, p->hwm_kb, p->rss_pages * 4, p->swap_kb, p->voluntary,
             p->involuntary);
    tree_write(dir, name, text);
    snprintf(name, sizeof name, "proc/%d/smaps_rollup", p->pid);
    if (p->no_smaps) {
        tree_delete(dir, name);
        return;
    }
    snprintf(text, sizeof text,
             "55d0-7ffd ---p 00000000 00:00 0    [rollup]\nRss: %lu kB\nPss: %lu kB\n"
             "Pss_Dirty: 1 kB\nPrivate_Clean: %lu kB\nPrivate_Dirty: %lu kB\nSwap: %lu kB\n"
             "SwapPss: 0 kB\nPrivate_Hugetlb: %lu kB\n",
             p->rss_pages * 4, p->pss_kb, p->private_kb / 4, p->private_kb - p->private_kb / 4,
             p->swap_kb, p->hugetlb_kb);
    tree_write(dir, name, text);
}

/* All files of a process; what is there already is overwritten. */
static inline void tree_process(const char *dir, struct fake_process p)
{
    char name[64], text[512];
    tree_write_stat(dir, &p);
    tree_write_memory(dir, &p);
    snprintf(name, sizeof name, "proc/%d/io", p.pid);
    snprintf(text, sizeof text,
             "rchar: %lu\nwchar: %lu\nsyscr: 1\nsyscw: 1\nread_bytes: %lu\nwrite_bytes: %lu\n"
             "cancelled_write_bytes: 4096\n",
             p.rchar, p.wchar, p.read_bytes, p.write_bytes);
    if (p.no_io)
        tree_delete(dir, name);
    else
        tree_write(dir, name, text);
    for (int fd = 0; fd < p.fds; fd++) {
        snprintf(name, sizeof name, "proc/%d/fd/%d", p.pid, fd);
        tree_write(dir, name, "");
    }
}

static inline void tree_remove(const char *dir, int pid)
{
    char name[64];
    snprintf(name, sizeof name, "proc/%d", pid);
    tree_delete(dir, name);
}

/* Another process with the same pid: the inode of its directory differs for sure, since both
 * directories exist for a moment. */
static inline void tree_reuse(const char *dir, struct fake_process p)
{
    char from[TREE_PATH], to[TREE_PATH];
    int pid = p.pid;
    p.pid = 99999;
    tree_process(dir, p);
    p.pid = pid;
    tree_remove(dir, pid);
    snprintf(from, sizeof from, "%s/proc/99999", dir);
    snprintf(to, sizeof to, "%s/proc/%d", dir, pid);
    assert_int_equal(rename(from, to), 0);
    tree_process(dir, p);
}

/* --- fixtures --------------------------------------------------------------------------------- */

static inline void tree_copy_file(const char *from, const char *dir, const char *name)
{
    static char text[65536];
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    assert_true(n >= 0 && n < (ssize_t)sizeof text);
    tree_write_bytes(dir, name, text, (size_t)n);
}

static inline void tree_copy(const char *from, const char *dir, const char *name)
{
    char path[TREE_PATH], child[TREE_PATH];
    snprintf(path, sizeof path, "%s/%s", from, name);
    DIR *d = opendir(path);
    if (!d) {
        tree_copy_file(path, dir, name);
        return;
    }
    for (struct dirent *entry; (entry = readdir(d));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(child, sizeof child, "%s%s%s", name, *name ? "/" : "", entry->d_name);
        tree_copy(from, dir, child);
    }
    closedir(d);
}

/* The fixture takes the place of what is in dir: processes that it does not have go. */
static inline void tree_swap(const char *dir, const char *fixture)
{
    char from[TREE_PATH], path[TREE_PATH], name[TREE_PATH];
    snprintf(from, sizeof from, FIXTURES "/%s", fixture);
    snprintf(path, sizeof path, "%s/proc", dir);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));) {
        snprintf(path, sizeof path, "%s/proc/%s", from, entry->d_name);
        snprintf(name, sizeof name, "proc/%s", entry->d_name);
        if (entry->d_name[0] != '.' && access(path, F_OK) < 0)
            tree_delete(dir, name);
    }
    closedir(d);
    tree_copy(from, dir, "");
}
