/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/pressure (Documentation/accounting/psi.rst): a line "some" and a line "full", each with
 * three averages and "total=", the microseconds since boot. Before Linux 5.13 the file of the CPU
 * has no "full". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/machine.h"
#include "source/parse.h"

static const struct {
    const char *path;
    enum pr_metric_id some, full;
} files[] = {
    {"pressure/cpu", METRIC_SYSTEM_PSI_CPU, METRIC_SYSTEM_PSI_CPU_FULL},
    {"pressure/memory", METRIC_SYSTEM_PSI_MEMORY, METRIC_SYSTEM_PSI_MEMORY_FULL},
    {"pressure/io", METRIC_SYSTEM_PSI_IO, METRIC_SYSTEM_PSI_IO_FULL},
};
#define FILES (sizeof files / sizeof *files)

struct held {
    int fd[FILES];
};

bool pr_pressure_total(const char *text, size_t len, const char *which, double *ret_seconds)
{
    struct pr_scan s = pr_scan_of(text, len), line, word;
    uint64_t microseconds;
    while (pr_scan_line(&s, &line)) {
        if (!pr_scan_word(&line, &word) || !pr_scan_equals(word, which))
            continue;
        while (pr_scan_word(&line, &word))
            if (pr_scan_prefix(&word, "total=") && pr_scan_u64(&word, &microseconds)) {
                *ret_seconds = (double)microseconds * 1e-6;
                return true;
            }
    }
    return false;
}

static struct held *held_of(void **state)
{
    struct held *h = *state;
    if (!h && (h = *state = malloc(sizeof *h)))
        for (size_t i = 0; i < FILES; i++)
            h->fd[i] = -1;
    return h;
}

static int read_file(struct pr_machine *m, const struct pr_tick *t, int *fd, size_t i)
{
    ssize_t n = pr_machine_text(t, fd, m->host->proc, files[i].path, false);
    if (n < 0)
        return (int)n;
    pr_pressure_total(t->text, (size_t)n, "full", &m->raw[files[i].full]);
    return pr_pressure_total(t->text, (size_t)n, "some", &m->raw[files[i].some]) ? 0 : -EIO;
}

static bool is_off(int r)
{
    return r == -ENOENT || r == -EOPNOTSUPP; /* without CONFIG_PSI; with psi=0 */
}

static int read_it(struct pr_machine *m, const struct pr_tick *t, void **state)
{
    struct held *h = held_of(state);
    int first = 0;
    bool any = false;
    if (!h)
        return -ENOMEM;
    for (size_t i = 0; i < FILES; i++) {
        if (!(m->reads & pr_metrics[files[i].some].needs))
            continue;
        int r = read_file(m, t, &h->fd[i], i);
        any |= r == 0;
        first = first ? first : r;
        if (r < 0 && !is_off(r))
            pr_machine_explain(m, MACHINE_sys_psi, "/proc/%s: %s", files[i].path, strerror(-r));
    }
    if (any || !is_off(first))
        return any ? 0 : first;
    pr_machine_explain(m, MACHINE_sys_psi,
                       "/proc/pressure: this kernel has no pressure information (it needs "
                       "CONFIG_PSI, or to be booted with psi=1)");
    return -ENOENT; /* for good: both take another boot */
}

static void close_it(void *state, bool close_files)
{
    struct held *h = state;
    for (size_t i = 0; i < FILES; i++)
        if (close_files && h->fd[i] >= 0)
            close(h->fd[i]);
    free(h);
}

const struct pr_machine_source pr_machine_source_sys_psi = {
    .name = "/proc/pressure", .gives = READ_PSI | READ_PSI_IO, .read = read_it, .close = close_it};
