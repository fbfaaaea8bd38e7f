/* SPDX-License-Identifier: Apache-2.0 */
#include "util/json_check.h"

#include <ctype.h>
#include <string.h>

#include "util/scan.h"
#include "util/text.h"

#define NESTED_MOST 32

static bool is_next(const struct pr_scan *s, char c)
{
    return s->p < s->end && *s->p == c;
}

static bool take(struct pr_scan *s, char c)
{
    if (!is_next(s, c))
        return false;
    s->p++;
    return true;
}

static void blanks(struct pr_scan *s)
{
    while (s->p < s->end && memchr(" \t\r\n", *s->p, 4))
        s->p++;
}

static bool digits(struct pr_scan *s)
{
    const char *from = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return s->p > from;
}

static bool number(struct pr_scan *s)
{
    take(s, '-');
    if (!take(s, '0') && !digits(s))
        return false;
    if (take(s, '.') && !digits(s))
        return false;
    if (!take(s, 'e') && !take(s, 'E'))
        return true;
    if (!take(s, '+'))
        take(s, '-');
    return digits(s);
}

static bool plain(struct pr_scan *s)
{
    return pr_scan_prefix(s, "true") || pr_scan_prefix(s, "false") || pr_scan_prefix(s, "null") ||
           number(s);
}

static bool escape(struct pr_scan *s)
{
    if (s->p == s->end)
        return false;
    char c = *s->p++;
    if (c != 'u')
        return c && strchr("\"\\/bfnrt", c);
    for (int i = 0; i < 4; i++, s->p++)
        if (s->p == s->end || !isxdigit((unsigned char)*s->p))
            return false;
    return true;
}

static bool string(struct pr_scan *s)
{
    if (!take(s, '"'))
        return false;
    while (s->p < s->end && !is_next(s, '"')) {
        size_t n = pr_text_utf8(s->p, s->end);
        if (!n || (unsigned char)*s->p < 0x20)
            return false;
        bool escaped = *s->p == '\\';
        s->p += n;
        if (escaped && !escape(s))
            return false;
    }
    return take(s, '"');
}

static bool value(struct pr_scan *s, int depth);

/* What stands between brackets; in an object each has a name. */
static bool items(struct pr_scan *s, char close, int depth)
{
    s->p++;
    blanks(s);
    if (depth > NESTED_MOST || take(s, close))
        return depth <= NESTED_MOST;
    do {
        blanks(s);
        if (close == '}') {
            if (!string(s))
                return false;
            blanks(s);
            if (!take(s, ':'))
                return false;
        }
        if (!value(s, depth))
            return false;
        blanks(s);
    } while (take(s, ','));
    return take(s, close);
}

static bool value(struct pr_scan *s, int depth)
{
    blanks(s);
    if (is_next(s, '{') || is_next(s, '['))
        return items(s, *s->p == '{' ? '}' : ']', depth + 1);
    return is_next(s, '"') ? string(s) : plain(s);
}

bool pr_json_is_object(const char *text, size_t len)
{
    struct pr_scan s = pr_scan_of(text, len);
    blanks(&s);
    if (!is_next(&s, '{') || !value(&s, 0))
        return false;
    blanks(&s);
    return s.p == s.end;
}

bool pr_json_is_plain(const char *text, size_t len)
{
    struct pr_scan s = pr_scan_of(text, len);
    return plain(&s) && s.p == s.end;
}
