/* SPDX-License-Identifier: Apache-2.0 */
/* Space of local file systems, each device once, as df(1) has it, and of ZFS pools, which a helper
 * of the command asks for (core/space.h). */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/machine.h"
#include "source/local_mounts.h"
#include "source/mountinfo.h"
#include "source/zpool.h"
#include "util/clock.h"
#include "util/fs.h"

#define FAILURES_MOST 2
#define LIST_AGAIN    (10 * NS_PER_S) /* where the kernel does not tell of new mounts */

struct volume {
    char *point; /* NULL for a pool */
    char name[DEVICE_NAME];
    long long id; /* f_fsid */
    double total, used, free;
};

struct volumes {
    struct volume *items;
    size_t count, cap;
};

struct space {
    struct pr_host *host; /* borrowed */
    struct volumes mounts, pools;
    int watch;                  /* held mountinfo: tells when it has changed; -1 for none */
    uint64_t seen;              /* hash of the table */
    int64_t read_at, listed_at; /* boot times, 0 for never */
    bool heard;                 /* the helper has answered, or never will */
    int failures;               /* of zpool, one after the other */
    bool lost;                  /* one that answered does not any more: another may */
    int failure;                /* -errno of the last mount that did not answer */
};

static struct volume *add(struct volumes *v)
{
    if (v->count == v->cap) {
        size_t cap = v->cap ? v->cap * 2 : 8;
        struct volume *items = realloc(v->items, cap * sizeof *items);
        if (!items)
            return NULL;
        v->items = items;
        v->cap = cap;
    }
    struct volume *new = &v->items[v->count++];
    memset(new, 0, sizeof *new);
    return new;
}

static void clear(struct volumes *v)
{
    for (size_t i = 0; i < v->count; i++)
        free(v->items[i].point);
    v->count = 0;
}

/* --- mounted file systems --------------------------------------------------------------------- */

static int measure(struct space *s, struct volume *v, const char *point)
{
    struct statfs fs;
    int r = pr_space_stat(s->host, point, &fs);
    v->total = v->used = v->free = NAN;
    if (r < 0)
        return r;
    double unit = (double)(fs.f_frsize ? fs.f_frsize : fs.f_bsize);
    memcpy(&v->id, &fs.f_fsid, sizeof v->id);
    v->total = (double)fs.f_blocks * unit;
    v->used = (double)(fs.f_blocks - fs.f_bfree) * unit;
    v->free = (double)fs.f_bavail * unit;
    return 0;
}

/* Under a foreign root a mount may not have come along: its place is a directory of what we know
 * already. */
static bool is_another(const struct space *s, long long id)
{
    for (size_t i = 0; s->host->foreign && id && i < s->mounts.count; i++)
        if (s->mounts.items[i].id == id)
            return true;
    return false;
}

/* The mount point; the end of it where it is too long, and the device where even that is taken. */
static void name_it(const struct space *s, const struct pr_local_mount *mount, char *ret)
{
    size_t len = strlen(mount->point), most = DEVICE_NAME - 4;
    const char *cut = len < DEVICE_NAME ? "" : "...";
    snprintf(ret, DEVICE_NAME, "%s%s", cut, mount->point + (*cut ? len - most : 0));
    for (size_t i = 0; i < s->mounts.count; i++)
        if (strcmp(s->mounts.items[i].name, ret) == 0)
            snprintf(ret, DEVICE_NAME, "%.60s", mount->device);
}

static bool ask(void *data, const struct pr_local_mount *mount)
{
    struct space *s = data;
    struct volume v = {0}, *kept;
    int r = measure(s, &v, mount->point);
    if (r < 0)
        s->failure = r;
    if (r < 0 || v.total == 0 || is_another(s, v.id))
        return false;
    name_it(s, mount, v.name);
    v.point = strdup(mount->point);
    kept = v.point ? add(&s->mounts) : NULL;
    if (kept)
        *kept = v;
    else
        free(v.point);
    return true;
}

/* Chooses anew, where the table is another one. */
static int list(struct space *s)
{
    char *text = NULL;
    size_t len = 0;
    int r = pr_mount_table(s->host, &text, &len);
    uint64_t hash = r < 0 ? 0 : pr_scan_hash(text, len);
    if (r == 0 && (hash != s->seen || s->lost)) {
        clear(&s->mounts);
        s->failure = 0;
        s->lost = false;
        r = pr_local_mounts(text, len, ask, s);
        s->seen = hash;
    }
    free(text);
    return r;
}

static bool is_new(struct space *s, const struct pr_tick *t)
{
    struct pollfd wait = {.fd = s->watch, .events = POLLPRI};
    if (s->watch >= 0)
        return poll(&wait, 1, 0) > 0 || (s->lost && t->now - s->listed_at >= LIST_AGAIN);
    return !s->host->held || t->now - s->listed_at >= LIST_AGAIN;
}

