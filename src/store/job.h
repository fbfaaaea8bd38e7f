/* SPDX-License-Identifier: Apache-2.0 */
/* What a recorded job was, besides its values: what sinks were told of it. */
#pragma once
#include "core/sink.h"
#include "store/stored.h"

/* The texts that a query has in its first column, ?1 being all that the run is (JSON): a list that
 * ends with NULL, and its length; the caller frees both. NULL when memory is out. */
char **pr_stored_texts(const struct pr_stored *r, const char *sql, size_t *ret_count);
void pr_stored_texts_free(char **texts);

/* Where a file does not say it, it is as unknown as it can be live. 0 or -ENOMEM. */
int pr_stored_job(const struct pr_stored *r, struct pr_sink_job *ret_job);
void pr_stored_job_done(struct pr_sink_job *job);
