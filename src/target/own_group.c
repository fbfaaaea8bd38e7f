/* SPDX-License-Identifier: Apache-2.0 */
/* A cgroup for the run: what ran in it is on its account, whoever waited for whom. In version 2 the
 * job is born in it; in version 1 it is moved, which the first time takes the kernel some 15 ms of
 * waiting. So --exact auto is content with version 2, and leaves that where a limit is set above:
 * a job that looks for its limit in its own group must find what it would without us. A group below
 * one with processes has no controllers in version 2, and cpu.stat all the same.
 *
 * The name says who made it and when, by pid, time since boot and pid namespace: what a crash has
 * left is removed at the next start in the same place. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/cgroup_path.h"
#include "core/exact.h"
#include "core/limits.h"
#include "core/stat_line.h"
#include "util/clock.h"
#include "util/fs.h"
#include "util/scan.h"

#define NAME_PREFIX "proctor-"
#define GROUP_NAME  80
#define ROUNDS      100 /* of moving members, who may fork meanwhile */
#define TRIES       20  /* of removing, a millisecond each: the last may still be on its way out */

/* Where a group is made, best first; version 2 has no name. Only with the account of CPU time is
 * there any use in it. */
static const struct {
    const char *controller;
    bool counts_cpu;
} hierarchies[] = {{"", true}, {"cpuacct", true}, {"memory", false}, {"pids", false}};
#define HIERARCHIES (sizeof hierarchies / sizeof *hierarchies)

/* Version 2; version 1, where time is divided by ticks alone. */
static const struct pr_scan_row v2_rows[] = {{"usage_usec ", EXACT_TIME, 1e-6},
                                             {"user_usec ", EXACT_USER, 1e-6},
                                             {"system_usec ", EXACT_SYSTEM, 1e-6}};
static const struct pr_scan_row v1_usage = {"", EXACT_TIME, 1e-9};
static const struct pr_scan_row v1_split[] = {{"user ", EXACT_USER, 1},
                                              {"system ", EXACT_SYSTEM, 1}};

struct group {
    const struct pr_host *host; /* borrowed */
    char name[GROUP_NAME];
    char *parent[HIERARCHIES]; /* relative to host.root; NULL where none was made */
    int usage, split;          /* held files of the account; -1 for none */
    bool v2;                   /* usage is cpu.stat */
};

/* --- who made it ------------------------------------------------------------------------------ */

static uint64_t start_of(const struct pr_host *host, pid_t pid)
{
    char path[32], text[1024];
    struct pr_stat_line line;
    snprintf(path, sizeof path, "%d/stat", (int)pid);
    ssize_t n = pr_fs_read(host->proc, path, text, sizeof text);
    return n > 0 && pr_stat_line_parse(text, (size_t)n, &line) ? line.start : 0;
}

static uint64_t namespace_of(const struct pr_host *host)
{
    struct stat st;
    return fstatat(host->proc, "self/ns/pid", &st, 0) == 0 ? st.st_ino : 0;
}

/* In the unit in which the kernel tells when a process was started. */
static uint64_t ticks_now(const struct pr_host *host)
{
    return (uint64_t)(pr_clock_boot() / (NS_PER_S / host->ticks_per_second));
}

static void make_name(const struct pr_host *host, char *text)
{
    snprintf(text, GROUP_NAME, NAME_PREFIX "%d-%llu-%llu", (int)getpid(),
             (unsigned long long)ticks_now(host), (unsigned long long)namespace_of(host));
}

/* Is its maker gone? Who was started after the group was made has not made it. Of one in another
 * pid namespace that is not to be seen. But a group is made, and entered, when its maker starts: if
 * nobody is in it a minute later, nobody will be, and the kernel does not let one with members be
 * removed. */
static bool is_gone(const struct pr_host *host, const uint64_t *number)
{
    uint64_t now = ticks_now(host), start;
    if (number[2] == namespace_of(host))
        return !(start = start_of(host, (pid_t)number[0])) || start > number[1];
    return now > number[1] && now - number[1] > 60 * (uint64_t)host->ticks_per_second;
}

