/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/stat: comm may hold anything. */
#include "core/stat_line.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_stat_line line;
    char *text = fuzz_bytes(data, size);
    if (pr_stat_line_parse(text, size, &line))
        FUZZ_ASSERT(strnlen(line.comm, sizeof line.comm) < sizeof line.comm);
    free(text);
    return 0;
}
