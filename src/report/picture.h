/* SPDX-License-Identifier: Apache-2.0 */
/* A run at a glance, for a terminal: curves on one axis of time, bars for limits, phases and events
 * below. */
#pragma once
#include "report/model.h"
#include "report/page.h"

/* Nothing where the terminal is too narrow, or nothing is known. */
void pr_picture(struct pr_page *page, const struct pr_model *m);
/* A line for each finding, coloured by how bad it is. */
void pr_picture_findings(struct pr_page *page, const struct pr_model *m);
