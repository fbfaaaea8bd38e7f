/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that bind a process: those of its cgroup and of every cgroup above it, in version 1, 2 or
 * both (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/), its CPU affinity, and the machine.
 * In a container /proc/PID/cgroup and the mount agree on paths only after the mount's own root has
 * been taken off the front. */
#include "core/limits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/fs.h"
#include "util/scan.h"

#define NO_LIMIT 0x1p62 /* version 1 says "none" with the largest number of whole pages */

/* A limit lower than the one so far takes its place. */
static void lower(struct pr_limits *l, enum pr_limit which, double value, const char *file,
                  const char *path)
{
    if (!(value >= 0.001) || value >= l->total[which] || value >= NO_LIMIT)
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

static void cpus(const struct pr_host *host, pid_t pid, struct pr_limits *l)
{
    char path[32], text[8192];
    struct pr_scan s, line;
    ssize_t n = pr_fs_read(host->root, "sys/devices/system/cpu/online", text, sizeof text);
    if (n > 0)
        lower(l, LIMIT_CPU, count_list(pr_scan_of(text, (size_t)n)), "machine", "");
    snprintf(path, sizeof path, "%d/status", (int)pid);
    n = pr_fs_read(host->proc, path, text, sizeof text);
    s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    while (pr_scan_line(&s, &line))
        if (pr_scan_prefix(&line, "Cpus_allowed_list:"))
            lower(l, LIMIT_CPU, count_list(line), "CPU affinity", "");
}

/* --- cgroups ---------------------------------------------------------------------------------- */

static double read_number(const struct pr_host *host, const char *dir, const char *file, int which)
{
    char path[4400], text[128];
    uint64_t v;
    struct pr_scan word;
    snprintf(path, sizeof path, "%s/%s", dir, file);
    ssize_t n = pr_fs_read(host->root, path, text, sizeof text);
    struct pr_scan s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    for (; which > 0; which--)
        if (!pr_scan_word(&s, &word))
            return NAN;
    return pr_scan_u64(&s, &v) ? (double)v : NAN; /* "max" and "-1" are none */
}

static void memory_v2(const struct pr_host *host, const char *dir, const char *path,
                      struct pr_limits *l)
{
    lower(l, LIMIT_MEMORY, read_number(host, dir, "memory.max", 0), "memory.max", path);
    lower(l, LIMIT_MEMORY, read_number(host, dir, "memory.high", 0), "memory.high", path);
}

static void memory_v1(const struct pr_host *host, const char *dir, const char *path,
                      struct pr_limits *l)
{
    lower(l, LIMIT_MEMORY, read_number(host, dir, "memory.limit_in_bytes", 0),
          "memory.limit_in_bytes", path);
}

static void cpu_v2(const struct pr_host *host, const char *dir, const char *path,
                   struct pr_limits *l)
{
    lower(l, LIMIT_CPU, read_number(host, dir, "cpu.max", 0) / read_number(host, dir, "cpu.max", 1),
          "cpu.max", path);
}

static void cpu_v1(const struct pr_host *host, const char *dir, const char *path,
                   struct pr_limits *l)
{
    double quota = read_number(host, dir, "cpu.cfs_quota_us", 0);
    lower(l, LIMIT_CPU, quota / read_number(host, dir, "cpu.cfs_period_us", 0), "cpu.cfs_quota_us",
          path);
}

typedef void limit_reader(const struct pr_host *, const char *, const char *, struct pr_limits *);

static const struct {
    const char *controller; /* "" is version 2 */
    limit_reader *read;
} readers[] = {{"", memory_v2}, {"", cpu_v2}, {"memory", memory_v1}, {"cpu", cpu_v1}};

static bool in_list(struct pr_scan list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list.p; p < list.end;) {
        const char *comma = memchr(p, ',', (size_t)(list.end - p));
        size_t len = (size_t)((comma ? comma : list.end) - p);
        if (len == n && memcmp(p, name, n) == 0)
            return true;
        p += len + 1;
    }
    return false;
}

static bool is_octal(const char *p)
{
    return p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' && p[2] >= '0' && p[2] <= '7';
}

/* Blanks and the like stand as \\040 in mountinfo. */
static void unescape(struct pr_scan s, char *ret, size_t size)
{
    size_t n = 0;
    while (s.p < s.end && n + 1 < size) {
        bool octal = s.end - s.p >= 4 && s.p[0] == '\\' && is_octal(s.p + 1);
        ret[n++] =
            octal ? (char)((s.p[1] - '0') << 6 | (s.p[2] - '0') << 3 | (s.p[3] - '0')) : *s.p;
        s.p += octal ? 4 : 1;
    }
    ret[n] = '\0';
}

