/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/cgroup has the path of a group, mountinfo where its hierarchy is mounted
 * (cgroup_namespaces(7)). In a container the two agree only after the mount's own root has been
 * taken off the front of the path; a path with ".." in it lies outside of what can be seen. */
#include "source/cgroup_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/fs.h"

static bool in_list(struct pr_scan list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list.p; p < list.end;) {
        const char *comma = memchr(p, ',', (size_t)(list.end - p));
        size_t len = (size_t)((comma ? comma : list.end) - p);
        if (len == n && memcmp(p, name, n) == 0)
            return true;
        p += len + 1;
    }
    return false;
}

/* Is it a mount of the hierarchy of this controller? "" is version 2, NULL is any. */
static bool fits(const struct pr_cgroup_mount *m, const char *controller)
{
    bool v1 = pr_scan_equals(m->type, "cgroup"), v2 = pr_scan_equals(m->type, "cgroup2");
    if (!controller)
        return v1 || v2;
    return *controller ? v1 && in_list(m->options, controller) : v2;
}

bool pr_cgroup_path_of(const char *text, size_t len, const char *controller, char *ret, size_t size)
{
    struct pr_scan s = pr_scan_of(text, len), line;
    while (pr_scan_line(&s, &line)) {
        const char *first = memchr(line.p, ':', (size_t)(line.end - line.p));
        const char *second = first ? memchr(first + 1, ':', (size_t)(line.end - first - 1)) : NULL;
        if (!second)
            continue;
        struct pr_scan list = {first + 1, second}, path = {second + 1, line.end};
        size_t n = (size_t)(path.end - path.p);
        bool ours = *controller ? in_list(list, controller) : list.p == list.end;
        if (!ours || n == 0 || *path.p != '/' || n >= size)
            continue;
        memcpy(ret, path.p, n);
        ret[n] = '\0';
        return true;
    }
    return false;
}

/* --- paths ------------------------------------------------------------------------------------ */

/* What of the path lies below `top`: "", or with its slash; NULL where it does not. */
static const char *below(const char *path, const char *top)
{
    size_t n = strcmp(top, "/") ? strlen(top) : 0;
    if (strncmp(path, top, n) != 0 || (path[n] != '/' && path[n]))
        return NULL;
    return strcmp(path + n, "/") ? path + n : "";
}

static bool goes_up(const char *path)
{
    for (const char *p = path; (p = strstr(p, "/..")); p += 3)
        if (p[3] == '/' || !p[3])
            return true;
    return false;
}

/* As the kernel would write it: one slash in front, one between, none at the end. */
static bool tidy(const char *path, char *ret, size_t size)
{
    size_t n = 0;
    while (*path) {
        size_t len = strcspn(path, "/");
        if (len && n + 1 + len + 1 > size)
            return false;
        if (len) {
            ret[n++] = '/';
            memcpy(ret + n, path, len);
        }
        n += len;
        path += len + (path[len] == '/');
    }
    if (n == 0)
        ret[n++] = '/';
    ret[n] = '\0';
    return !goes_up(ret);
}

static bool link_of(int fd, char *ret, size_t size)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, ret, size - 1);
    ret[n > 0 ? n : 0] = '\0';
    return n > 0 && (size_t)n < size - 1;
}

/* Where a directory below the root really is: "cpu" may be a link to "cpu,cpuacct". */
static bool resolve(const struct pr_host *host, const char *path, char *ret, size_t size)
{
    char root[CGROUP_DIR], real[CGROUP_DIR];
    int fd = openat(host->root, path + 1, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool known = link_of(fd, real, sizeof real) && link_of(host->root, root, sizeof root);
    close(fd);
    const char *rest = known ? below(real, root) : NULL;
    return rest && tidy(rest, ret, size);
}

/* --- places ----------------------------------------------------------------------------------- */

bool pr_cgroup_exists(const struct pr_host *host, const char *dir)
{
    static const char *const files[] = {"cgroup.procs", "tasks"};
    char path[CGROUP_DIR + 32];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        if (faccessat(host->root, path, F_OK, 0) == 0)
            return true;
    }
    return false;
}

