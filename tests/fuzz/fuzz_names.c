/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/cmdline: what a process is called. */
#include "core/match.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_names names = {.count = 0};
    char *text = fuzz_text(data, size);
    pr_names_of(text, size, &names);
    FUZZ_ASSERT(names.count >= 0 && names.count <= NAMES_MOST);
    for (int i = 0; i < names.count; i++)
        FUZZ_ASSERT(*names.text[i] && strnlen(names.text[i], NAME_SIZE) < NAME_SIZE);
    free(text);
    return 0;
}
