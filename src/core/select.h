/* SPDX-License-Identifier: Apache-2.0 */
/* Which metrics are wanted, and so which readings are made. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/metric.h"

struct pr_config;

struct pr_select {
    uint64_t shown; /* a bit for each metric that goes out */
    unsigned
        reads; /* READ_ bits that the shown ones need, directly or through what they derive from */
};

/* Checks a key or a family ("cpu.*"). 0 or -EINVAL. */
int pr_select_check(const char *key, const char *what, struct proctor_error *err);
struct pr_select pr_select_of(const struct pr_config *c);

static inline bool pr_selected(const struct pr_select *s, int id)
{
    return s->shown >> id & 1;
}
