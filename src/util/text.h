/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside, made safe for where it goes. */
#pragma once
#include <stddef.h>

#include "util/buf.h"

/* Length of the valid UTF-8 character at p (1 to 4), 0 where there is none. */
size_t pr_text_utf8(const char *p, const char *end);
/* Appends text fit for a terminal or a log: control characters and broken UTF-8 as \xNN. */
void pr_text_safe(struct pr_buf *out, const char *text);
/* Appends text as one line for a document, at most so many characters (0: all), then "…": blanks
 * for breaks and tabs, U+FFFD for what is broken, invisible or would turn the line around. */
void pr_text_line(struct pr_buf *out, const char *text, size_t most);
/* Characters in a text. */
size_t pr_text_length(const char *text);
/* The last bytes of text, at most so many, from the beginning of a character: the end of a path
 * tells more than where it begins. */
const char *pr_text_tail(const char *text, size_t most);
/* "SIGTERM", "SIGRTMIN+3", "signal 99" into text; returns it. */
const char *pr_text_signal(int sig, char *text, size_t size);
/* Appends one CSV field as RFC 4180 has it: quoted only where it must be. */
void pr_text_csv(struct pr_buf *out, const char *text);