/* Where the hierarchy of a controller is mounted, and which part of it: fields 4 and 5 of
 * mountinfo. */
static bool find_mount(const char *mountinfo, size_t len, const char *controller, char *ret_root,
                       char *ret_point, size_t size)
{
    struct pr_scan s = pr_scan_of(mountinfo, len), line;
    while (pr_scan_line(&s, &line)) {
        struct pr_scan w, root, point, type, options = line;
        for (int i = 0; i < 3; i++)
            pr_scan_word(&line, &w);
        if (!pr_scan_word(&line, &root) || !pr_scan_word(&line, &point))
            continue;
        while (pr_scan_word(&line, &w) && !pr_scan_equals(w, "-"))
            ;
        if (!pr_scan_word(&line, &type) || !pr_scan_word(&line, &w) ||
            !pr_scan_word(&line, &options))
            continue;
        bool fits = *controller ? pr_scan_equals(type, "cgroup") && in_list(options, controller)
                                : pr_scan_equals(type, "cgroup2");
        if (!fits)
            continue;
        unescape(root, ret_root, size);
        unescape(point, ret_point, size);
        return true;
    }
    return false;
}

/* The path of the process in the hierarchy of a controller: "4:memory:/a/b", "0::/a/b". */
static bool find_path(const char *text, size_t len, const char *controller, char *ret, size_t size)
{
    struct pr_scan s = pr_scan_of(text, len), line;
    while (pr_scan_line(&s, &line)) {
        const char *first = memchr(line.p, ':', (size_t)(line.end - line.p));
        const char *second = first ? memchr(first + 1, ':', (size_t)(line.end - first - 1)) : NULL;
        if (!second)
            continue;
        struct pr_scan list = {first + 1, second};
        bool fits = *controller ? in_list(list, controller) : list.p == list.end;
        if (!fits)
            continue;
        snprintf(ret, size, "%.*s", (int)(line.end - second - 1), second + 1);
        return true;
    }
    return false;
}

/* From the process's own group up to the top of what is mounted. */
static void walk_up(const struct pr_host *host, limit_reader *read, const char *point, char *path,
                    struct pr_limits *l)
{
    char dir[4300];
    for (;;) {
        snprintf(dir, sizeof dir, "%s%s", point + (*point == '/'), strcmp(path, "/") ? path : "");
        read(host, dir, *path ? path : "/", l);
        char *slash = strrchr(path, '/');
        if (!slash || !*path)
            return;
        *slash = '\0';
    }
}

static void cgroups(const struct pr_host *host, pid_t pid, struct pr_limits *l)
{
    char path[4096], root[4096], point[4096], name[32];
    char *mountinfo = NULL, *groups = NULL;
    size_t mount_len = 0, group_len = 0;
    snprintf(name, sizeof name, "%d/cgroup", (int)pid);
    /* Under a foreign root "self" would be ourselves, with mounts of our own. */
    const char *const places[] = {"self/mountinfo", "1/mountinfo"};
    if (pr_fs_slurp(host->proc, places[host->foreign], &mountinfo, &mount_len) < 0)
        pr_fs_slurp(host->proc, places[!host->foreign], &mountinfo, &mount_len);
    pr_fs_slurp(host->proc, name, &groups, &group_len);
    for (size_t i = 0; mountinfo && groups && i < sizeof readers / sizeof *readers; i++) {
        const char *controller = readers[i].controller;
        if (!find_mount(mountinfo, mount_len, controller, root, point, sizeof root) ||
            !find_path(groups, group_len, controller, path, sizeof path))
            continue;
        size_t n = strcmp(root, "/") ? strlen(root) : 0;
        bool below = strncmp(path, root, n) == 0 && (path[n] == '/' || !path[n]);
        char top[1] = "";
        walk_up(host, readers[i].read, point, below ? path + n : top, l);
    }
    free(mountinfo);
    free(groups);
}

void pr_limits_read(const struct pr_host *host, pid_t pid, struct pr_limits *ret)
{
    for (int i = 0; i < LIMIT_COUNT; i++) {
        ret->total[i] = INFINITY;
        snprintf(ret->source[i], sizeof ret->source[i], "unknown");
    }
    machine_memory(host, ret);
    cpus(host, pid, ret);
    cgroups(host, pid, ret);
    for (int i = 0; i < LIMIT_COUNT; i++)
        if (isinf(ret->total[i]))
            ret->total[i] = NAN;
}
