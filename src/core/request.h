/* SPDX-License-Identifier: Apache-2.0 */
/* What a job may say about itself, over the socket of its run or through the library:
 *   begin NAME      a phase begins
 *   end NAME        it ends
 *   during NAME     a phase begins, and ends with the process that asks
 *   mark NAME<tab>{"key": value...}     something happened; the data may be left out
 * One line each. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define REQUEST_NAME 200  /* bytes of a name, at the most */
#define REQUEST_LINE 4096 /* bytes of a line with its end, at the most */

enum pr_request_verb { REQUEST_BEGIN, REQUEST_END, REQUEST_DURING, REQUEST_MARK };

struct pr_request {
    enum pr_request_verb verb;
    char name[REQUEST_NAME + 1];
    char data[REQUEST_LINE]; /* of a mark: an object in one line of JSON */
};

/* A line without its end. False where it is none of these. */
bool pr_request_parse(struct pr_request *r, const char *line, size_t len);
/* The same from its parts; data may be NULL. Line breaks in data become blanks. */
bool pr_request_make(struct pr_request *r, enum pr_request_verb verb, const char *name,
                     const char *data);
/* Text without control characters, not empty and not too long. */
bool pr_request_is_name(const char *name, size_t len);
const char *pr_request_verb_name(enum pr_request_verb verb);
