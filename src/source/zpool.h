/* SPDX-License-Identifier: Apache-2.0 */
/* What the helper sends (core/space.h): a line "cpu SECONDS" of what it has used, with " failed"
 * behind where there was no answer, then what `zpool list -Hp -o name,size,allocated,free` wrote.
 */
#pragma once
#include <math.h>

#include "core/device.h"
#include "util/scan.h"

struct pr_zpool {
    char name[DEVICE_NAME];
    double total, used, free; /* NaN where zpool has "-" */
};

struct pr_zpool_head {
    double cpu;
    bool failed;
};

/* False where the text does not begin with one. */
bool pr_zpool_head(struct pr_scan *text, struct pr_zpool_head *ret);
/* The next line that is one; false at the end of the text. */
bool pr_zpool_next(struct pr_scan *text, struct pr_zpool *ret);
