/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that bind a process: those of its cgroup and of every cgroup above it, in version 1, 2 or
 * both (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/), its CPU affinity, and the machine.
 */
#include "core/limits.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "source/cgroup_path.h"
#include "util/fs.h"
#include "util/scan.h"

/* A limit lower than the one so far takes its place. */
static void lower(struct pr_limits *l, enum pr_limit which, double value, const char *file,
                  const char *path)
{
    if (!(value >= 0.001) || value >= l->total[which] || value >= LIMIT_NONE)
        return;
    l->total[which] = value;
    snprintf(l->source[which], sizeof l->source[which], "%s%s%s", file, *path ? " of cgroup " : "",
             path);
}

/* --- the machine and affinity ----------------------------------------------------------------- */

static void machine_memory(const struct pr_host *host, struct pr_limits *l)
{
    char text[4096];
    double total[1] = {NAN};
    static const struct pr_scan_row row = {"MemTotal:", 0, 1024};
    ssize_t n = pr_fs_read(host->proc, "meminfo", text, sizeof text);
    if (n > 0)
        pr_scan_keyed(text, (size_t)n, &row, 1, total);
    if (!isnan(total[0]))
        lower(l, LIMIT_MEMORY, total[0], "machine", "");
}

/* "0-3,8" has five. */
static double count_list(struct pr_scan s)
{
    double count = 0;
    uint64_t from, to;
    while (pr_scan_u64(&s, &from)) {
        to = from;
        if (s.p < s.end && *s.p == '-') {
            s.p++;
            if (!pr_scan_u64(&s, &to) || to < from)
                break;
        }
        count += (double)(to - from + 1);
        if (s.p >= s.end || *s.p++ != ',')
            break;
    }
    return count;
}

static void machine_cpus(const struct pr_host *host, struct pr_limits *l)
{
    char text[4096];
    ssize_t n = pr_fs_read(host->root, "sys/devices/system/cpu/online", text, sizeof text);
    if (n > 0)
        lower(l, LIMIT_CPU, count_list(pr_scan_of(text, (size_t)n)), "machine", "");
}

static void affinity(const struct pr_host *host, pid_t pid, struct pr_limits *l)
{
    char path[32], text[8192];
    struct pr_scan s, line;
    cpu_set_t set; /* a call is cheaper than status; it may have more CPUs than fit */
    if (!host->foreign && sched_getaffinity(pid, sizeof set, &set) == 0) {
        lower(l, LIMIT_CPU, CPU_COUNT(&set), "CPU affinity", "");
        return;
    }
    snprintf(path, sizeof path, "%d/status", (int)pid);
    ssize_t n = pr_fs_read(host->proc, path, text, sizeof text);
    s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    while (pr_scan_line(&s, &line))
        if (pr_scan_prefix(&line, "Cpus_allowed_list:"))
            lower(l, LIMIT_CPU, count_list(line), "CPU affinity", "");
}

/* --- cgroups ---------------------------------------------------------------------------------- */

/* The first words of a file; "max" and "-1" are none. False where there is no such file. */
static bool read_numbers(const struct pr_host *host, const char *dir, const char *file, double *ret,
                         int count)
{
    char path[4400], text[128];
    uint64_t v;
    struct pr_scan word;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    ssize_t n = pr_fs_read(host->root, path, text, sizeof text);
    struct pr_scan s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    for (int i = 0; i < count; i++)
        ret[i] = pr_scan_word(&s, &word) && pr_scan_u64(&word, &v) ? (double)v : NAN;
    return n >= 0;
}

static double read_number(const struct pr_host *host, const char *dir, const char *file)
{
    double v;
    read_numbers(host, dir, file, &v, 1);
    return v;
}

/* Where a group has no such controller, it has none of its files. */
static void memory_v2(const struct pr_host *host, const char *dir, const char *path,
                      struct pr_limits *l)
{
    double most;
    if (!read_numbers(host, dir, "memory.max", &most, 1))
        return;
    lower(l, LIMIT_MEMORY, most, "memory.max", path);
    lower(l, LIMIT_MEMORY, read_number(host, dir, "memory.high"), "memory.high", path);
}

static void memory_v1(const struct pr_host *host, const char *dir, const char *path,
                      struct pr_limits *l)
{
    lower(l, LIMIT_MEMORY, read_number(host, dir, "memory.limit_in_bytes"), "memory.limit_in_bytes",
          path);
}

static void cpu_v2(const struct pr_host *host, const char *dir, const char *path,
                   struct pr_limits *l)
{
    double max[2]; /* of a period */
    read_numbers(host, dir, "cpu.max", max, 2);
    lower(l, LIMIT_CPU, max[0] / max[1], "cpu.max", path);
}

