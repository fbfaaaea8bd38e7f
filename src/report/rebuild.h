/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a recorded run from its samples, by the same code as at the end of a live one: for
 * a run whose recorder died, and for one that is still recorded. What only the recorder knew (who
 * waited for whom, names of --match, its own cost) is not in it. */
#pragma once
#include "core/error.h"
#include "store/stored.h"
#include "util/buf.h"

/* As JSON in one line into out. 0 or -errno. */
int pr_rebuild(const struct pr_stored *r, struct pr_buf *out, struct proctor_error *err);
