/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte buffer. It keeps its memory across resets, so that a buffer
 * that is reused stops allocating once it is warm. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct pr_buf {
    char *data;
    size_t len, cap;
    bool failed; /* out of memory: sticky, everything after it is dropped */
};

void pr_buf_done(struct pr_buf *b);
void pr_buf_reset(struct pr_buf *b);
/* Makes room for n more bytes; false when memory is out. */
bool pr_buf_reserve(struct pr_buf *b, size_t n);
void pr_buf_add(struct pr_buf *b, const void *data, size_t n);
void pr_buf_str(struct pr_buf *b, const char *text);
void pr_buf_char(struct pr_buf *b, char c);
void pr_buf_printf(struct pr_buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text with a terminating NUL that does not count; "" when empty. */
const char *pr_buf_text(struct pr_buf *b);
/* Takes n bytes off the front. */
void pr_buf_consume(struct pr_buf *b, size_t n);
