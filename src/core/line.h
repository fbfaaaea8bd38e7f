/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of JSON, each an object with its type: the same in a file and for a sink of a user's own.
 */
#pragma once
#include "core/event.h"
#include "core/notes.h"
#include "util/json.h"

/* Type, time and elapsed; the object stays open. start: wall time, ns. */
struct pr_json pr_line_begin(struct pr_buf *out, const char *type, int64_t start, int64_t elapsed);
/* Members that were written elsewhere, without their braces. */
void pr_line_members(struct pr_json *j, const char *members);
/* With the end of the line. */
void pr_line_end(struct pr_json *j);
/* Whole lines. */
void pr_line_event(struct pr_buf *out, int64_t start, const struct pr_event *event);
void pr_line_note(struct pr_buf *out, int64_t start, struct pr_note note, const char *members);
