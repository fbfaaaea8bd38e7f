/* SPDX-License-Identifier: Apache-2.0 */
/* What the tick has taken from the GPU thread, as devices of the machine. */
#include <math.h>
#include <string.h>

#include "core/gpu.h"
#include "core/machine.h"

static double value_of(const struct pr_gpu_card *c, enum pr_metric_id id)
{
    return c->value[pr_device_slot(DEVICE_GPU, id)];
}

static void add(double *sum, double v)
{
    if (!isnan(v))
        *sum = isnan(*sum) ? v : *sum + v;
}

static void put_card(struct pr_machine *m, struct pr_gpu_card *c)
{
    enum pr_metric_id id;
    struct pr_device_state *d = pr_devices_get(&m->devices, DEVICE_GPU, c->name, strlen(c->name));
    if (!d)
        return;
    d->out.counted = !c->part;
    d->out.model = c->model;
    d->out.uuid = c->uuid;
    for (int slot = 0; (id = pr_device_metric(DEVICE_GPU, slot)) != METRIC_NONE; slot++)
        pr_device_put(d, id, c->value[slot]);
    if (!c->part) {
        double util = value_of(c, METRIC_GPU_UTIL);
        add(&m->raw[METRIC_SYSTEM_GPU_USAGE], util);
        add(&m->raw[METRIC_SYSTEM_GPU_COUNT], isnan(util) ? NAN : util > 0);
        add(&m->raw[METRIC_SYSTEM_GPU_MEM], value_of(c, METRIC_GPU_MEM_USED));
    }
    pr_values_none(c->value, DEVICE_VALUES);
}

static int gpu_read(struct pr_machine *m, const struct pr_tick *t, void **state)
{
    (void)t, (void)state;
    for (size_t i = 0; m->gpus && i < m->gpus->count; i++)
        if (!m->gpus->card[i].lost)
            put_card(m, &m->gpus->card[i]);
    const char *reason = pr_gpu_reason(m->gpu);
    if (reason)
        pr_machine_explain(m, MACHINE_gpu, "%s", reason);
    return 0;
}

const struct pr_machine_source pr_machine_source_gpu = {
    .name = "GPU drivers", .gives = READ_GPU, .read = gpu_read};
