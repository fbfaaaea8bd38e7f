/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "report/model.h"

/* The charts of the first screen, a few lines for each series; each column shows the most in its
 * time, a point is a gap. */
void pr_text_charts(struct pr_buf *out, const struct pr_model *m);
