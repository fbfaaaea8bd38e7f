/* SPDX-License-Identifier: Apache-2.0 */
#include "source/zpool.h"

#include <string.h>

bool pr_zpool_head(struct pr_scan *text, struct pr_zpool_head *ret)
{
    struct pr_scan line, word;
    uint64_t whole = 0;
    double part;
    if (!pr_scan_line(text, &line) || !pr_scan_prefix(&line, "cpu ") || !pr_scan_u64(&line, &whole))
        return false;
    ret->cpu = (double)whole;
    if (pr_scan_prefix(&line, ".") && pr_scan_fraction(&line, &part))
        ret->cpu += part;
    ret->failed = pr_scan_word(&line, &word) && pr_scan_equals(word, "failed");
    return true;
}

static double number(struct pr_scan *line)
{
    struct pr_scan word;
    uint64_t v;
    return pr_scan_word(line, &word) && pr_scan_u64(&word, &v) && word.p == word.end ? (double)v
                                                                                     : NAN;
}

bool pr_zpool_next(struct pr_scan *text, struct pr_zpool *ret)
{
    struct pr_scan line, name;
    while (pr_scan_line(text, &line)) {
        /* A name may have blanks in it; fields are separated by tabs. */
        const char *tab = memchr(line.p, '\t', (size_t)(line.end - line.p));
        name = (struct pr_scan){line.p, tab};
        size_t n = tab ? (size_t)(name.end - name.p) : 0;
        if (n == 0 || memchr(name.p, '\0', n)) /* no name of any pool */
            continue;
        n = n < sizeof ret->name ? n : sizeof ret->name - 1;
        memset(ret->name, 0, sizeof ret->name);
        memcpy(ret->name, name.p, n);
        line.p = tab;
        ret->total = number(&line);
        ret->used = number(&line);
        ret->free = number(&line);
        if (!isnan(ret->total))
            return true;
    }
    return false;
}
