/* SPDX-License-Identifier: Apache-2.0 */
#include "core/loadavg.h"

#include <linux/magic.h>
#include <math.h>
#include <sys/vfs.h>

#include "util/scan.h"

/* "0.52", without what a locale makes of it. */
static bool scan_decimal(struct pr_scan *s, double *ret)
{
    uint64_t whole;
    double digits = 0, scale = 1;
    if (!pr_scan_u64(s, &whole))
        return false;
    if (s->p < s->end && *s->p == '.')
        for (s->p++; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
            if (scale < 1e6) {
                digits = digits * 10 + (*s->p - '0');
                scale *= 10;
            }
    *ret = ((double)whole * scale + digits) / scale;
    return true;
}

bool pr_loadavg_parse(const char *text, size_t len, struct pr_loadavg *ret)
{
    struct pr_scan s = pr_scan_of(text, len), word;
    *ret = (struct pr_loadavg){.load1 = NAN};
    if (!scan_decimal(&s, &ret->load1))
        return false;
    for (int i = 0; i < 2; i++)
        pr_scan_word(&s, &word);
    uint64_t running;
    if (pr_scan_u64(&s, &running) && pr_scan_prefix(&s, "/"))
        pr_scan_u64(&s, &ret->tasks);
    pr_scan_u64(&s, &ret->last_pid);
    return true;
}

bool pr_loadavg_is_the_kernels(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}
