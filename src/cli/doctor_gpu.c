/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_gpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"

#define WAIT   (3 * NS_PER_S)
#define ROUNDS 2 /* utilisation of processes is known from the second on */

/* The next round, or NULL where the driver does not answer. */
static struct pr_gpu_round *next_round(struct pr_gpu *g, struct pr_events *events)
{
    const struct timespec pause = {0, 5000000};
    const struct pr_entities nobody = {0};
    int64_t start = pr_clock_boot();
    pr_gpu_tell(g, &nobody, start, 100);
    for (;;) {
        int64_t now = pr_clock_boot();
        struct pr_gpu_round *r = pr_gpu_take(g, now, events, start);
        if (r || now - start > WAIT)
            return r;
        nanosleep(&pause, NULL);
    }
}

/* What was read once counts, though it is not read each time. */
static void keep_values(struct pr_gpu_round *now, double (*before)[DEVICE_VALUES])
{
    for (size_t i = 0; i < now->card_count; i++)
        for (int slot = 0; slot < DEVICE_VALUES; slot++)
            if (isnan(now->card[i].value[slot]))
                now->card[i].value[slot] = before[i][slot];
}

void pr_gpu_check(struct pr_gpu_check *c, const struct pr_host *host)
{
    struct pr_gpu_setting setting = {host, 100, 1000, false};
    static double before[GPU_DEVICES][DEVICE_VALUES];
    struct pr_events events;
    *c = (struct pr_gpu_check){0};
    if (!pr_gpu_expected(host, c->found, sizeof c->found))
        return;
    pr_events_init(&events);
    int r = pr_gpu_start(&c->gpu, &setting);
    if (r < 0)
        snprintf(c->found, sizeof c->found, "%s", strerror(-r));
    for (int i = 0; i < ROUNDS && r == 0; i++) {
        c->round = next_round(c->gpu, &events);
        if (!c->round || !c->round->card_count)
            break;
        c->usage |= c->round->usage_known;
        c->memory |= c->round->memory_known;
        if (i > 0)
            keep_values(c->round, before);
        for (size_t k = 0; k < c->round->card_count; k++)
            memcpy(before[k], c->round->card[k].value, sizeof before[k]);
    }
    if (c->round && c->round->card_count) {
        snprintf(c->found, sizeof c->found, "%zu: %s%s; see below", c->round->card_count,
                 c->round->card[0].model, c->round->card_count > 1 ? " and others" : "");
    } else if (r == 0) {
        const char *reason = pr_gpu_reason(c->gpu);
        snprintf(c->found, sizeof c->found, "%s", reason ? reason : "the driver does not answer");
        c->round = NULL;
    }
}

void pr_gpu_check_done(struct pr_gpu_check *c)
{
    pr_gpu_finish(c->gpu);
    pr_gpu_free(c->gpu, false);
}

/* Which are of the job, and not of the device. */
static bool is_of_job(enum pr_metric_id id)
{
    return id == METRIC_GPU_JOB_USAGE || id == METRIC_GPU_JOB_MEM;
}

/* What a device gives, and what not. True where it gives everything. */
static bool describe(const struct pr_gpu_card *card, struct pr_buf *out)
{
    enum pr_metric_id id;
    size_t known = 0, lacking = 0;
    struct pr_buf names = {0};
    for (int slot = 0; (id = pr_device_metric(DEVICE_GPU, slot)) != METRIC_NONE; slot++) {
        if (is_of_job(id) || (isnan(card->value[slot]) && !card->reason[slot]))
            continue; /* what has no reason comes later: rates, samples */
        if (!card->reason[slot]) {
            known++;
            continue;
        }
        pr_buf_printf(&names, "%s%s (%s)", lacking++ ? ", " : "", pr_metrics[id].key,
                      card->reason[slot]);
    }
    pr_buf_printf(out, "%s: %zu figures%s%s", card->model, known, lacking ? "; not " : "",
                  pr_buf_text(&names));
    pr_buf_done(&names);
    return !lacking;
}

void pr_gpu_check_lines(const struct pr_gpu_check *c, pr_gpu_line_fn *line, void *of)
{
    static const char how[] = "NVML, fdinfo";
    struct pr_buf text = {0};
    if (!c->round)
        return;
    for (size_t i = 0; i < c->round->card_count; i++) {
        pr_buf_reset(&text);
        bool all = describe(&c->round->card[i], &text);
        line(of, all, true, c->round->card[i].name, pr_buf_text(&text));
    }
    pr_buf_done(&text);
    const char *usage = c->round->no_usage, *memory = c->round->no_memory;
    line(of, c->usage, false, "use of each process", c->usage || !usage ? how : usage);
    line(of, c->memory, false, "memory of each process", c->memory || !memory ? how : memory);
}
