/* SPDX-License-Identifier: Apache-2.0 */
/* A streaming JSON writer: commas and nesting are its business. What is not finite becomes null;
 * text that is not UTF-8 becomes U+FFFD where it breaks. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "util/buf.h"

struct pr_json {
    struct pr_buf *out;
    int indent; /* spaces per level, 0 for one line */
    int depth;
    bool comma; /* the next value in this level needs one */
    bool after_key;
};

void pr_json_open(struct pr_json *j, char bracket);  /* '{' or '[' */
void pr_json_close(struct pr_json *j, char bracket); /* '}' or ']' */
void pr_json_key(struct pr_json *j, const char *key);
void pr_json_string(struct pr_json *j, const char *text); /* NULL is null */
void pr_json_number(struct pr_json *j, double v);
void pr_json_int(struct pr_json *j, int64_t v);
void pr_json_bool(struct pr_json *j, bool v);
void pr_json_null(struct pr_json *j);
void pr_json_raw(struct pr_json *j, const char *text); /* a value that is JSON already */
