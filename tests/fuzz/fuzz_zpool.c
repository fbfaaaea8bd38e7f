/* SPDX-License-Identifier: Apache-2.0 */
/* What `zpool list -Hp` writes. */
#include "fuzz.h"
#include "source/zpool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_zpool_head head;
    struct pr_zpool pool;
    char *text = fuzz_bytes(data, size);
    struct pr_scan s = pr_scan_of(text, size);
    if (pr_zpool_head(&s, &head))
        FUZZ_ASSERT(head.cpu >= 0);
    while (pr_zpool_next(&s, &pool))
        FUZZ_ASSERT(*pool.name && strnlen(pool.name, sizeof pool.name) < sizeof pool.name &&
                    pool.total >= 0);
    free(text);
    return 0;
}
