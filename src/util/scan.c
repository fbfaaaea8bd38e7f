/* SPDX-License-Identifier: Apache-2.0 */
#include "util/scan.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void skip_blanks(struct pr_scan *s)
{
    while (s->p < s->end && is_blank(*s->p))
        s->p++;
}

bool pr_scan_u64(struct pr_scan *s, uint64_t *ret)
{
    skip_blanks(s);
    const char *start = s->p;
    uint64_t v = 0;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
        uint64_t digit = (uint64_t)(*s->p - '0');
        bool fits = s->p - start < 19 || v <= (UINT64_MAX - digit) / 10; /* 19 digits always do */
        v = fits ? v * 10 + digit : UINT64_MAX;
    }
    if (s->p == start)
        return false;
    *ret = v;
    return true;
}

bool pr_scan_i64(struct pr_scan *s, int64_t *ret)
{
    skip_blanks(s);
    struct pr_scan t = *s;
    bool negative = t.p < t.end && *t.p == '-';
    if (negative)
        t.p++;
    uint64_t v;
    if ((t.p < t.end && is_blank(*t.p)) || !pr_scan_u64(&t, &v))
        return false;
    if (v > INT64_MAX)
        v = INT64_MAX;
    *ret = negative ? -(int64_t)v : (int64_t)v;
    *s = t;
    return true;
}

bool pr_scan_word(struct pr_scan *s, struct pr_scan *ret_word)
{
    skip_blanks(s);
    const char *start = s->p;
    while (s->p < s->end && !is_blank(*s->p) && *s->p != '\n')
        s->p++;
    if (s->p == start)
        return false;
    *ret_word = (struct pr_scan){start, s->p};
    return true;
}

bool pr_scan_line(struct pr_scan *s, struct pr_scan *ret_line)
{
    if (s->p >= s->end)
        return false;
    const char *newline = memchr(s->p, '\n', (size_t)(s->end - s->p));
    *ret_line = (struct pr_scan){s->p, newline ? newline : s->end};
    s->p = newline ? newline + 1 : s->end;
    return true;
}

bool pr_scan_prefix(struct pr_scan *s, const char *prefix)
{
    if (*prefix && s->p < s->end && *s->p != *prefix) /* nearly all: two calls less */
        return false;
    size_t n = strlen(prefix);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, prefix, n) != 0)
        return false;
    s->p += n;
    return true;
}

bool pr_scan_fraction(struct pr_scan *s, double *ret)
{
    const char *start = s->p;
    uint64_t part;
    double scale = 1; /* a product, and no pow(): that would need libm at each start */
    if (start >= s->end || *start < '0' || *start > '9' || !pr_scan_u64(s, &part) ||
        s->p - start > 18)
        return false;
    for (ptrdiff_t digits = s->p - start; digits > 0; digits--)
        scale *= 10;
    *ret = (double)part / scale;
    return true;
}

bool pr_scan_equals(struct pr_scan s, const char *text)
{
    return pr_scan_prefix(&s, text) && s.p == s.end;
}

uint64_t pr_scan_hash(const char *text, size_t len)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return h;
}

bool pr_scan_keyed(const char *text, size_t len, const struct pr_scan_row *rows, size_t count,
                   double *values)
{
    struct pr_scan s = pr_scan_of(text, len), line;
    bool seen[SCAN_METRICS] = {false}; /* in this text before: further lines of a metric add up */
    bool any = false;
    while (pr_scan_line(&s, &line)) {
        for (size_t i = 0; i < count; i++) {
            struct pr_scan rest = line;
            uint64_t v;
            if (!pr_scan_prefix(&rest, rows[i].key))
                continue;
            if (!pr_scan_u64(&rest, &v))
                break;
            int metric = rows[i].metric;
            double add = (double)v * rows[i].scale;
            values[metric] = seen[metric] ? values[metric] + add : add;
            seen[metric] = any = true;
            break;
        }
    }
    return any;
}
