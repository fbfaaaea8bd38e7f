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
