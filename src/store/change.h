/* SPDX-License-Identifier: Apache-2.0 */
/* Writing to a run file whose recorder is gone. */
#pragma once
#include "store/stored.h"

/* The end that its recorder could not write: a summary in JSON that was rebuilt, ends of the phases
 * that were open, and one file that needs no other. r: opened with STORED_CHANGE. */
int pr_stored_complete(struct pr_stored *r, const char *summary, struct proctor_error *err);
/* Nobody writes to it any more: one file, where nobody is reading. Else it stays as it is, and can
 * be read all the same. */
void pr_stored_settle(struct pr_stored *r);
