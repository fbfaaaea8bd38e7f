/* SPDX-License-Identifier: Apache-2.0 */
/* Where run files are, and how one is made: never over another, and never over what SQLite would
 * take for a part of it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/own_files.h"
#include "core/run_file.h"
#include "util/text.h"

#define NAMES_TRIED 10000
#define NAME_BYTES  100 /* of an id or a node, in a file's name */

/* What SQLite keeps beside a database. */
static const char *const beside[] = {"-wal", "-shm", "-journal"};
#define BESIDE (sizeof beside / sizeof *beside)

bool pr_run_folder(char *text, size_t size)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"PROCTOR_HOME", "/runs"},
                  {"XDG_STATE_HOME", "/proctor/runs"},
                  {"HOME", "/.local/state/proctor/runs"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *value = getenv(places[i].variable);
        if (value && *value)
            return snprintf(text, size, "%s%s", value, places[i].below) < (int)size;
    }
    return false;
}

/* What RUN would take for something else is none either. */
bool pr_run_id_is_good(const char *id)
{
    size_t len = strlen(id), ending = strlen(RUN_FILE_ENDING);
    if (!len || len > NAME_BYTES || *id == '.' || *id == '-' || strchr(id, '/') ||
        strcmp(id, "last") == 0 ||
        (len >= ending && strcmp(id + len - ending, RUN_FILE_ENDING) == 0))
        return false;
    struct pr_buf safe = {0};
    pr_text_safe(&safe, id);
    bool same = strcmp(pr_buf_text(&safe), id) == 0;
    pr_buf_done(&safe);
    return same;
}

static bool is_plain(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static const char *name_beside(const char *path, size_t i, char *text, size_t size)
{
    snprintf(text, size, "%s%s", path, beside[i]);
    return text;
}

void pr_run_file_remove_beside(const char *path)
{
    char other[PATH_MAX + 16];
    for (size_t i = 0; i < BESIDE; i++)
        if (is_plain(name_beside(path, i, other, sizeof other)))
            unlink(other);
}

int pr_run_file_remove(const char *path)
{
    pr_run_file_remove_beside(path);
    return unlink(path) < 0 ? -errno : 0;
}

/* A journal that another database has left would be played back into a new one of its name. */
static bool has_leftovers(const char *path)
{
    char other[PATH_MAX + 16];
    for (size_t i = 0; i < BESIDE; i++)
        if (is_plain(name_beside(path, i, other, sizeof other)))
            return true;
    return false;
}

static int create(const char *path)
{
    if (has_leftovers(path))
        return -EEXIST;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

/* Is somebody at work on it, as far as locks tell? */
static bool is_recorded(const char *path)
{
    struct pr_own_file *file = NULL;
    bool held = false;
    if (pr_own_file_read(path, &file, &held) < 0)
        return false;
    pr_own_file_done(file);
    return held;
}

/* What is in the way goes, where that was asked for. */
static int make_way(const char *path, struct proctor_error *err)
{
    if (is_recorded(path))
        return pr_error(
            err, EBUSY,
            "--output: '%s' is being recorded just now; --force does not overwrite that", path);
    int r = pr_run_file_remove(path);
    return r < 0 && r != -ENOENT ? pr_error(err, -r, "--output: %s: '%s'", strerror(-r), path) : 0;
}

static int create_named(const struct pr_run_name *name, struct proctor_error *err)
{
    struct stat st;
    if (strcmp(name->path, "-") == 0 || !*name->path)
        return pr_error(err, EINVAL, "--output: '%s' cannot be a run file: name a file",
                        name->path);
    if (stat(name->path, &st) == 0 && !S_ISREG(st.st_mode))
        return pr_error(err, EEXIST, "--output: '%s' is no file that could be overwritten",
                        name->path);
    bool there = lstat(name->path, &st) == 0; /* a link to nothing, too */
    int r = name->force && (there || has_leftovers(name->path)) ? make_way(name->path, err) : 0;
    if (r < 0)
        return r;
    int fd = create(name->path);
    if (fd == -EEXIST)
        return pr_error(err, EEXIST,
                        there ? "--output: '%s' is there already; --force overwrites it"
                              : "--output: beside '%s' is what a database of that name has left; "
                                "--force removes it",
                        name->path);
    return fd < 0 ? pr_error(err, -fd, "--output: %s: '%s'", strerror(-fd), name->path) : fd;
}

/* Each folder that is missing, for its owner alone. */
static int make_folder(char *path)
{
    for (char *slash = path + 1; *slash; slash++) {
        if (*slash != '/')
            continue;
        *slash = '\0';
        mkdir(path, 0700); /* where that fails the last one does, too */
        *slash = '/';
    }
    return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* What can be a part of a file's name. */
static void put_name(char *to, const char *text)
{
    snprintf(to, NAME_BYTES + 1, "%s", text);
    for (char *p = to; *p; p++)
        if (*p == '/' || (p == to && (*p == '.' || *p == '-')))
            *p = '_';
}

static int create_in_folder(const struct pr_run_name *name, char *path, size_t size,
                            struct proctor_error *err)
{
    char folder[PATH_MAX], id[NAME_BYTES + 1], node[NAME_BYTES + 1] = "", number[16] = "";
    if (!pr_run_folder(folder, sizeof folder - 2 * NAME_BYTES - 32))
        return pr_error(err, ENOENT, "there is no folder for it: set HOME or PROCTOR_HOME");
    int fd = make_folder(folder);
    put_name(id, name->id);
    if (name->node)
        put_name(node, name->node);
    for (int i = 1; fd >= 0 && i < NAMES_TRIED; i++) {
        snprintf(path, size, "%s/%s%s%s%s" RUN_FILE_ENDING, folder, id, *node ? "." : "", node,
                 number);
        fd = create(path);
        if (fd != -EEXIST)
            break;
        snprintf(number, sizeof number, ".%d", i + 1);
        fd = i + 1 < NAMES_TRIED ? 0 : -EEXIST;
    }
    return fd < 0 ? pr_error(err, -fd, "%s: '%s'", strerror(-fd), folder) : fd;
}

int pr_run_file_create(const struct pr_run_name *name, char *ret_path, size_t size,
                       struct proctor_error *err)
{
    char path[PATH_MAX + NAME_BYTES], whole[PATH_MAX];
    int fd = name->path ? create_named(name, err) : create_in_folder(name, path, sizeof path, err);
    if (fd < 0)
        return fd;
    const char *made = name->path ? name->path : path;
    int code = realpath(made, whole) ? 0 : errno;
    if (code == 0)
        code = strlen(whole) < size ? -pr_own_file_record(fd) : ENAMETOOLONG;
    if (code == 0) {
        memcpy(ret_path, whole, strlen(whole) + 1);
        return fd;
    }
    close(fd);
    unlink(made);
    return pr_error(err, code, "%s: '%s'", strerror(code), made);
}
