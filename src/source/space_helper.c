/* SPDX-License-Identifier: Apache-2.0 */
/* The helper allocates nothing and takes no lock: the process that it was forked from may have had
 * threads. What it sends is described in zpool.h. */
#include "core/space.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fs.h"
#include "util/scan.h"

#define EVERY   60000 /* ms */
#define PATIENT 10000 /* ms that zpool may take */
#define HEAD    64    /* room for the first line */
#define PACKET  65536

/* --- is there anything to ask? ---------------------------------------------------------------- */

static bool has_zfs(const struct pr_host *host)
{
    char text[8192];
    struct pr_scan line, word;
    ssize_t n = pr_fs_read(host->proc, "filesystems", text, sizeof text);
    struct pr_scan s = pr_scan_of(text, n > 0 ? (size_t)n : 0);
    while (pr_scan_line(&s, &line))
        while (pr_scan_word(&line, &word))
            if (pr_scan_equals(word, "zfs"))
                return true;
    return false;
}

/* In PATH, then where administrators have it and users do not look. */
static bool find_zpool(char *ret, size_t size)
{
    const char *const lists[] = {getenv("PATH"), "/sbin:/usr/sbin"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const char *p = lists[i]; p && *p;) {
            int len = (int)strcspn(p, ":");
            snprintf(ret, size, "%.*s/zpool", len, p);
            if (*p == '/' && access(ret, X_OK) == 0)
                return true;
            p += len + (p[len] == ':');
        }
    return false;
}

/* --- the helper ------------------------------------------------------------------------------- */

struct helper {
    int socket;
    const char *zpool;
    pid_t running; /* a zpool that we have not waited for yet, 0 for none */
    int64_t until; /* when it must have ended */
    char packet[PACKET];
};

static void close_from(int first)
{
    struct rlimit limit = {0, 0};
    if (syscall(SYS_close_range, (unsigned)first, UINT_MAX, 0) == 0)
        return;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = first; fd < 65536 && (rlim_t)fd < limit.rlim_cur; fd++)
        close(fd);
}

/* Nothing is left of who started it but the socket, which becomes 3. */
static void detach(struct helper *h)
{
    sigset_t none;
    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Out of the way first: they may be where they are to go. */
    int socket = fcntl(h->socket, F_DUPFD_CLOEXEC, 4), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    null = fcntl(null, F_DUPFD_CLOEXEC, 4);
    if (socket < 0 || null < 0 || dup3(socket, 3, O_CLOEXEC) < 0)
        _exit(1);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    close_from(4);
    h->socket = 3;
    prctl(PR_SET_NAME, "proctor-zpool");
    if (chdir("/") < 0)
        _exit(1);
}

__attribute__((noreturn)) static void become_zpool(const struct helper *h, int out)
{
    char *const argv[] = {"zpool", "list", "-Hp", "-o", "name,size,allocated,free", NULL};
    char *const envp[] = {"LC_ALL=C", "PATH=/sbin:/usr/sbin:/bin:/usr/bin", NULL};
    setpgid(0, 0); /* so that all that it starts can be ended with it */
    signal(SIGPIPE, SIG_DFL);
    if (dup2(out, STDOUT_FILENO) >= 0)
        execve(h->zpool, argv, envp);
    _exit(127);
}

static bool is_closed(short revents)
{
    return revents & (POLLHUP | POLLERR | POLLNVAL);
}

static int time_left(const struct helper *h)
{
    int64_t left = (h->until - pr_clock_boot()) / NS_PER_MS;
    return left > 0 ? (int)left : 0;
}

/* Takes what it writes until it ends, takes too long, or nobody wants to know any more. Length, or
 * -1 where it is not whole. */
static ssize_t collect(struct helper *h, int from)
{
    struct pollfd wait[] = {{.fd = from, .events = POLLIN}, {.fd = h->socket}};
    size_t len = 0;
    while (len < PACKET - HEAD) {
        int n = poll(wait, 2, time_left(h));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || is_closed(wait[1].revents))
            return -1;
        ssize_t got = read(from, h->packet + HEAD + len, PACKET - HEAD - len);
        if (got == 0)
            return (ssize_t)len;
        if (got < 0 && errno != EINTR)
            return -1;
        len += got > 0 ? (size_t)got : 0;
    }
    return -1;
}

