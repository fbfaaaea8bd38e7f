/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the model's JSON share. */
#pragma once
#include "report/model_parts.h"
#include "util/json.h"

/* What a unit is called there. */
const char *pr_model_unit(enum pr_unit unit);
void pr_put_text(struct pr_json *j, const char *key, const char *value);
void pr_put_number(struct pr_json *j, const char *key, double value);
void pr_put_figures(struct pr_json *j, const char *key, const struct pr_figures *f);
/* The members of a value that is made of series. */
void pr_put_value(struct pr_json *j, const struct pr_model *m, const struct pr_value_of *v);
/* time, late, series, tiles, charts. */
void pr_put_curves(struct pr_json *j, const struct pr_model *m);
/* "good", "note", "warn", "bad". */
const char *pr_severity_name(enum pr_severity severity);
