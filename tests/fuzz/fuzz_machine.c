/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/stat and /proc/meminfo, read twice: counters never fall. The first byte says which, the
 * second where the first text ends. */
#include <math.h>

#include "core/machine.h"
#include "fuzz.h"

static void feed(struct pr_machine *m, int which, const uint8_t *data, size_t size)
{
    static const enum pr_machine_source_id ids[] = {MACHINE_sys_stat, MACHINE_sys_meminfo};
    char *text = fuzz_bytes(data, size);
    pr_devices_begin(&m->devices);
    for (int id = 0; id < METRIC_COUNT; id++)
        m->raw[id] = NAN;
    pr_machine_sources[ids[which]]->parse(m, text, size);
    pr_devices_settle(&m->devices, 1, m->sum);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_host host = {.page_size = 4096, .ticks_per_second = 100};
    struct pr_machine m;
    if (size < 2)
        return 0;
    size_t half = (size - 2) * data[1] / 255;
    pr_machine_init(&m, &host, ~0u);
    feed(&m, data[0] % 2, data + 2, half);
    feed(&m, data[0] % 2, data + 2 + half, size - 2 - half);
    for (size_t i = 0; i < m.devices.count; i++)
        for (int slot = 0; slot < DEVICE_VALUES; slot++)
            FUZZ_ASSERT(!(m.devices.items[i].out.value[slot] < 0));
    pr_machine_done(&m, true);
    return 0;
}
