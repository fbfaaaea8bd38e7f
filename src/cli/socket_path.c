/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "util/fs.h"

#define LOOKS_MOST 100 /* at old sockets */
#define OLD        10  /* seconds: a younger one may be about to be listened on */

/* Ours, closed to everybody else, and (-EACCES) open to ourselves. */
static int check(const char *path, bool shut)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    if (st.st_uid != geteuid() || (shut && (st.st_mode & 077)))
        return -EPERM;
    return shut && (st.st_mode & 0700) != 0700 ? -EACCES : 0;
}

static int make(const char *path)
{
    int r = check(path, true); /* as a rule it is there */
    if (r == -ENOENT) {
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return -errno;
        r = check(path, true);
    }
    /* A umask may have taken owner's bits from the one that we made, now or in an earlier run. A
     * link that somebody puts there meanwhile is not followed. */
    if (r == -EACCES)
        r = fchmodat(AT_FDCWD, path, 0700, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : check(path, true);
    if (r < 0)
        return r;
    /* No socket can be made in it where its file system is read-only. */
    bool can = faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0;
    return can || (errno != EROFS && errno != EACCES) ? 0 : -errno;
}

/* base has it all; below base a directory "proctor". private: base is ours to make. */
static int below(char *path, size_t size, const char *base, bool private, size_t name_len)
{
    int n = snprintf(path, size, "%s/proctor", base);
    if (n < 0 || (size_t)n + 1 + name_len + 1 > sizeof((struct sockaddr_un *)0)->sun_path)
        return -ENAMETOOLONG;
    int r = private ? make(base) : check(base, false);
    return r < 0 ? r : make(path);
}

int pr_socket_directory(char *path, size_t size, size_t name_len)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
    const char *const places[] = {temporary, "/tmp"};
    char base[512];
    int r = -ENOENT;
    if (runtime && *runtime == '/' && (r = below(path, size, runtime, false, name_len)) == 0)
        return 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!places[i] || *places[i] != '/')
            continue;
        int n = snprintf(base, sizeof base, "%s/proctor-%u", places[i], (unsigned)geteuid());
        r = n < (int)sizeof base ? below(path, size, base, true, name_len) : -ENAMETOOLONG;
        if (r == 0)
            return 0;
    }
    return r;
}

/* Nobody listens on it, and nobody is about to. */
static bool is_dead(const struct sockaddr_un *address)
{
    struct stat st;
    if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
        time(NULL) - st.st_mtime < OLD)
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 &&
                errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return dead;
}

struct tidying {
    const char *directory;
    int looks;
};

static bool tidy_one(void *of, const char *name)
{
    struct tidying *t = of;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t size = sizeof address.sun_path, len = strlen(name);
    bool good = len >= 5 && strcmp(name + len - 5, ".sock") == 0 &&
                (size_t)snprintf(address.sun_path, size, "%s/%s", t->directory, name) < size;
    if (good && is_dead(&address))
        unlink(address.sun_path);
    return ++t->looks < LOOKS_MOST;
}

void pr_socket_tidy(const char *directory)
{
    _Alignas(16) char room[4096];
    struct tidying t = {.directory = directory};
    if (check(directory, true) == 0) /* it may be another one by now */
        pr_fs_list(AT_FDCWD, directory, room, sizeof room, tidy_one, &t);
}
