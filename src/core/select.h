/* SPDX-License-Identifier: Apache-2.0 */
/* Which metrics are wanted, and so which readings are made. */
#pragma once
#include <stdbool.h>

#include "core/error.h"
#include "core/metric.h"

struct pr_config;

struct pr_select {
    bool shown[METRIC_COUNT]; /* those that go out */
    unsigned reads; /* READ_ bits that they need, directly or through what they derive from */
};

/* Checks a key or a family ("cpu.*"). 0 or -EINVAL. */
int pr_select_check(const char *key, const char *what, struct proctor_error *err);
struct pr_select pr_select_of(const struct pr_config *c);

static inline bool pr_selected(const struct pr_select *s, int id)
{
    return s->shown[id];
}
