/* SPDX-License-Identifier: Apache-2.0 */
/* Is a text JSON? It is only looked at: nothing is built from it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* One object, with blanks around it at most, in valid UTF-8. Nothing nests deeper than 32. */
bool pr_json_is_object(const char *text, size_t len);
/* A number, true, false or null, and nothing else. */
bool pr_json_is_plain(const char *text, size_t len);
