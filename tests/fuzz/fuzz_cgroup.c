/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/cgroup and the files of a cgroup. The first byte says which. */
#include <math.h>

#include "fuzz.h"
#include "source/cgroup_files.h"
#include "source/cgroup_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const controllers[] = {"", "memory", "cpu", "pids"};
    char path[64];
    double raw[METRIC_COUNT];
    if (size == 0)
        return 0;
    char *text = fuzz_bytes(data + 1, size - 1);
    if (pr_cgroup_path_of(text, size - 1, controllers[*data % 4], path, sizeof path))
        FUZZ_ASSERT(path[0] == '/' && strnlen(path, sizeof path) < sizeof path);
    for (int id = 0; id < METRIC_COUNT; id++)
        raw[id] = NAN;
    pr_cgroup_parse(&pr_cgroup_files[*data % CGROUP_FILES], text, size - 1, raw);
    for (int id = 0; id < METRIC_COUNT; id++)
        FUZZ_ASSERT(isnan(raw[id]) || raw[id] >= 0);
    free(text);
    return 0;
}
