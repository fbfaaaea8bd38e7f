/* SPDX-License-Identifier: Apache-2.0 */
#include "util/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/buf.h"

#define SLURP_MOST (64 * 1024 * 1024) /* more than this is not a file that we want */

int pr_fs_open(int dirfd, const char *path)
{
    /* A captured tree may have a fifo where a file should be: nobody may ever write to it. */
    int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static ssize_t pread_text(int fd, char *text, size_t size, bool in_pieces)
{
    size_t len = 0;
    while (len + 1 < size) {
        ssize_t n = pread(fd, text + len, size - 1 - len, (off_t)len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        len += (size_t)n;
        /* Most kernel files come whole in one read if the buffer holds them: a short read is the
         * end, and asking again would cost as much as the first time. */
        if (n == 0 || (!in_pieces && len + 1 < size))
            break;
    }
    text[len] = '\0';
    return (ssize_t)len;
}

ssize_t pr_fs_pread(int fd, char *text, size_t size)
{
    return pread_text(fd, text, size, false);
}

ssize_t pr_fs_pread_long(int fd, char *text, size_t size)
{
    ssize_t n = pread_text(fd, text, size, true);
    if (n < 0 || (size_t)n + 1 < size)
        return n;
    const char *newline = memrchr(text, '\n', (size_t)n);
    return newline ? newline + 1 - text : 0;
}

ssize_t pr_fs_read(int dirfd, const char *path, char *text, size_t size)
{
    int fd = pr_fs_open(dirfd, path);
    if (fd < 0)
        return fd;
    ssize_t n = pr_fs_pread(fd, text, size);
    close(fd);
    return n;
}

int pr_fs_slurp(int dirfd, const char *path, char **ret_text, size_t *ret_len)
{
    int fd = pr_fs_open(dirfd, path);
    if (fd < 0)
        return fd;
    struct pr_buf b = {0};
    ssize_t n = 1;
    while (n > 0 && b.len < SLURP_MOST && pr_buf_reserve(&b, 4096)) {
        n = read(fd, b.data + b.len, b.cap - b.len - 1);
        if (n > 0)
            b.len += (size_t)n;
        else if (n < 0 && errno == EINTR)
            n = 1;
    }
    int r = n < 0 ? -errno : b.failed ? -ENOMEM : b.len >= SLURP_MOST ? -EFBIG : 0;
    close(fd);
    if (r < 0) {
        pr_buf_done(&b);
        return r;
    }
    b.data[b.len] = '\0';
    *ret_text = b.data;
    *ret_len = b.len;
    return 0;
}

static bool list_piece(const char *room, ssize_t n, bool (*each)(void *of, const char *name),
                       void *of)
{
    for (ssize_t at = 0; at < n;) {
        const struct dirent64 *entry = (const void *)(room + at);
        const char *name = entry->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !each(of, name))
            return false;
        at += entry->d_reclen;
    }
    return true;
}

int pr_fs_list(int dirfd, const char *path, char *room, size_t size,
               bool (*each)(void *of, const char *name), void *of)
{
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n;
    while ((n = getdents64(fd, room, size)) > 0 && list_piece(room, n, each, of))
        ;
    int r = n < 0 ? -errno : 0;
    close(fd);
    return r;
}

/* Somebody made it non-blocking; we are meant to wait. */
static bool wait_writable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    return poll(&wait, 1, -1) >= 0 || errno == EINTR;
}

int pr_fs_write(int fd, const char *data, size_t len, size_t *ret_done)
{
    *ret_done = 0;
    while (*ret_done < len) {
        ssize_t n = write(fd, data + *ret_done, len - *ret_done);
        if (n < 0 && (errno == EINTR || (errno == EAGAIN && wait_writable(fd))))
            continue;
        if (n < 0)
            return -errno;
        *ret_done += (size_t)n;
    }
    return 0;
}

bool pr_fs_write_soon(int fd, const char *data, size_t len, int milliseconds)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    size_t done;
    if (poll(&wait, 1, milliseconds) <= 0 || !(wait.revents & POLLOUT))
        return false;
    return pr_fs_write(fd, data, len, &done) == 0;
}
