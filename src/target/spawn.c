/* SPDX-License-Identifier: Apache-2.0 */
/* The child waits with poll and leaves the byte that releases it unread: a read would already count
 * as the job's I/O. The report pipe closes on exec, or brings the errno of an exec that failed. */
#include "target/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noreturn)) static void child(const struct pr_spawn *s, int go, int report)
{
    struct pollfd wait = {.fd = go, .events = POLLIN};
    int queued = 0;
    while (poll(&wait, 1, -1) < 0 && errno == EINTR)
        ;
    if (ioctl(go, FIONREAD, &queued) < 0 || queued == 0)
        _exit(125); /* proctor is gone, or has called it off */
    signal(SIGCHLD, s->chld_ignored ? SIG_IGN : SIG_DFL);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
    execvpe(s->argv[0], s->argv, s->envp);
    int code = errno;
    ssize_t ignored = write(report, &code, sizeof code);
    (void)ignored;
    _exit(127);
}

int pr_spawn_hold(struct pr_spawn *s)
{
    int go[2], report[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(report, O_CLOEXEC) < 0) {
        int code = errno;
        close(go[0]);
        close(go[1]);
        return -code;
    }
    s->pid = fork();
    int code = errno;
    if (s->pid == 0) {
        close(go[1]);
        close(report[0]);
        child(s, go[0], report[1]);
    }
    close(go[0]);
    close(report[1]);
    s->go = go[1];
    s->report = report[0];
    if (s->pid > 0)
        return 0;
    close(s->go);
    close(s->report);
    return -code;
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
