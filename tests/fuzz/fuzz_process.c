/* SPDX-License-Identifier: Apache-2.0 */
/* The other files of a process: statm, io, status, schedstat. The first byte says which. */
#include <math.h>

#include "core/source.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum pr_source_id which[] = {SOURCE_pid_statm, SOURCE_pid_io, SOURCE_pid_status,
                                              SOURCE_pid_sched};
    struct pr_host host = {.page_size = 4096, .ticks_per_second = 100};
    struct pr_tick t = {.host = &host};
    struct pr_entities set = {0};
    struct pr_entity *e = pr_entities_add(&set, 1, 1);
    if (size == 0 || !e) {
        pr_entities_done(&set);
        return 0;
    }
    const struct pr_source *s = pr_sources[which[*data % (sizeof which / sizeof *which)]];
    char *text = fuzz_bytes(data + 1, size - 1);
    s->parse(&t, e, text, size - 1);
    for (int id = 0; id < PROC_METRICS; id++)
        FUZZ_ASSERT(isnan(e->value[id]) || e->value[id] >= 0);
    free(text);
    pr_entities_done(&set);
    return 0;
}