static void cpu_v1(const struct pr_host *host, const char *dir, const char *path,
                   struct pr_limits *l)
{
    double quota = read_number(host, dir, "cpu.cfs_quota_us");
    if (!isnan(quota))
        lower(l, LIMIT_CPU, quota / read_number(host, dir, "cpu.cfs_period_us"), "cpu.cfs_quota_us",
              path);
}

static void cpuset_v2(const struct pr_host *host, const char *dir, const char *path,
                      struct pr_limits *l)
{
    char file[4400], text[4096];
    snprintf(file, sizeof file, "%s/cpuset.cpus", dir);
    ssize_t n = pr_fs_read(host->root, file, text, sizeof text);
    if (n > 0)
        lower(l, LIMIT_CPU, count_list(pr_scan_of(text, (size_t)n)), "cpuset.cpus", path);
}

typedef void limit_reader(const struct pr_host *, const char *, const char *, struct pr_limits *);

struct reader {
    const char *controller;
    limit_reader *read;
};
static const struct reader v1_readers[] = {{"memory", memory_v1}, {"cpu", cpu_v1}};
/* Who asks what there is does not want the last one: affinity has what it allows. */
static const struct reader v2_readers[] = {
    {"memory", memory_v2}, {"cpu", cpu_v2}, {"cpuset", cpuset_v2}};
#define V2_READERS (sizeof v2_readers / sizeof *v2_readers)

/* What is of version 1 has nothing to be read in version 2. */
static size_t keep_v2(const struct pr_cgroup_view *v, size_t count, struct reader *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (!pr_cgroup_is_v1(v, v2_readers[i].controller))
            ret[n++] = v2_readers[i];
    return n;
}

/* From the group up to the top of what is mounted. */
static void walk_up(const struct pr_host *host, const struct reader *readers, size_t count,
                    struct pr_cgroup_place *p, struct pr_limits *l)
{
    for (;;) {
        const char *path = p->dir + p->top;
        for (size_t i = 0; i < count; i++)
            readers[i].read(host, p->dir, *path ? path : "/", l);
        char *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

/* A process outside of what can be seen is bound by the top of that, if by anything. */
static void read_in(const struct pr_cgroup_view *v, const char *controller,
                    const struct reader *readers, size_t count, struct pr_limits *l)
{
    struct pr_cgroup_place p;
    if (count &&
        (pr_cgroup_find(v, controller, &p) || (!v->name && pr_cgroup_top(v, controller, &p))))
        walk_up(v->host, readers, count, &p, l);
}

static void cgroups(const struct pr_host *host, pid_t pid, const char *name, struct pr_limits *l)
{
    struct pr_cgroup_view v;
    struct reader v2[V2_READERS];
    if (pr_cgroup_view_open(&v, host, pid, name) < 0)
        return;
    read_in(&v, "", v2, keep_v2(&v, V2_READERS - 1, v2), l);
    for (size_t i = 0; i < sizeof v1_readers / sizeof *v1_readers; i++)
        read_in(&v, v1_readers[i].controller, &v1_readers[i], 1, l);
    pr_cgroup_view_close(&v);
}

static void no_limits(struct pr_limits *l)
{
    for (int i = 0; i < LIMIT_COUNT; i++) {
        l->total[i] = INFINITY;
        snprintf(l->source[i], sizeof l->source[i], "unknown");
    }
}

bool pr_limits_in_v2(const struct pr_host *host, pid_t pid, char *ret_which, size_t size)
{
    struct pr_limits l;
    struct pr_cgroup_view v;
    struct pr_cgroup_place p;
    struct reader v2[V2_READERS];
    no_limits(&l);
    if (pr_cgroup_view_open(&v, host, pid, NULL) < 0)
        return false;
    size_t count = keep_v2(&v, V2_READERS, v2);
    if (count && pr_cgroup_find(&v, "", &p))
        walk_up(host, v2, count, &p, &l);
    pr_cgroup_view_close(&v);
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (!isinf(l.total[i])) {
            snprintf(ret_which, size, "%s", l.source[i]);
            return true;
        }
    return false;
}

static void read_all(const struct pr_host *host, pid_t pid, const char *name, struct pr_limits *ret)
{
    no_limits(ret);
    machine_memory(host, ret);
    machine_cpus(host, ret);
    if (pid)
        affinity(host, pid, ret);
    if (pid || name)
        cgroups(host, pid, name, ret);
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (isinf(ret->total[i]))
            ret->total[i] = NAN;
}

void pr_limits_read(const struct pr_host *host, pid_t pid, struct pr_limits *ret)
{
    read_all(host, pid, NULL, ret);
}

void pr_limits_read_cgroup(const struct pr_host *host, const char *name, struct pr_limits *ret)
{
    read_all(host, 0, name, ret);
}
