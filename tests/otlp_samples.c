/* SPDX-License-Identifier: Apache-2.0 */
/* Two known samples as a request for an OpenTelemetry collector, on standard output: protobuf, or
 * with the argument `json` that. Each metric has its number in the table, and a half more in the
 * second sample; mem.pss is absent. tests/project/test_otlp.py decodes it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "sink/otlp.h"

static void fill(struct proctor_snapshot *s, int number)
{
    s->elapsed = (number + 1) * INT64_C(1000000000);
    s->time = INT64_C(1700000000123456789) + s->elapsed;
    for (int id = 0; id < METRIC_COUNT; id++)
        s->value[id] = id + number * 0.5;
    s->value[METRIC_MEM_PSS] = NAN;
    s->matches[0].name = "w\xff\"";
    pr_values_none(s->matches[0].value, PROC_METRICS);
    s->matches[0].value[METRIC_MEM_RSS] = 1000 + number;
    s->match_count = 1;
    s->devices[0] = (struct pr_device){
        .kind = DEVICE_GPU, .name = "0", .model = "Model", .uuid = "GPU-1", .counted = true};
    s->devices[1] = (struct pr_device){.kind = DEVICE_DISK, .name = "sda"};
    for (int slot = 0; slot < DEVICE_VALUES; slot++)
        s->devices[0].value[slot] = s->devices[1].value[slot] = slot + number * 0.25;
    s->device_count = 2;
}

int main(int argc, char **argv)
{
    static struct proctor_snapshot samples[2];
    static char *words[] = {"/usr/bin/train", "--secret=x", NULL};
    const struct pr_sink_job job = {.argv = words};
    struct pr_otlp_attribute resource[8];
    struct pr_config config;
    struct pr_buf out = {0};
    if (pr_config_init(&config) < 0)
        return 1;
    for (int i = 0; i < 2; i++) {
        if (!pr_snapshot_reserve(&samples[i], 0, 2) || !pr_snapshot_reserve_matches(&samples[i], 1))
            return 1;
        fill(&samples[i], i);
    }
    const struct pr_sink_setting setting = {
        .name = "a job", .run_id = "20260101T000000Z-0a1b2c3d", .job = &job};
    const struct pr_otlp of = {.select = pr_select_of(&config),
                               .resource = resource,
                               .resource_count = pr_otlp_resource(&setting, "host1", resource, 8),
                               .version = "1.2"};
    pr_otlp_write(&out, argc > 1 && strcmp(argv[1], "json") == 0, &of, samples, 2);
    bool written = !out.failed && fwrite(out.data, 1, out.len, stdout) == out.len;
    for (int i = 0; i < 2; i++)
        pr_snapshot_done(&samples[i]);
    pr_config_done(&config);
    pr_buf_done(&out);
    return written && fflush(stdout) == 0 ? 0 : 1;
}
