/* SPDX-License-Identifier: Apache-2.0 */
#include "store/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fs.h"

#define COPY_NAME "run.proctor"

/* What may be there in the end: SQLite adds an index. */
static const char *const endings[] = {"", "-wal", "-shm"};

static bool log_of(const char *path, char *text, size_t size)
{
    return snprintf(text, size, "%s-wal", path) < (int)size;
}

bool pr_copy_may_help(const char *path, int code)
{
    char log[4096];
    struct stat st;
    bool refused =
        code == -ENOENT || code == -EACCES || code == -EROFS || code == -EPERM || code == -EIO;
    return refused && log_of(path, log, sizeof log) && stat(log, &st) == 0 && st.st_size > 0;
}

static bool copy_bytes(int from, int to)
{
    static const size_t piece = 1 << 20;
    char *room = malloc(piece);
    ssize_t n = room ? 1 : -1;
    size_t done;
    for (off_t at = 0; n > 0; at += (off_t)done) {
        done = 0;
        n = pread(from, room, piece, at);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0 && pr_fs_write(to, room, (size_t)n, &done) < 0)
            n = -1;
    }
    free(room);
    return n == 0;
}

static bool copy_file(int from, const char *to)
{
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = out >= 0 && copy_bytes(from, out);
    if (out >= 0)
        good &= close(out) == 0;
    return good;
}

static bool copy_log(const char *from, const char *to)
{
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && copy_file(fd, to);
    if (fd >= 0)
        close(fd);
    return good;
}

bool pr_copy_make(int fd, const char *path, char *ret_folder, size_t folder_size, char *ret_copy,
                  size_t size)
{
    const char *temporary = getenv("TMPDIR");
    char log[4096], copied_log[4096];
    if (!temporary || strlen(temporary) + 24 > folder_size)
        temporary = "/tmp";
    snprintf(ret_folder, folder_size, "%s/proctor-read-XXXXXX", temporary);
    if (!mkdtemp(ret_folder)) {
        *ret_folder = '\0';
        return false;
    }
    snprintf(ret_copy, size, "%s/" COPY_NAME, ret_folder);
    if (log_of(path, log, sizeof log) && log_of(ret_copy, copied_log, sizeof copied_log) &&
        copy_file(fd, ret_copy) && copy_log(log, copied_log))
        return true;
    pr_copy_remove(ret_folder);
    *ret_folder = '\0';
    return false;
}

void pr_copy_remove(const char *folder)
{
    char path[4096];
    if (!*folder)
        return;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        snprintf(path, sizeof path, "%s/" COPY_NAME "%s", folder, endings[i]);
        unlink(path);
    }
    rmdir(folder);
}
