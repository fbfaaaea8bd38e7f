/* SPDX-License-Identifier: Apache-2.0 */
/* perf's software task clock, inherited by every child (perf_event_open(2)): the CPU time of the
 * tree whoever waits for whom. What a process uses before it has inherited the clock and after it
 * has given it back, at its birth and its end, is not in it: it is a lower bound, of 90 to 95 %
 * where processes are short. Of one clock for any CPU the kernel adds up all that inherited it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/exact.h"
#include "util/fs.h"

/* Without privilege only user time may be asked for; this clock counts both all the same. */
static int open_clock(pid_t pid)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .inherit = 1};
    int fd = -1;
    for (int user_only = 0; user_only < 2 && fd < 0; user_only++) {
        attr.exclude_kernel = (unsigned)user_only & 1;
        fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    }
    return fd < 0 ? -errno : fd;
}

static int refuse(struct pr_exact *x, int r)
{
    char paranoid[16] = "?";
    ssize_t n =
        pr_fs_read(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
    if (n > 0)
        paranoid[strcspn(paranoid, "\n")] = '\0';
    if (r == -EACCES || r == -EPERM)
        return pr_exact_refuse(
            x, -r, "CAP_PERFMON, kernel.perf_event_paranoid of 2 at most, or no filter of calls",
            "perf_event_open: %s, and kernel.perf_event_paranoid is %s", strerror(-r), paranoid);
    return pr_exact_refuse(x, -r, "a kernel with CONFIG_PERF_EVENTS", "perf_event_open: %s",
                           strerror(-r));
}

static int probe(struct pr_exact *x)
{
    int fd = open_clock(0);
    if (fd < 0)
        return refuse(x, fd);
    close(fd);
    return 0;
}

static int prepare(struct pr_exact *x)
{
    int *fd = malloc(sizeof *fd);
    if (!fd)
        return pr_exact_refuse(x, ENOMEM, "more memory", "out of memory");
    *fd = -1;
    x->state = fd;
    return 0;
}

static int enter(struct pr_exact *x, pid_t pid, bool inside)
{
    int *fd = x->state;
    (void)inside;
    *fd = open_clock(pid);
    return *fd < 0 ? refuse(x, *fd) : 0;
}

static void read_it(struct pr_exact *x, const struct pr_entities *set)
{
    uint64_t ns;
    (void)set;
    if (read(*(int *)x->state, &ns, sizeof ns) == sizeof ns)
        x->figure[EXACT_TIME] = (double)ns * 1e-9;
}

static int finish(struct pr_exact *x)
{
    int *fd = x->state;
    if (*fd >= 0)
        close(*fd);
    free(fd);
    return 0;
}

const struct pr_exact_ops pr_exact_perf = {
    .name = "perf",
    .source = "rusage of all who were waited for, or perf's task clock of the tree where that is "
              "more",
    .method = "perf's task clock, inherited by every child: 90 % or more",
    .automatic = true,
    .probe = probe,
    .prepare = prepare,
    .enter = enter,
    .read = read_it,
    .finish = finish,
};
