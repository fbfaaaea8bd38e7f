/* SPDX-License-Identifier: Apache-2.0 */
#include "core/own_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fs.h"

struct pr_own_file {
    struct pr_own_file *next;
    dev_t dev;
    ino_t ino;
    int fd, uses;
    bool recorded; /* by this process */
};

static struct pr_own_file *files;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- a forked child has no locks, and nothing to lose ----------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

/* Descriptors are left to whom the handles are of. */
static void in_child(void)
{
    while (files) {
        struct pr_own_file *f = files;
        files = f->next;
        free(f);
    }
    pthread_mutex_unlock(&lock);
}

static void prepare(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static void enter(void)
{
    pthread_once(&once, prepare);
    pthread_mutex_lock(&lock);
}

/* --- under the lock --------------------------------------------------------------------------- */

static struct pr_own_file *find(const struct stat *st)
{
    struct pr_own_file *f = files;
    while (f && (f->dev != st->st_dev || f->ino != st->st_ino))
        f = f->next;
    return f;
}

static struct pr_own_file *add(const struct stat *st, int fd)
{
    struct pr_own_file *f = malloc(sizeof *f);
    if (f) {
        *f = (struct pr_own_file){.next = files, .dev = st->st_dev, .ino = st->st_ino, .fd = fd};
        files = f;
    }
    return f;
}

static void release(struct pr_own_file *f)
{
    struct pr_own_file **at = &files;
    while (*at && *at != f)
        at = &(*at)->next;
    if (!*at || --f->uses)
        return;
    *at = f->next;
    close(f->fd);
    free(f);
}

static bool is_held(const struct pr_own_file *f)
{
    if (f->recorded)
        return true;
    if (flock(f->fd, LOCK_SH | LOCK_NB) < 0)
        return true;
    flock(f->fd, LOCK_UN);
    return false;
}

/* A descriptor with O_PATH is none in the eyes of locks: closing it costs nothing. */
static int open_whole(int place, const struct stat *st, struct pr_own_file **ret)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/self/fd/%d", place);
    int fd = pr_fs_open(AT_FDCWD, path);
    if (fd < 0)
        return fd;
    *ret = add(st, fd);
    if (*ret)
        return 0;
    close(fd);
    return -ENOMEM;
}

/* --- */

int pr_own_file_read(const char *path, struct pr_own_file **ret, bool *ret_held)
{
    struct stat st;
    enter();
    int place = open(path, O_PATH | O_CLOEXEC);
    int code = place < 0 || fstat(place, &st) < 0 ? -errno
               : S_ISDIR(st.st_mode)              ? -EISDIR
               : !S_ISREG(st.st_mode)             ? -EMEDIUMTYPE
                                                  : 0;
    struct pr_own_file *f = code == 0 ? find(&st) : NULL;
    if (code == 0 && !f)
        code = open_whole(place, &st, &f);
    if (code == 0) {
        f->uses++;
        *ret_held = is_held(f);
        *ret = f;
    }
    if (place >= 0)
        close(place);
    pthread_mutex_unlock(&lock);
    return code;
}

int pr_own_file_fd(const struct pr_own_file *f)
{
    return f->fd;
}

void pr_own_file_done(struct pr_own_file *f)
{
    enter();
    release(f);
    pthread_mutex_unlock(&lock);
}

int pr_own_file_record(int fd)
{
    struct stat st;
    int code = fstat(fd, &st) < 0 ? -errno : 0;
    enter();
    struct pr_own_file *f = code == 0 ? add(&st, fd) : NULL;
    if (f) {
        f->uses = 1;
        f->recorded = true;
    }
    pthread_mutex_unlock(&lock);
    return code < 0 ? code : f ? 0 : -ENOMEM;
}

void pr_own_file_close(int fd)
{
    enter();
    struct pr_own_file *f = files;
    while (f && (f->fd != fd || !f->recorded))
        f = f->next;
    if (f) {
        f->recorded = false;
        flock(fd, LOCK_UN); /* whoever reads it here keeps the descriptor */
        release(f);
    } else {
        close(fd);
    }
    pthread_mutex_unlock(&lock);
}
