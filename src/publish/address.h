/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of servers, and what is secret in them. */
#pragma once
#include <stddef.h>

#include "core/error.h"

/* The text from `from` to `end` with %40 as @; cut where ret is too small. */
void pr_address_unescape(char *ret, size_t size, const char *from, const char *end);
/* An address in parts: without user and password, and what is before and behind their colon, ""
 * where there is none. -ENAMETOOLONG where one has no room. */
struct pr_address {
    char url[1024];
    char user[256], password[1024];
};
int pr_address_split(const char *uri, struct pr_address *ret);
/* Puts stars over a password in an address, and over what is behind a "?", where they stand: nobody
 * should find them in `ps`. */
void pr_address_hide(char *uri);
/* -EINVAL: it does not begin with http:// or https://. `said` is where it stood, and `like` how it
 * looks. It is shown where nothing in it can be secret. */
int pr_address_refuse(const char *uri, const char *said, const char *like,
                      struct proctor_error *err);