/* The place below this mount; false where the mount does not show the path. */
static bool place(const struct pr_host *host, const struct pr_cgroup_mount *m, const char *path,
                  struct pr_cgroup_place *ret)
{
    const char *rest = below(path, m->root), *point = m->point + (*m->point == '/');
    size_t top = strlen(point);
    if (!rest || goes_up(rest) || top + strlen(rest) >= sizeof ret->dir)
        return false;
    snprintf(ret->dir, sizeof ret->dir, "%s%s", point, rest);
    ret->top = top;
    ret->exists = pr_cgroup_exists(host, ret->dir);
    return true;
}

/* One hierarchy may be mounted in several places, with different roots. */
static bool place_anywhere(const struct pr_cgroup_view *v, const char *controller, const char *path,
                           struct pr_cgroup_place *ret)
{
    struct pr_cgroup_place here;
    bool found = false;
    for (size_t i = 0; i < v->mount_count; i++) {
        const struct pr_cgroup_mount *m = &v->mounts[i];
        if (!fits(m, controller) || !place(v->host, m, path, &here) || (found && !here.exists))
            continue;
        *ret = here;
        if (here.exists)
            return true;
        found = true;
    }
    return found;
}

bool pr_cgroup_top(const struct pr_cgroup_view *v, const char *controller,
                   struct pr_cgroup_place *ret)
{
    for (size_t i = 0; i < v->mount_count; i++) {
        struct pr_cgroup_mount m = v->mounts[i];
        m.root = "/";
        if (fits(&m, controller) && place(v->host, &m, "/", ret))
            return true;
    }
    return false;
}

/* The mount that a directory lies below, the innermost where they are nested, and the path of the
 * group in its hierarchy. */
static bool path_of_dir(const struct pr_cgroup_view *v, const char *dir,
                        struct pr_cgroup_mount *ret, char *ret_path, size_t size)
{
    size_t best = 0;
    for (size_t i = 0; i < v->mount_count; i++) {
        const struct pr_cgroup_mount *m = &v->mounts[i];
        const char *rest = below(dir, m->point);
        if (!rest || strlen(m->point) < best || strlen(m->root) + strlen(rest) >= size)
            continue;
        snprintf(ret_path, size, "%s%s", strcmp(m->root, "/") || !*rest ? m->root : "", rest);
        *ret = *m;
        best = strlen(m->point);
    }
    return best > 0;
}

static bool find_named(const struct pr_cgroup_view *v, const char *controller,
                       struct pr_cgroup_place *ret)
{
    char name[CGROUP_DIR], real[CGROUP_DIR], path[CGROUP_DIR];
    struct pr_cgroup_mount m;
    if (!*v->name || !tidy(v->name, name, sizeof name))
        return false;
    bool is_dir = *v->name == '/' && (path_of_dir(v, name, &m, path, sizeof path) ||
                                      (resolve(v->host, name, real, sizeof real) &&
                                       path_of_dir(v, real, &m, path, sizeof path)));
    if (is_dir && (!controller || fits(&m, controller)))
        return place(v->host, &m, path, ret);
    if (!controller && place_anywhere(v, "", name, ret) && ret->exists)
        return true;
    return place_anywhere(v, controller, is_dir ? path : name, ret);
}

bool pr_cgroup_find(const struct pr_cgroup_view *v, const char *controller,
                    struct pr_cgroup_place *ret)
{
    char path[CGROUP_DIR];
    if (v->name)
        return find_named(v, controller, ret);
    return pr_cgroup_path_of(v->groups, v->groups_len, controller, path, sizeof path) &&
           place_anywhere(v, controller, path, ret);
}

bool pr_cgroup_is_v1(const struct pr_cgroup_view *v, const char *controller)
{
    char path[CGROUP_DIR];
    return *controller && v->groups &&
           pr_cgroup_path_of(v->groups, v->groups_len, controller, path, sizeof path);
}

/* --- views ------------------------------------------------------------------------------------ */

