/* SPDX-License-Identifier: Apache-2.0 */
/* How statistics look in JSON: the same for a run, a name and a phase. */
#pragma once
#include "core/stats.h"
#include "util/json.h"

/* The key of a metric, and an object. each: what single processes had, NULL where that is not
 * asked. */
void pr_stats_put(struct pr_json *j, const struct pr_stats *s, enum pr_metric_id id,
                  const struct pr_stat *each);
/* Members of an object that is open. */
void pr_quantiles_put(struct pr_json *j, const double *quantile);
