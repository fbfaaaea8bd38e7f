/* SPDX-License-Identifier: Apache-2.0 */
/* The child waits with poll and leaves the byte that releases it unread: a read would already count
 * as the job's I/O. The report pipe closes on exec, or brings the errno of an exec that failed. */
#include "target/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GO, REPORT, PIPES }; /* to the child; from it, closing on exec */

static void close_pipes(int pipes[PIPES][2])
{
    for (int i = 0; i < PIPES; i++)
        for (int end = 0; end < 2; end++)
            if (pipes[i][end] >= 0)
                close(pipes[i][end]);
}

static void close_end(int *fd)
{
    close(*fd);
    *fd = -1;
}

/* Waits until the pipe has something to say, or nobody is left who could. */
static void wait_for(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (poll(&wait, 1, -1) < 0 && errno == EINTR)
        ;
}

void pr_spawn_expect(struct pr_spawn *s)
{
    void *room = mmap(NULL, SPAWN_LATE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    s->late = room == MAP_FAILED ? NULL : room;
}

void pr_spawn_add(struct pr_spawn *s, const char *name, const char *value)
{
    char *at = s->late;
    int count = 0;
    for (; at && *at; at += strlen(at) + 1)
        count++;
    size_t left = at ? (size_t)(s->late + SPAWN_LATE - at) : 0; /* the empty one has one of it */
    if (count < SPAWN_LATE_MOST && strlen(name) + strlen(value) + 3 <= left)
        snprintf(at, left, "%s=%s", name, value);
}

/* Not through a pipe: reading from one would be the job's. */
static void take_late(const struct pr_spawn *s)
{
    for (char *text = s->late; text && *text; text += strlen(text) + 1) {
        size_t i = 0, n = strcspn(text, "=") + 1;
        while (s->envp[i] && strncmp(s->envp[i], text, n) != 0)
            i++;
        if (!s->envp[i])
            s->envp[i + 1] = NULL;
        s->envp[i] = text;
    }
}

__attribute__((noreturn)) static void child(const struct pr_spawn *s, int pipes[PIPES][2])
{
    int queued = 0;
    close_end(&pipes[GO][1]);
    close_end(&pipes[REPORT][0]);
    wait_for(pipes[GO][0]);
    if (ioctl(pipes[GO][0], FIONREAD, &queued) < 0 || queued == 0)
        _exit(125); /* proctor is gone, or has called it off */
    take_late(s);
    signal(SIGCHLD, s->chld_ignored ? SIG_IGN : SIG_DFL);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
    execvpe(s->argv[0], s->argv, s->envp);
    int code = errno;
    ssize_t ignored = write(pipes[REPORT][1], &code, sizeof code);
    (void)ignored;
    _exit(127);
}

/* clone3 may be missing, filtered or refused: then it is born where we are. Nothing in the child
 * needs what the C library does at a fork: we have one thread, and it goes on to exec. */
static pid_t fork_into(struct pr_spawn *s)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP,
                              .exit_signal = SIGCHLD,
                              .cgroup = (uint64_t)(unsigned)s->cgroup};
    pid_t pid = s->cgroup >= 0 ? (pid_t)syscall(SYS_clone3, &args, sizeof args) : -1;
    s->in_cgroup = pid >= 0;
    return pid >= 0 ? pid : fork();
}

int pr_spawn_hold(struct pr_spawn *s)
{
    int pipes[PIPES][2] = {{-1, -1}, {-1, -1}}, code = 0;
    for (int i = 0; i < PIPES && code == 0; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0)
            code = errno;
    s->pid = code ? -1 : fork_into(s);
    if (s->pid == 0)
        child(s, pipes);
    if (s->pid < 0) {
        code = code ? code : errno;
        close_pipes(pipes);
        return -code;
    }
    close_end(&pipes[GO][0]);
    close_end(&pipes[REPORT][1]);
    s->go = pipes[GO][1];
    s->report = pipes[REPORT][0];
    return 0;
}

int pr_spawn_release(struct pr_spawn *s)
{
    int code = 0;
    ssize_t n = write(s->go, "", 1);
    while (n == 1 && (n = read(s->report, &code, sizeof code)) < 0 && errno == EINTR)
        n = 1;
    close(s->go);
    close(s->report);
    if (n != sizeof code)
        return 0;
    waitpid(s->pid, NULL, 0);
    return -code;
}

void pr_spawn_cancel(struct pr_spawn *s)
{
    close(s->go);
    close(s->report);
    waitpid(s->pid, NULL, 0);
}