/* A job may go to another group at any moment; we do not. */
static int read_groups(struct pr_cgroup_view *v, pid_t pid)
{
    char file[32];
    snprintf(file, sizeof file, "%d/cgroup", (int)pid);
    return pid == getpid() && !v->host->foreign
               ? pr_host_slurp(v->host, KEPT_OWN_GROUPS, file, &v->groups, &v->groups_len)
               : pr_fs_slurp(v->host->proc, file, &v->groups, &v->groups_len);
}

/* In place: it gets no longer, and a blank stands behind it. */
static const char *unescaped(struct pr_cgroup_view *v, struct pr_scan s)
{
    char *text = v->table + (s.p - v->table);
    pr_mount_unescape(s, text, (size_t)(s.end - s.p) + 1);
    return text;
}

static bool add_mount(struct pr_cgroup_view *v, size_t *room, const struct pr_cgroup_mount *m)
{
    if (v->mount_count == *room) {
        *room = *room ? *room * 2 : 16;
        struct pr_cgroup_mount *more = realloc(v->mounts, *room * sizeof *more);
        if (!more)
            return false;
        v->mounts = more;
    }
    v->mounts[v->mount_count++] = *m;
    return true;
}

/* Each controller is looked for among them: what is something else is left out once. */
static int read_mounts(struct pr_cgroup_view *v)
{
    static const char word[] = " - cgroup";
    struct pr_mount found;
    size_t len, room = 0;
    int r = pr_mount_table(v->host, &v->table, &len);
    if (r < 0)
        return r;
    struct pr_scan s = pr_scan_of(v->table, len), line;
    while (pr_scan_line(&s, &line)) {
        if (!memmem(line.p, (size_t)(line.end - line.p), word, sizeof word - 1) ||
            !pr_mount_next(&line, &found))
            continue;
        struct pr_cgroup_mount m = {found.type, found.options, unescaped(v, found.root),
                                    unescaped(v, found.point)};
        if (fits(&m, NULL) && !add_mount(v, &room, &m))
            return -ENOMEM;
    }
    return 0;
}

int pr_cgroup_view_open(struct pr_cgroup_view *v, const struct pr_host *host, pid_t pid,
                        const char *name)
{
    *v = (struct pr_cgroup_view){.host = host, .name = name};
    int r = name ? 0 : read_groups(v, pid);
    if (r == 0)
        r = read_mounts(v);
    if (r < 0)
        pr_cgroup_view_close(v);
    return r;
}

int pr_cgroup_view_of(struct pr_cgroup_view *v, const struct pr_host *host, const char *groups,
                      size_t len)
{
    *v = (struct pr_cgroup_view){.host = host, .groups = malloc(len + 1), .groups_len = len};
    if (v->groups)
        memcpy(v->groups, groups, len); /* any bytes: there may be a 0 among them */
    int r = v->groups ? read_mounts(v) : -ENOMEM;
    if (r < 0)
        pr_cgroup_view_close(v);
    return r;
}

void pr_cgroup_view_close(struct pr_cgroup_view *v)
{
    free(v->table);
    free(v->mounts);
    free(v->groups);
    v->table = v->groups = NULL;
    v->mounts = NULL;
    v->mount_count = 0;
}

static bool dir_of(const struct pr_host *host, pid_t pid, const char *name, const char *controller,
                   char *ret_dir, size_t size)
{
    struct pr_cgroup_view v;
    struct pr_cgroup_place p;
    if (pr_cgroup_view_open(&v, host, pid, name) < 0)
        return false;
    bool found = pr_cgroup_find(&v, controller, &p) && p.exists && strlen(p.dir) < size;
    if (found)
        snprintf(ret_dir, size, "%s", p.dir);
    pr_cgroup_view_close(&v);
    return found;
}

bool pr_cgroup_dir(const struct pr_host *host, pid_t pid, const char *controller, char *ret_dir,
                   size_t size)
{
    return dir_of(host, pid, NULL, controller, ret_dir, size);
}

bool pr_cgroup_named(const struct pr_host *host, const char *name, const char *controller,
                     char *ret_dir, size_t size)
{
    return dir_of(host, 0, name, controller, ret_dir, size);
}
