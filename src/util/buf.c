/* SPDX-License-Identifier: Apache-2.0 */
#include "util/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pr_buf_done(struct pr_buf *b)
{
    free(b->data);
    *b = (struct pr_buf){0};
}

void pr_buf_reset(struct pr_buf *b)
{
    b->len = 0;
    b->failed = false;
}

bool pr_buf_reserve(struct pr_buf *b, size_t n)
{
    if (b->failed)
        return false;
    if (b->cap - b->len >= n + 1)
        return true;
    size_t cap = b->cap ? b->cap : 256;
    while (cap - b->len < n + 1)
        cap *= 2;
    char *data = realloc(b->data, cap);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->cap = cap;
    return true;
}

void pr_buf_add(struct pr_buf *b, const void *data, size_t n)
{
    if (!n || !pr_buf_reserve(b, n))
        return;
    memcpy(b->data + b->len, data, n);
    b->len += n;
}

void pr_buf_str(struct pr_buf *b, const char *text)
{
    pr_buf_add(b, text, strlen(text));
}

void pr_buf_char(struct pr_buf *b, char c)
{
    pr_buf_add(b, &c, 1);
}

void pr_buf_printf(struct pr_buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n <= 0 || !pr_buf_reserve(b, (size_t)n))
        return;
    va_start(args, format);
    vsnprintf(b->data + b->len, (size_t)n + 1, format, args);
    va_end(args);
    b->len += (size_t)n;
}

const char *pr_buf_text(struct pr_buf *b)
{
    if (!b->len || !pr_buf_reserve(b, 0))
        return "";
    b->data[b->len] = '\0';
    return b->data;
}

void pr_buf_consume(struct pr_buf *b, size_t n)
{
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}