static bool is_abandoned(const struct pr_host *host, const char *name)
{
    uint64_t number[3];
    struct pr_scan s = pr_scan_of(name, strlen(name));
    if (!pr_scan_prefix(&s, NAME_PREFIX))
        return false;
    for (int i = 0; i < 3; i++)
        if ((i > 0 && !pr_scan_prefix(&s, "-")) || !pr_scan_u64(&s, &number[i]))
            return false;
    return s.p == s.end && number[0] <= INT32_MAX && is_gone(host, number);
}

struct sweeping {
    const struct pr_host *host;
    const char *dir;
};

static void sweep(const struct pr_host *host, const char *dir);

static bool sweep_one(void *of, const char *name)
{
    const struct sweeping *w = of;
    char path[CGROUP_DIR];
    if (is_abandoned(w->host, name) &&
        (size_t)snprintf(path, sizeof path, "%s/%s", w->dir, name) < sizeof path) {
        sweep(w->host, path); /* a run inside that run */
        unlinkat(w->host->root, path, AT_REMOVEDIR);
    }
    return true;
}

/* Removes what a crash has left in this directory, as far as nobody is in it any more. */
static void sweep(const struct pr_host *host, const char *dir)
{
    struct sweeping w = {host, dir};
    _Alignas(16) char room[4096];
    struct stat st;
    if (fstatat(host->root, dir, &st, 0) == 0 && st.st_nlink == 2)
        return; /* there are no groups in it */
    pr_fs_list(host->root, dir, room, sizeof room, sweep_one, &w);
}

/* --- may we? ---------------------------------------------------------------------------------- */

static const char *remedy_of(int code)
{
    char path[128];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (code == EROFS)
        return "a cgroup file system that is mounted writable";
    snprintf(path, sizeof path, "%.100s/systemd/private", runtime ? runtime : "");
    if ((code == EACCES || code == EPERM) && runtime && access(path, F_OK) == 0)
        return "a scope of your systemd, which `systemd-run --user --scope -p Delegate=yes` asks "
               "for";
    return "root, or a cgroup that belongs to you (systemd: Delegate=yes)";
}

static int refuse_dir(struct pr_exact *x, int code, const char *dir)
{
    return pr_exact_refuse(x, code, remedy_of(code), "cannot make a cgroup in /%.120s: %s", dir,
                           strerror(code));
}

static int refuse_none(struct pr_exact *x)
{
    return pr_exact_refuse(x, ENOENT, "a /sys/fs/cgroup of version 2, or with cpuacct",
                           "there is no cgroup here that has an account of CPU time");
}

static bool find_parent(const struct pr_host *host, size_t i, char *dir)
{
    return pr_cgroup_dir(host, getpid(), hierarchies[i].controller, dir, CGROUP_DIR);
}

/* In the root group of version 2 processes and groups may be neighbours: a group of its own would
 * then have the share of a single process. */
static bool shares_cpu(const struct pr_host *host, const char *dir)
{
    char path[CGROUP_DIR + 32], text[256];
    snprintf(path, sizeof path, "%s/cgroup.subtree_control", dir);
    ssize_t n = pr_fs_read(host->root, path, text, sizeof text);
    struct pr_scan s = pr_scan_of(text, n > 0 ? (size_t)n : 0), word;
    while (pr_scan_word(&s, &word))
        if (pr_scan_equals(word, "cpu"))
            return true;
    return false;
}

/* What a job would notice: a limit above us that it would look for in vain, or another share. `dir`
 * is our group of version 2, "" for none. */
static int refuse_change(struct pr_exact *x, const struct pr_host *host, const char *dir)
{
    const char *anyway = "--exact cgroup makes one all the same";
    char which[100];
    if (!x->automatic)
        return 0;
    if (pr_limits_in_v2(host, getpid(), which, sizeof which))
        return pr_exact_refuse(x, EBUSY, anyway,
                               "%.90s: the job would not find this limit in a group of its own",
                               which);
    if (*dir && shares_cpu(host, dir))
        return pr_exact_refuse(x, EBUSY, anyway,
                               "a group of its own would have another share of the CPUs");
    return 0;
}

/* --exact auto does not wait for moving the job. */
static size_t hierarchies_of(const struct pr_exact *x)
{
    return x->automatic ? 1 : HIERARCHIES;
}

