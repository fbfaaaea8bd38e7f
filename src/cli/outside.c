/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/outside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/stat_line.h"
#include "util/fs.h"
#include "util/scan.h"

void pr_outside_plug_holes(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
            return;
}

static void add_fd(struct pr_outside *o, int fd)
{
    int *fds = realloc(o->fds, (o->fd_count + 1) * sizeof *fds);
    if (!fds)
        return; /* one descriptor more stays open */
    o->fds = fds;
    fds[o->fd_count++] = fd;
}

/* A log or a terminal is often a local socket. */
static bool may_be_tcp(int fd)
{
    int domain = AF_UNIX;
    socklen_t size = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain != AF_UNIX;
}

/* As a rule it is these three, and the kernel says how many there are (Linux 6.2): to list them
 * costs ten times as much. */
static bool only_standard(void)
{
    struct stat st;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            return false;
    return stat("/proc/self/fd", &st) == 0 && st.st_size == STDERR_FILENO + 1;
}

static void look_at_fds(struct pr_outside *o)
{
    bool standard = only_standard();
    for (int fd = STDIN_FILENO; standard && fd <= STDERR_FILENO; fd++)
        o->has_sockets |= may_be_tcp(fd);
    if (standard)
        return;
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    o->has_sockets = !dir;
    while (dir && (entry = readdir(dir))) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.')
            continue;
        o->has_sockets |= may_be_tcp(fd);
        if (fd > 2 && fd != dirfd(dir))
            add_fd(o, fd);
    }
    if (dir)
        closedir(dir);
}

static void look_at_children(struct pr_outside *o)
{
    char *text = NULL, path[64];
    size_t len;
    uint64_t pid;
    siginfo_t info;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD)
        return; /* as a rule there are none, and asking costs less than reading */
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    if (pr_fs_slurp(AT_FDCWD, path, &text, &len) < 0)
        return;
    struct pr_scan s = pr_scan_of(text, len);
    while (pr_scan_u64(&s, &pid)) {
        pid_t *children = realloc(o->children, (o->child_count + 1) * sizeof *children);
        if (!children)
            break;
        o->children = children;
        children[o->child_count++] = (pid_t)pid;
    }
    free(text);
}

void pr_outside_look(struct pr_outside *o)
{
    look_at_fds(o);
    look_at_children(o);
}

void pr_outside_let_go(struct pr_outside *o)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++)
        if (null < 0 || dup3(null, fd, O_CLOEXEC) < 0)
            close(fd);
    if (null >= 0)
        close(null);
    for (size_t i = 0; i < o->fd_count; i++)
        close(o->fds[i]);
    o->fd_count = 0;
}

/* How many entries at its beginning are not borrowed. */
#define ENVIRONMENT_OWN 2

char **pr_outside_environment(const char *run_id, const char *socket, size_t more)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **result = calloc(count + ENVIRONMENT_OWN + more + 1, sizeof *result);
    if (!result || asprintf(&result[kept++], "PROCTOR_RUN_ID=%s", run_id) < 0) {
        free(result);
        return NULL;
    }
    if (*socket && asprintf(&result[kept], "PROCTOR_SOCKET=%s", socket) < 0)
        result[kept] = NULL;
    kept += result[kept] != NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "PROCTOR_", 8) != 0 ||
            strncmp(environ[i], "PROCTOR_HOME=", 13) == 0)
            result[kept++] = environ[i];
    return result;
}

int pr_outside_raise_limit(void)
{
    struct rlimit limit;
    const int most = HOST_HOLD_MOST, spare = 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    if (limit.rlim_cur > (rlim_t)(most + spare))
        return most;
    return limit.rlim_cur > spare ? (int)limit.rlim_cur - spare : 1;
}

int pr_outside_check_root(const struct pr_host *host, pid_t pid, struct proctor_error *err)
{
    char path[32], text[1024];
    struct pr_stat_line line;
    if (!host->foreign) /* it shows us, so it shows our children */
        return 0;
    snprintf(path, sizeof path, "%d/stat", (int)pid);
    ssize_t n = pr_fs_read(host->proc, path, text, sizeof text);
    if (n > 0 && pr_stat_line_parse(text, (size_t)n, &line) && line.ppid == getpid())
        return 0;
    if (n < 0 && n != -ENOENT && n != -ESRCH)
        return pr_error(err, (int)-n, "cannot read /proc/%s: %s", path, strerror((int)-n));
    return pr_error(err, EINVAL,
                    "/proc under the root is not of this pid namespace and does not show what is "
                    "started here; mount one that is, or use attach");
}

void pr_outside_die_of(int sig)
{
    sigset_t one;
    struct rlimit none = {0, 0};
    if (getpid() == 1)
        return;
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0); /* a core pattern that is a pipe does not ask for the limit */
    signal(sig, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, sig);
    kill(getpid(), sig);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

void pr_outside_done(struct pr_outside *o, char **environment)
{
    for (size_t i = 0; environment && environment[i] && i < ENVIRONMENT_OWN; i++)
        if (strncmp(environment[i], "PROCTOR_RUN_ID=", 15) == 0 ||
            strncmp(environment[i], "PROCTOR_SOCKET=", 15) == 0)
            free(environment[i]);
    free(environment);
    free(o->fds);
    free(o->children);
}
