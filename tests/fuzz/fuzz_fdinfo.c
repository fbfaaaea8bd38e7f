/* SPDX-License-Identifier: Apache-2.0 */
/* What DRM drivers write into /proc/PID/fdinfo. */
#include <math.h>

#include "fuzz.h"
#include "gpu/drm_fdinfo.h"

static void check_name(const char *name)
{
    FUZZ_ASSERT(strnlen(name, DRM_NAME) < DRM_NAME);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_drm_client c;
    char *text = fuzz_bytes(data, size);
    bool is_one = pr_drm_parse(text, size, &c);
    FUZZ_ASSERT(is_one == (*c.driver != '\0'));
    FUZZ_ASSERT(c.engine_count <= DRM_ENGINES && c.region_count <= DRM_REGIONS);
    check_name(c.driver);
    check_name(c.slot);
    for (size_t i = 0; i < c.engine_count; i++) {
        check_name(c.engine[i].name);
        FUZZ_ASSERT(*c.engine[i].name && c.engine[i].capacity > 0 && !(c.engine[i].ns < 0));
        for (size_t k = 0; k < i; k++)
            FUZZ_ASSERT(strcmp(c.engine[i].name, c.engine[k].name) != 0);
    }
    for (size_t i = 0; i < c.region_count; i++) {
        check_name(c.region[i].name);
        FUZZ_ASSERT(*c.region[i].name && c.region[i].bytes >= 0);
    }
    double memory = pr_drm_memory(&c);
    FUZZ_ASSERT(isnan(memory) == (c.region_count == 0) && !(memory < 0));
    free(text);
    return 0;
}
