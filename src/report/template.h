/* SPDX-License-Identifier: Apache-2.0 */
/* The page of the HTML report, made from web/ at build time. `@MODEL@` stands in it once: there
 * goes the model (doc/report-model.md), with `<` written as \u003c in strings. */
#pragma once
#include <stddef.h>

extern const char pr_template[];
extern const size_t pr_template_len; /* 0: built without the page (-Dpage=disabled, or no npm) */
