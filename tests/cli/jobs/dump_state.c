/* SPDX-License-Identifier: Apache-2.0 */
/* dump_state FILE: everything that a process inherits, as text, for a comparison byte by byte. All
 * of it is gathered before FILE is opened, so that the file is not in it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FDS 1024

static char text[256 * 1024];
static size_t len;

#define SAY(...) (len += (size_t)snprintf(text + len, sizeof text - len, __VA_ARGS__))

static void descriptors(void)
{
    for (int fd = 0; fd < FDS; fd++) {
        struct stat st = {0};
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0)
            continue;
        fstat(fd, &st);
        SAY("fd %d flags %d status %d type %o device %lu:%lu\n", fd, flags, fcntl(fd, F_GETFL),
            (unsigned)(st.st_mode & S_IFMT), (unsigned long)st.st_dev, (unsigned long)st.st_ino);
    }
}

static void signals(void)
{
    sigset_t mask, pending;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigpending(&pending);
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction action;
        if (sigaction(sig, NULL, &action) < 0)
            continue;
        SAY("signal %d %s%s%s flags %x\n", sig,
            action.sa_handler == SIG_IGN   ? "ignored"
            : action.sa_handler == SIG_DFL ? "default"
                                           : "handled",
            sigismember(&mask, sig) ? " blocked" : "", sigismember(&pending, sig) ? " pending" : "",
            (unsigned)action.sa_flags);
    }
}

static void limits(void)
{
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit limit = {0};
        getrlimit((__rlimit_resource_t)i, &limit);
        SAY("limit %d %lx %lx\n", i, (unsigned long)limit.rlim_cur, (unsigned long)limit.rlim_max);
    }
}

static void one_file(const char *path)
{
    char value[4096];
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, value, sizeof value);
    close(fd);
    SAY("%s %.*s\n", path, n > 0 ? (int)n : 0, value);
}

static void scheduling(void)
{
    cpu_set_t cpus;
    memset(&cpus, 0, sizeof cpus);
    sched_getaffinity(0, sizeof cpus, &cpus);
    SAY("nice %d scheduler %d ioprio %ld cpus", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0),
        syscall(SYS_ioprio_get, 1, 0));
    for (int i = 0; i < 64; i++)
        SAY("%d", CPU_ISSET(i, &cpus) ? 1 : 0);
    SAY("\n");
}

static void oddities(void)
{
    int subreaper = -1, deathsig = -1;
    prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    prctl(PR_GET_PDEATHSIG, &deathsig);
    SAY("subreaper %d pdeathsig %d dumpable %d no_new_privs %d slack %d personality %x\n",
        subreaper, deathsig, prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
        prctl(PR_GET_TIMERSLACK), (unsigned)personality(0xffffffff));
    SAY("ids %d %d %d %d\n", getuid(), geteuid(), getgid(), getegid());
}

int main(int argc, char **argv)
{
    char cwd[4096];
    mode_t mask = umask(0);
    umask(mask);
    descriptors();
    signals();
    limits();
    scheduling();
    oddities();
    SAY("umask %o cwd %s\n", (unsigned)mask, getcwd(cwd, sizeof cwd) ? cwd : "?");
    one_file("/proc/self/oom_score_adj");
    one_file("/proc/self/cgroup");
    for (int i = 0; i < argc; i++)
        SAY("arg %s\n", argv[i]);
    for (char **e = environ; *e; e++)
        if (strncmp(*e, "PROCTOR_", 8) != 0)
            SAY("env %s\n", *e);
    int out = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    return out >= 0 && write(out, text, len) == (ssize_t)len ? 0 : 99;
}
