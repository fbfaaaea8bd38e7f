/* SPDX-License-Identifier: Apache-2.0 */
/* A message that is written once, as protobuf or as the JSON that protobuf has for it: each part is
 * given with its number and its name. */
#pragma once
#include "util/buf.h"
#include "util/json.h"

#define MESSAGE_DEPTH 16

struct pr_message {
    struct pr_json json;
    bool as_json;
    int depth;
    size_t open[MESSAGE_DEPTH]; /* where the lengths of open parts are to go */
};

struct pr_message pr_message_of(struct pr_buf *out, bool as_json);
/* Nothing comes any more. */
void pr_message_end(struct pr_message *m);
/* A message within the message; in a list it has no name. */
void pr_message_open(struct pr_message *m, int number, const char *name);
void pr_message_close(struct pr_message *m);
/* Around what may come several times. */
void pr_message_list(struct pr_message *m, const char *name);
void pr_message_list_end(struct pr_message *m);
void pr_message_text(struct pr_message *m, int number, const char *name, const char *text);
void pr_message_double(struct pr_message *m, int number, const char *name, double v);
void pr_message_fixed64(struct pr_message *m, int number, const char *name, uint64_t v);
/* Of 64 bits, not below 0. */
void pr_message_int(struct pr_message *m, int number, const char *name, int64_t v);
/* An enumeration. */
void pr_message_enum(struct pr_message *m, int number, const char *name, unsigned v);
void pr_message_bool(struct pr_message *m, int number, const char *name, bool v);
