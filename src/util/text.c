/* SPDX-License-Identifier: Apache-2.0 */
#include "util/text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

size_t pr_text_utf8(const char *p, const char *end)
{
    unsigned char c = (unsigned char)*p;
    if (c < 0x80)
        return 1;
    size_t n = c >= 0xf0 && c < 0xf5   ? 4
               : c >= 0xe0 && c < 0xf0 ? 3
               : c >= 0xc2 && c < 0xe0 ? 2
                                       : 0;
    if (!n || (size_t)(end - p) < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)p[i] & 0xc0) != 0x80)
            return 0;
    unsigned char second = (unsigned char)p[1];
    /* Overlong forms, surrogates, and what lies beyond U+10FFFF. */
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) ||
        (c == 0xf0 && second < 0x90) || (c == 0xf4 && second > 0x8f))
        return 0;
    return n;
}

static int is_control(const char *p, size_t n)
{
    unsigned char c = (unsigned char)*p;
    /* C1 controls are two bytes in UTF-8, and terminals obey them too. */
    return c < 0x20 || c == 0x7f || (n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0);
}

/* Appends the character at p, made safe; returns its length. */
static size_t add_safe(struct pr_buf *out, const char *p, const char *end)
{
    size_t n = pr_text_utf8(p, end);
    if (n && !is_control(p, n)) {
        pr_buf_add(out, p, n);
        return n;
    }
    n = n ? n : 1;
    for (size_t i = 0; i < n; i++)
        pr_buf_printf(out, "\\x%02x", (unsigned char)p[i]);
    return n;
}

void pr_text_safe(struct pr_buf *out, const char *text)
{
    for (const char *p = text, *end = text + strlen(text); p < end;)
        p += add_safe(out, p, end);
}

/* The code point of a character of n bytes. */
static unsigned code_point(const char *p, size_t n)
{
    unsigned code = (unsigned char)*p & (n == 1 ? 0x7f : 0xffU >> (n + 1));
    for (size_t i = 1; i < n; i++)
        code = code << 6 | ((unsigned char)p[i] & 0x3f);
    return code;
}

/* Controls, what has no width, what turns text around, and what XML forbids. */
static int is_odd(unsigned c)
{
    static const unsigned ranges[][2] = {{0, 0x1f},        {0x7f, 0x9f},     {0x200b, 0x200f},
                                         {0x2028, 0x202e}, {0x2060, 0x2069}, {0xfeff, 0xfeff},
                                         {0xfffe, 0xffff}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return 1;
    return 0;
}

void pr_text_line(struct pr_buf *out, const char *text, size_t most)
{
    size_t count = 0;
    for (const char *p = text, *end = text + strlen(text); p < end; count++) {
        size_t n = pr_text_utf8(p, end);
        if (most && count == most) {
            pr_buf_str(out, "\u2026");
            return;
        }
        if (n == 1 && strchr("\t\n\v\f\r", *p))
            pr_buf_char(out, ' ');
        else if (!n || is_odd(code_point(p, n)))
            pr_buf_str(out, "\ufffd");
        else
            pr_buf_add(out, p, n);
        p += n ? n : 1;
    }
}

size_t pr_text_length(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

void pr_text_csv(struct pr_buf *out, const char *text)
{
    if (!strpbrk(text, "\",")) {
        pr_text_safe(out, text);
        return;
    }
    pr_buf_char(out, '"');
    for (const char *p = text, *end = text + strlen(text); p < end;) {
        if (*p == '"')
            pr_buf_char(out, '"');
        p += add_safe(out, p, end);
    }
    pr_buf_char(out, '"');
}

const char *pr_text_tail(const char *text, size_t most)
{
    size_t len = strlen(text);
    if (len <= most)
        return text;
    for (text += len - most; ((unsigned char)*text & 0xc0) == 0x80; text++)
        ;
    return text;
}

const char *pr_text_signal(int sig, char *text, size_t size)
{
    const char *name = sigabbrev_np(sig);
    if (name)
        snprintf(text, size, "SIG%s", name);
    else if (sig >= SIGRTMIN && sig <= SIGRTMAX)
        snprintf(text, size, "SIGRTMIN+%d", sig - SIGRTMIN);
    else
        snprintf(text, size, "signal %d", sig);
    return text;
}
