/* SPDX-License-Identifier: Apache-2.0 */
/* mountinfo: which file systems may be asked, and where cgroups are mounted. */
#include "fuzz.h"
#include "source/local_mounts.h"
#include "source/mountinfo.h"

/* Every second one does not answer. */
static bool ask(void *data, const struct pr_local_mount *mount)
{
    int *asked = data;
    FUZZ_ASSERT(mount->point[0] == '/' && mount->device);
    return ++*asked % 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int asked = 0;
    struct pr_mount m;
    char *text = fuzz_bytes(data, size), point[64];
    struct pr_scan s = pr_scan_of(text, size);
    while (pr_mount_next(&s, &m))
        if (pr_mount_unescape(m.point, point, sizeof point))
            FUZZ_ASSERT(strnlen(point, sizeof point) < sizeof point);
    pr_local_mounts(text, size, ask, &asked);
    free(text);
    return 0;
}
