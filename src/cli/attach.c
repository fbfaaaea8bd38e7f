/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor attach`: record what is running already. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/outside.h"
#include "cli/watching.h"
#include "util/fs.h"
#include "util/scan.h"

enum { ARGS_SHOWN = 256 };

struct attach {
    struct pr_watching watching;
    pid_t pid;
    char *cmdline, *argv[ARGS_SHOWN + 1], name[COMM_MAX + 2];
};

static bool parse_pid(const char *text, pid_t *ret)
{
    struct pr_scan s = pr_scan_of(text, strlen(text));
    uint64_t pid;
    if (!pr_scan_u64(&s, &pid) || s.p != s.end || pid == 0 || pid > INT32_MAX)
        return false;
    *ret = (pid_t)pid;
    return true;
}

/* A file of the process below the root, which nobody has opened yet. */
static char *read_whole(const struct attach *a, const char *file, size_t *ret_len)
{
    char path[4200], *text = NULL;
    snprintf(path, sizeof path, "%s/proc/%d/%s", a->watching.monitor->config.root, (int)a->pid,
             file);
    *ret_len = 0;
    pr_fs_slurp(AT_FDCWD, path, &text, ret_len);
    return text;
}

/* A kernel thread has none. Nor has a process for a moment in the middle of exec, which is worth
 * waiting for. */
static char *read_cmdline(const struct attach *a, size_t *ret_len)
{
    char path[4200], target[8];
    char *text = NULL;
    snprintf(path, sizeof path, "%s/proc/%d/exe", a->watching.monitor->config.root, (int)a->pid);
    for (int tries = 0; tries < 10; tries++) {
        text = read_whole(a, "cmdline", ret_len);
        if (*ret_len || readlink(path, target, sizeof target) < 0)
            break;
        free(text);
        text = NULL;
        usleep(1000);
    }
    return text;
}

/* The command line of the process, for the summary: arguments end in NUL. A kernel thread has none,
 * but a name. */
static void read_command(struct attach *a)
{
    size_t len, count = 0;
    struct pr_facts *facts = &a->watching.monitor->facts;
    a->cmdline = read_cmdline(a, &len);
    for (char *p = a->cmdline; p < a->cmdline + len && count < ARGS_SHOWN; p += strlen(p) + 1)
        a->argv[count++] = p;
    if (count == ARGS_SHOWN)
        a->argv[count - 1] = "..."; /* and so on */
    char *comm = count ? NULL : read_whole(a, "comm", &len);
    if (comm) {
        snprintf(a->name, sizeof a->name, "[%.*s]", (int)strcspn(comm, "\n"), comm);
        a->argv[0] = a->name;
    }
    free(comm);
    facts->argv = a->argv;
    facts->pid = a->pid;
}

static int watch_process(struct attach *a, struct proctor_error *err)
{
    int r = proctor_monitor_watch_pid(a->watching.monitor, a->pid, 0, err);
    if (r < 0)
        return r;
    read_command(a);
    if (strcmp(a->watching.monitor->config.root, "/") == 0)
        a->watching.ended = (int)syscall(SYS_pidfd_open, a->pid, 0);
    return 0;
}

static int watch_target(struct attach *a, struct proctor_error *err)
{
    struct proctor_monitor *m = a->watching.monitor;
    const struct pr_config *c = &m->config;
    if (c->group)
        return proctor_monitor_watch_group(m, a->pid, err);
    if (c->cgroup)
        return proctor_monitor_watch_cgroup(m, c->cgroup, err);
    return a->pid ? watch_process(a, err) : pr_monitor_watch_matches(m, err);
}

static void complain_of_two(const struct pr_config *c, const char *pid)
{
    bool group = pid && c->group;
    pr_complain("attach: %s '%s' and %s '%s' exclude each other; leave one of them out",
                pid ? "PID" : "--group", pid ? pid : c->group, group ? "--group" : "--cgroup",
                group ? c->group : c->cgroup);
}

/* What is to be watched has to be said, and once. */
static bool check(struct attach *a, char **operands)
{
    const struct pr_config *c = &a->watching.monitor->config;
    const char *pid = operands[0];
    int named = (pid != NULL) + (c->group != NULL) + (c->cgroup != NULL);
    if (pid && operands[1])
        pr_complain("attach: '%.80s' is too much: it takes one PID", operands[1]);
    else if (named > 1)
        complain_of_two(c, pid);
    else if (!named && !c->match.count)
        pr_complain("attach: a PID is missing: proctor attach [OPTIONS] PID, or --group, --cgroup "
                    "or --match");
    else if (pid && !parse_pid(pid, &a->pid))
        pr_complain("attach: '%.80s' is not a process id; `pgrep -f` finds one", pid);
    else if (c->group && !parse_pid(c->group, &a->pid))
        pr_complain(
            "attach: --group: '%.80s' is not the number of a process group; `ps -eo pgid,comm` "
            "lists them",
            c->group);
    else if (c->no_children && !pid && c->origin[OPTION_NO_CHILDREN] == ORIGIN_OPTION)
        pr_complain("attach: --no-children goes with a PID; leave it out, or name a process");
    else
        return true;
    return false;
}

static int record(struct attach *a)
{
    struct proctor_error err;
    int r = watch_target(a, &err);
    if (r == 0)
        return pr_watching_record(&a->watching);
    pr_complain("attach: %s", err.message);
    return pr_watching_status(r);
}

int pr_main_attach(int argc, char **argv)
{
    struct attach a = {.watching = {.command = "attach",
                                    .signals = -1,
                                    .ended = -1,
                                    .summary.fd = -1,
                                    .server = PR_SERVER_NONE}};
    int first, status;
    pr_outside_plug_holes();
    a.watching.monitor = pr_recording_new("attach", argc, argv, &first, &status);
    if (!a.watching.monitor)
        return status;
    status = check(&a, argv + first) ? record(&a) : EXIT_USAGE;
    pr_watching_done(&a.watching);
    free(a.cmdline);
    return status;
}
