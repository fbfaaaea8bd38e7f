/* SPDX-License-Identifier: Apache-2.0 */
#include "util/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/scan.h"

/* Which of our descriptors the path names; -1 for none. */
static int own_descriptor(const char *path)
{
    static const struct {
        const char *name;
        int fd; /* -1: a number follows */
    } names[] = {{"-", STDOUT_FILENO},           {"/dev/stdout", STDOUT_FILENO},
                 {"/dev/stderr", STDERR_FILENO}, {"/dev/fd/", -1},
                 {"/proc/self/fd/", -1},         {"/proc/thread-self/fd/", -1}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct pr_scan s = pr_scan_of(path, strlen(path));
        uint64_t fd;
        if (!pr_scan_prefix(&s, names[i].name))
            continue;
        if (names[i].fd >= 0 && s.p == s.end)
            return names[i].fd;
        if (names[i].fd < 0 && pr_scan_u64(&s, &fd) && s.p == s.end && fd < 1 << 20)
            return (int)fd;
    }
    return -1;
}

/* A standard descriptor that closes on exec is our own stand-in for one that was closed. */
static int duplicate(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || (fd <= STDERR_FILENO && (flags & FD_CLOEXEC)))
        return -EBADF;
    fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return fd < 0 ? -errno : fd;
}

int pr_output_open(const char *path)
{
    struct stat st;
    int own = own_descriptor(path);
    if (own >= 0)
        return duplicate(own);
    bool fifo = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
    int flags = fifo ? O_NONBLOCK : O_CREAT | O_TRUNC;
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | flags, 0666);
    if (fd < 0)
        return -errno;
    if (fifo)
        fcntl(fd, F_SETFL, O_WRONLY);
    return fd;
}

int pr_output_open_late(const char *path)
{
    const double step = 0.01, seconds = 0.2;
    int fd = pr_output_open(path);
    for (double waited = 0; fd == -ENXIO && waited < seconds; waited += step) {
        usleep((useconds_t)(step * 1e6));
        fd = pr_output_open(path);
    }
    return fd;
}

bool pr_output_is_plain(const char *path)
{
    struct stat st;
    if (own_descriptor(path) >= 0)
        return false;
    return stat(path, &st) < 0 || S_ISREG(st.st_mode);
}