/* Before the table is read for the first time: what changes afterwards is told. */
static void begin_watch(struct space *s)
{
    if (!s->host->held || s->host->holding >= s->host->hold_limit)
        return;
    int fd = pr_fs_open(s->host->proc, pr_mount_file(s->host, false));
    if (fd < 0)
        fd = pr_fs_open(s->host->proc, pr_mount_file(s->host, true));
    s->watch = fd < 0 ? -1 : fd;
    s->host->holding += fd >= 0;
}

static int read_mounts(struct space *s, const struct pr_tick *t)
{
    if (!s->listed_at)
        begin_watch(s);
    bool fresh = !s->listed_at || is_new(s, t);
    s->read_at = t->now;
    if (fresh) {
        s->listed_at = t->now;
        uint64_t before = s->seen;
        int r = list(s);
        if (r < 0 || s->seen != before)
            return r; /* listing has measured */
    }
    for (size_t i = 0; i < s->mounts.count; i++) {
        int r = measure(s, &s->mounts.items[i], s->mounts.items[i].point);
        if (r < 0)
            s->failure = r;
        s->lost |= r < 0;
    }
    return 0;
}

/* --- pools ------------------------------------------------------------------------------------ */

static void take_pools(struct pr_machine *m, struct space *s, const char *text, size_t len)
{
    struct pr_scan scan = pr_scan_of(text, len);
    struct pr_zpool_head head;
    struct pr_zpool pool;
    struct volume *v;
    if (!pr_zpool_head(&scan, &head))
        return;
    m->space_cpu = head.cpu;
    s->failures = head.failed ? s->failures + 1 : 0;
    if (head.failed) /* what was known stands for a minute */
        return;
    clear(&s->pools);
    while (pr_zpool_next(&scan, &pool) && (v = add(&s->pools))) {
        snprintf(v->name, sizeof v->name, "zfs:%.59s", pool.name);
        v->total = pool.total;
        v->used = pool.used;
        v->free = pool.free;
    }
}

static void hear(struct pr_machine *m, const struct pr_tick *t, struct space *s)
{
    ssize_t n;
    if (m->space_helper < 0)
        return;
    while ((n = recv(m->space_helper, t->text, t->text_size, MSG_DONTWAIT)) > 0) {
        s->heard = true;
        take_pools(m, s, t->text, (size_t)n);
    }
    s->heard |= n == 0 || (errno != EAGAIN && errno != EINTR);
}

/* --- both ------------------------------------------------------------------------------------- */

/* counted: whether they may go into the sums. */
static void put(struct pr_machine *m, const struct volumes *all, bool counted)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct volume *v = &all->items[i];
        if (isnan(v->total))
            continue;
        struct pr_device_state *d =
            pr_devices_get(&m->devices, DEVICE_FILESYSTEM, v->name, strlen(v->name));
        if (!d)
            return;
        d->out.counted = counted;
        pr_device_put(d, METRIC_SYSTEM_DISK_SPACE_TOTAL, v->total);
        pr_device_put(d, METRIC_SYSTEM_DISK_SPACE_USED, v->used);
        pr_device_put(d, METRIC_SYSTEM_DISK_SPACE_FREE, v->free);
    }
}

static void explain_nothing(struct pr_machine *m, const struct space *s)
{
    if (s->mounts.count || s->pools.count)
        return;
    if (s->failure == -ENOTSUP)
        pr_machine_explain(m, MACHINE_sys_space, "a captured tree has no sizes of file systems");
    else if (s->failure)
        pr_machine_explain(m, MACHINE_sys_space, "statfs: %s", strerror(-s->failure));
    else
        pr_machine_explain(m, MACHINE_sys_space, "no local file system is mounted here");
}

static struct space *new_space(struct pr_host *host)
{
    struct space *s = calloc(1, sizeof *s);
    if (s) {
        s->host = host;
        s->watch = -1;
    }
    return s;
}

static int read_it(struct pr_machine *m, const struct pr_tick *t, void **state)
{
    struct space *s = *state ? *state : (*state = new_space(m->host));
    if (!s)
        return -ENOMEM;
    hear(m, t, s);
    /* Without the pools the sums would be those of another machine. */
    bool whole = m->space_helper < 0 || (s->heard && s->failures < FAILURES_MOST);
    if (!whole)
        pr_machine_explain(m, MACHINE_sys_space,
                           s->heard ? "zpool list fails" : "waiting for zpool list");
    int r = pr_machine_due(m, s->read_at, t->now) ? read_mounts(s, t) : 0;
    put(m, &s->mounts, whole);
    if (whole)
        put(m, &s->pools, true);
    if (r == 0)
        explain_nothing(m, s);
    return r;
}

static void close_it(void *state, bool close_files)
{
    struct space *s = state;
    if (s->watch >= 0 && close_files) {
        close(s->watch);
        s->host->holding--;
    }
    clear(&s->mounts);
    clear(&s->pools);
    free(s->mounts.items);
    free(s->pools.items);
    free(s);
}

const struct pr_machine_source pr_machine_source_sys_space = {
    .name = "statfs", .gives = READ_SPACE, .read = read_it, .close = close_it};
