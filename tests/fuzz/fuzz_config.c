/* SPDX-License-Identifier: Apache-2.0 */
/* A config file. */
#include "core/config.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_config c;
    struct proctor_error err = {0};
    char *text = fuzz_text(data, size);
    if (memmem(text, size, "match", 5)) { /* the C library's compiler of patterns is not ours */
        free(text);
        return 0;
    }
    FUZZ_ASSERT(pr_config_init(&c) == 0);
    int r = pr_config_text(&c, CMD_RUN | CMD_ATTACH | CMD_SYSTEM, text, size, "file", &err);
    FUZZ_ASSERT(r == 0 || (r < 0 && *err.message));
    FUZZ_ASSERT(c.interval >= 0.001 && c.budget > 0);
    pr_config_done(&c);
    free(text);
    return 0;
}