static int probe_in(struct pr_exact *x, const struct pr_host *host)
{
    char dir[CGROUP_DIR] = "";
    if (host->foreign)
        return refuse_none(x);
    find_parent(host, 0, dir);
    int r = refuse_change(x, host, dir);
    if (r < 0)
        return r;
    int why = refuse_none(x);
    for (size_t i = 0; i < hierarchies_of(x); i++) {
        if (!hierarchies[i].counts_cpu || !find_parent(host, i, dir))
            continue;
        if (faccessat(host->root, dir, W_OK, AT_EACCESS) == 0)
            return 0;
        why = refuse_dir(x, errno, dir);
    }
    return why;
}

static int probe(struct pr_exact *x)
{
    struct pr_host host;
    struct proctor_error err;
    if (pr_host_open(&host, "/", &err) < 0)
        return refuse_none(x);
    int r = probe_in(x, &host);
    pr_host_close(&host);
    return r;
}

/* --- making one ------------------------------------------------------------------------------- */

static bool path_in(const struct group *g, size_t i, const char *file, char *path, size_t size)
{
    return (size_t)snprintf(path, size, "%s/%s%s%s", g->parent[i], g->name, *file ? "/" : "",
                            file) < size;
}

static int open_in(const struct group *g, size_t i, const char *file, int flags)
{
    char path[CGROUP_DIR];
    int fd = path_in(g, i, file, path, sizeof path) ? openat(g->host->root, path, flags | O_CLOEXEC)
                                                    : (errno = ENAMETOOLONG, -1);
    return fd < 0 ? -errno : fd;
}

/* True where a group is there now; else why. */
static bool make(struct pr_exact *x, struct group *g, size_t i, const char *dir)
{
    char path[CGROUP_DIR];
    sweep(g->host, dir);
    g->parent[i] = strdup(dir);
    if (g->parent[i] && path_in(g, i, "", path, sizeof path) &&
        mkdirat(g->host->root, path, 0755) == 0)
        return true;
    int code = g->parent[i] ? errno : ENOMEM; /* EEXIST: two controllers in one hierarchy */
    free(g->parent[i]);
    g->parent[i] = NULL;
    if (hierarchies[i].counts_cpu)
        refuse_dir(x, code, dir);
    return false;
}

static int make_all(struct pr_exact *x, struct group *g)
{
    char dir[CGROUP_DIR] = "";
    bool good = false;
    if (g->host->foreign)
        return refuse_none(x);
    find_parent(g->host, 0, dir);
    int r = refuse_change(x, g->host, dir);
    if (r < 0)
        return r;
    refuse_none(x);
    make_name(g->host, g->name);
    for (size_t i = 0; i < hierarchies_of(x); i++)
        if (i == 0 ? *dir : find_parent(g->host, i, dir))
            good |= make(x, g, i, dir) && hierarchies[i].counts_cpu;
    if (g->parent[0])
        x->clone_fd = open_in(g, 0, "", O_PATH | O_DIRECTORY);
    return good ? 0 : -EACCES;
}

static int prepare(struct pr_exact *x)
{
    struct group *g = x->host ? calloc(1, sizeof *g) : NULL;
    if (!g)
        return refuse_none(x);
    g->host = x->host;
    g->usage = g->split = -1;
    x->state = g;
    return make_all(x, g);
}

/* --- going in --------------------------------------------------------------------------------- */

static int write_pid(int fd, pid_t pid)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%d", (int)pid);
    return write(fd, text, (size_t)n) == n ? 0 : -errno;
}

static int move_in(const struct group *g, size_t i, pid_t pid)
{
    int fd = open_in(g, i, "cgroup.procs", O_WRONLY);
    int r = fd < 0 ? fd : write_pid(fd, pid);
    if (fd >= 0)
        close(fd);
    return r;
}

static bool open_account(struct group *g, size_t i)
{
    g->v2 = i == 0;
    g->usage = open_in(g, i, g->v2 ? "cpu.stat" : "cpuacct.usage", O_RDONLY);
    if (!g->v2)
        g->split = open_in(g, i, "cpuacct.stat", O_RDONLY);
    return g->usage >= 0;
}

