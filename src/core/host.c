/* SPDX-License-Identifier: Apache-2.0 */
#include "core/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fs.h"
#include "util/scan.h"

#define FRESH (NS_PER_S / 20) /* at the start a file is asked for again and again */

static int open_dir(int at, const char *path)
{
    int fd = openat(at, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* A quarter of the limit inside somebody else's process; the command raises its own first. */
static int hold_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 4 > HOST_HOLD_MOST)
        return HOST_HOLD_MOST;
    return (int)(limit.rlim_cur / 4);
}

/* A proc file system of another pid namespace has other pids than system calls have. */
static bool shows_us(int proc)
{
    char text[32] = "";
    return readlinkat(proc, "self", text, sizeof text - 1) > 0 && atoi(text) == getpid();
}

int pr_host_open(struct pr_host *h, const char *root, struct proctor_error *err)
{
    struct statfs fs;
    struct stat st;
    *h = (struct pr_host){.proc = -1, .foreign = strcmp(root, "/") != 0};
    h->root = open_dir(AT_FDCWD, root);
    if (h->root < 0)
        return pr_error(err, -h->root, "root '%.150s': %s", root, strerror(-h->root));
    h->proc = open_dir(h->root, "proc");
    if (h->proc < 0) {
        int code = -h->proc;
        pr_host_close(h);
        return pr_error(err, code, "root '%.150s' has no proc directory: %s", root, strerror(code));
    }
    h->held = fstatfs(h->proc, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
    h->foreign |= !shows_us(h->proc);
    h->fd_size = h->held && fstatat(h->proc, "self/fd", &st, 0) == 0 && st.st_size > 0;
    h->page_size = sysconf(_SC_PAGESIZE);
    h->ticks_per_second = sysconf(_SC_CLK_TCK);
    h->boot_wall = pr_clock_wall() - pr_clock_boot();
    h->others_limit = h->hold_limit = hold_limit();
    h->kept = calloc(KEPT_FILES, sizeof *h->kept);
    return 0;
}

void pr_host_close(struct pr_host *h)
{
    if (h->lent)
        return;
    if (h->root >= 0)
        close(h->root);
    if (h->proc >= 0)
        close(h->proc);
    h->root = h->proc = -1;
    for (int i = 0; h->kept && i < KEPT_FILES; i++)
        free(h->kept[i].text);
    free(h->kept);
    h->kept = NULL;
}

static int copy_of(const struct pr_kept *kept, char **ret_text, size_t *ret_len)
{
    char *text = malloc(kept->len + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, kept->text, kept->len + 1);
    *ret_text = text;
    *ret_len = kept->len;
    return 0;
}

int pr_host_slurp(const struct pr_host *h, enum pr_kept_file which, const char *path,
                  char **ret_text, size_t *ret_len)
{
    struct pr_kept *kept = h->held && h->kept ? &h->kept[which] : NULL;
    int64_t now = pr_clock_boot();
    if (!kept)
        return pr_fs_slurp(h->proc, path, ret_text, ret_len);
    if (kept->at && now - kept->at < FRESH)
        return copy_of(kept, ret_text, ret_len);
    free(kept->text);
    *kept = (struct pr_kept){0};
    int r = pr_fs_slurp(h->proc, path, &kept->text, &kept->len);
    if (r < 0)
        return r;
    kept->at = now;
    return copy_of(kept, ret_text, ret_len);
}

/* The line of our own mountinfo that is about this file system has hidepid among its options. */
static bool hides(const char *mountinfo, size_t len, dev_t device)
{
    char number[32];
    struct pr_scan s = pr_scan_of(mountinfo, len), line, word;
    snprintf(number, sizeof number, "%u:%u", major(device), minor(device));
    while (pr_scan_line(&s, &line)) {
        struct pr_scan rest = line;
        for (int i = 0; i < 3; i++)
            pr_scan_word(&rest, &word);
        if (pr_scan_equals(word, number))
            return memmem(line.p, (size_t)(line.end - line.p), "hidepid=", 8);
    }
    return false;
}

const char *pr_host_hidden(const struct pr_host *h)
{
    char *text = NULL;
    size_t len;
    struct stat st;
    bool hidden = fstat(h->proc, &st) == 0 &&
                  pr_fs_slurp(AT_FDCWD, "/proc/self/mountinfo", &text, &len) == 0 &&
                  hides(text, len, st.st_dev);
    free(text);
    return hidden ? "; it may be hidden: /proc is mounted with hidepid, its owner and root see it"
                  : "";
}

int64_t pr_host_wall_of(const struct pr_host *h, uint64_t ticks)
{
    const uint64_t hz = (uint64_t)h->ticks_per_second, most = INT64_MAX / NS_PER_S / 2;
    uint64_t seconds = ticks / hz < most ? ticks / hz : most; /* a damaged file may say anything */
    return h->boot_wall + (int64_t)seconds * NS_PER_S +
           (int64_t)(ticks % hz * (uint64_t)NS_PER_S / hz);
}