/* One that hangs in the kernel cannot be ended: it is left behind, and no other started. */
static bool is_free(struct helper *h, int *ret_status)
{
    if (h->running > 0 && waitpid(h->running, ret_status, WNOHANG) != 0)
        h->running = 0;
    return h->running == 0;
}

/* What has closed its output should end at once. */
static bool ended_well(struct helper *h)
{
    int status = -1;
    while (!is_free(h, &status) && time_left(h) > 0)
        usleep(1000);
    return h->running == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void end_it(struct helper *h)
{
    if (h->running == 0)
        return;
    kill(-h->running, SIGKILL);
    kill(h->running, SIGKILL); /* it may not have come to make a group of its own */
    usleep(10000);
    is_free(h, NULL);
}

/* Length of what it wrote, -1 where that is not to be believed. */
static ssize_t run_zpool(struct helper *h)
{
    int ends[2];
    if (!is_free(h, NULL) || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        become_zpool(h, ends[1]);
    h->running = pid > 0 ? pid : 0;
    h->until = pr_clock_boot() + PATIENT * NS_PER_MS;
    close(ends[1]);
    ssize_t len = pid > 0 ? collect(h, ends[0]) : -1;
    close(ends[0]);
    if (len >= 0 && !ended_well(h))
        len = -1;
    end_it(h);
    return len;
}

static double cpu_used(int who)
{
    struct rusage u;
    if (getrusage(who, &u) < 0)
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static bool answer(struct helper *h)
{
    char head[HEAD];
    ssize_t len = run_zpool(h);
    int n = snprintf(head, sizeof head, "cpu %.6f%s\n",
                     cpu_used(RUSAGE_SELF) + cpu_used(RUSAGE_CHILDREN), len < 0 ? " failed" : "");
    char *packet = h->packet + HEAD - n;
    memcpy(packet, head, (size_t)n);
    size_t size = (size_t)n + (len > 0 ? (size_t)len : 0);
    return send(h->socket, packet, size, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == EAGAIN;
}

/* Until it is time again, or somebody asks. False: that was all. */
static bool rest(struct helper *h)
{
    struct pollfd wait = {.fd = h->socket, .events = POLLIN};
    char byte;
    int n = poll(&wait, 1, EVERY);
    if (n == 0 || (n < 0 && errno == EINTR))
        return true;
    return n > 0 && !is_closed(wait.revents) && recv(h->socket, &byte, 1, 0) == 1;
}

__attribute__((noreturn)) static void help(int socket, const char *zpool)
{
    static struct helper h;
    h.socket = socket;
    h.zpool = zpool;
    detach(&h);
    while (answer(&h) && rest(&h))
        ;
    _exit(0);
}

/* --- starting and asking ---------------------------------------------------------------------- */

/* Twice, so that it is not our child, and we need not wait for it; as subreaper we would get it
 * back. */
static bool fork_twice(int theirs, const char *zpool)
{
    int subreaper = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    if (subreaper)
        prctl(PR_SET_CHILD_SUBREAPER, 0);
    pid_t middle = fork();
    if (middle == 0) {
        setsid();
        pid_t pid = fork();
        if (pid == 0)
            help(theirs, zpool);
        _exit(pid < 0);
    }
    int status = 0;
    while (middle > 0 && waitpid(middle, &status, 0) < 0 && errno == EINTR)
        ;
    if (subreaper)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    return middle > 0 && status == 0;
}

int pr_space_helper_start(const struct pr_host *host)
{
    char zpool[PATH_MAX];
    int ends[2];
    /* As PID 1 we would get it back whatever we do, and take it for one of the job. */
    if (getpid() == 1 || !has_zfs(host) || !find_zpool(zpool, sizeof zpool) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    bool started = fork_twice(ends[1], zpool);
    close(ends[1]);
    if (started)
        return ends[0];
    close(ends[0]);
    return -1;
}

void pr_space_helper_ask(int socket)
{
    /* Behind the question comes the end: it ends when it has answered, and that can be seen. */
    send(socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(socket, SHUT_WR);
}

bool pr_space_helper_wait(int socket, int milliseconds)
{
    struct pollfd wait = {.fd =
                              socket}; /* answers of before may lie there: its end is waited for */
    return poll(&wait, 1, milliseconds) > 0;
}