static int enter(struct pr_exact *x, pid_t pid, bool inside)
{
    struct group *g = x->state;
    for (size_t i = 0; i < HIERARCHIES; i++) {
        if (!g->parent[i])
            continue;
        int r = i == 0 && inside ? 0 : move_in(g, i, pid);
        if (r == 0 && hierarchies[i].counts_cpu && g->usage < 0 && !open_account(g, i))
            r = g->usage;
        if (r < 0 && hierarchies[i].counts_cpu)
            refuse_dir(x, -r, g->parent[i]);
    }
    if (x->clone_fd >= 0)
        close(x->clone_fd);
    x->clone_fd = -1;
    return g->usage < 0 ? -EACCES : 0;
}

/* --- the account ------------------------------------------------------------------------------ */

static bool scan_held(int fd, const struct pr_scan_row *rows, size_t count, double *ret)
{
    char text[1024];
    ssize_t n = fd < 0 ? -1 : pr_fs_pread(fd, text, sizeof text);
    return n > 0 && pr_scan_keyed(text, (size_t)n, rows, count, ret);
}

static void read_it(struct pr_exact *x, const struct pr_entities *set)
{
    const struct group *g = x->state;
    double split[EXACT_PARTS] = {0}, *figure = x->figure;
    (void)set;
    if (g->v2) {
        scan_held(g->usage, v2_rows, 3, figure);
        return;
    }
    scan_held(g->usage, &v1_usage, 1, figure);
    if (!scan_held(g->split, v1_split, 2, split))
        return;
    double all = split[EXACT_USER] + split[EXACT_SYSTEM];
    for (int i = EXACT_USER; i <= EXACT_SYSTEM; i++)
        figure[i] = all > 0 ? split[i] / all * figure[EXACT_TIME] : 0;
}

/* --- and out ---------------------------------------------------------------------------------- */

/* Whoever outlives the run goes to where it would have been without us. The list is opened anew
 * each time: version 1 shows a held one as it was. */
static bool move_out(const struct group *g, size_t i, int target)
{
    char path[CGROUP_DIR], *text = NULL;
    size_t len = 0;
    uint64_t pid;
    if (!path_in(g, i, "cgroup.procs", path, sizeof path) ||
        pr_fs_slurp(g->host->root, path, &text, &len) < 0)
        return false;
    struct pr_scan s = pr_scan_of(text, len), line;
    while (pr_scan_line(&s, &line))
        if (pr_scan_u64(&line, &pid) && pid)
            write_pid(target, (pid_t)pid);
    free(text);
    return len > 0;
}

static int remove_group(const struct group *g, size_t i)
{
    static const struct timespec moment = {.tv_nsec = 1000000};
    char path[CGROUP_DIR];
    path_in(g, i, "", path, sizeof path);
    for (int tries = 0; tries < TRIES; tries++) {
        if (unlinkat(g->host->root, path, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != EBUSY)
            break;
        sweep(g->host, path);
        nanosleep(&moment, NULL);
    }
    return -errno;
}

static int leave(const struct group *g, size_t i)
{
    char path[CGROUP_DIR];
    if (path_in(g, i, "", path, sizeof path) && unlinkat(g->host->root, path, AT_REMOVEDIR) == 0)
        return 0; /* as a rule nobody is left */
    snprintf(path, sizeof path, "%.4000s/cgroup.procs", g->parent[i]);
    int target = openat(g->host->root, path, O_WRONLY | O_CLOEXEC);
    for (int round = 0; target >= 0 && round < ROUNDS && move_out(g, i, target); round++)
        ;
    if (target >= 0)
        close(target);
    return remove_group(g, i);
}

static int finish(struct pr_exact *x)
{
    struct group *g = x->state;
    int result = 0;
    const int held[] = {g->usage, g->split, x->clone_fd};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        if (held[i] >= 0)
            close(held[i]);
    for (size_t i = 0; i < HIERARCHIES; i++) {
        int r = g->parent[i] ? leave(g, i) : 0;
        if (r < 0)
            result = pr_exact_refuse(x, -r, "", "cannot remove cgroup /%.100s/%s: %s", g->parent[i],
                                     g->name, strerror(-r));
        free(g->parent[i]);
    }
    free(g);
    return result;
}

const struct pr_exact_ops pr_exact_cgroup = {
    .name = "cgroup",
    .source = "a cgroup made for the run: the kernel's account of all that ran in it",
    .method = "a cgroup for each run: exact, whoever waits",
    .automatic = true,
    .whole = true,
    .probe = probe,
    .prepare = prepare,
    .enter = enter,
    .read = read_it,
    .finish = finish,
};
