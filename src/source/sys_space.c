/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "core/machine.h"

static int read_it(struct pr_machine *m, const struct pr_tick *t, void **state)
{
    (void)m, (void)t, (void)state;
    return -ENOSYS;
}

const struct pr_machine_source pr_machine_source_sys_space = {
    .name = "sys_space", .gives = READ_SPACE, .read = read_it};
