/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "core/machine.h"

static int read_it(struct pr_machine *m, const struct pr_tick *t, void **state)
{
    (void)m, (void)t, (void)state;
    return -ENOSYS;
}

const struct pr_machine_source pr_machine_source_sys_disk = {
    .name = "sys_disk", .gives = READ_DISKS, .read = read_it};
