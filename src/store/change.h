/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to a run file whose recorder is gone. */
#pragma once
#include "store/stored.h"

/* The end that its recorder could not write: a summary in JSON that was rebuilt, ends of the phases
 * that were open, and one file that needs no other. r: opened with STORED_CHANGE. */
int pr_stored_complete(struct pr_stored *r, const char *summary, struct proctor_error *err);
