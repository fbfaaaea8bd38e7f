/* SPDX-License-Identifier: Apache-2.0 */
/* A summary in JSON, laid out for people. */
#pragma once
#include "report/model.h"
#include "report/summary.h"
#include "store/stored.h"

/* r: whose it is; its SQLite reads the JSON. m: what is drawn, NULL for no picture. */
void pr_show_text(struct pr_buf *out, const struct pr_stored *r, const char *json,
                  const struct pr_model *m, const struct pr_look *look);
