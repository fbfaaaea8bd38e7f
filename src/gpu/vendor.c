/* SPDX-License-Identifier: Apache-2.0 */
/* The vendors, and what they share. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "gpu/gpu.h"
#include "util/clock.h"

const struct pr_gpu_vendor *const pr_gpu_vendors[GPU_VENDORS] = {&pr_gpu_nvml, &pr_gpu_drm};

bool pr_gpu_expected(const struct pr_host *host, char *why, size_t size)
{
    int used = snprintf(why, size, "there is no GPU: ");
    for (size_t i = 0; i < GPU_VENDORS; i++) {
        char part[80] = "";
        if (pr_gpu_vendors[i]->expected(host, part, sizeof part))
            return true;
        used += snprintf(why + used, size - (size_t)used, "%s%s", i ? "; " : "", part);
        if (used >= (int)size)
            break;
    }
    return false;
}

struct pr_gpu_card *pr_gpu_add_card(struct pr_gpu_work *w)
{
    if (w->round->card_count == GPU_DEVICES)
        return NULL;
    struct pr_gpu_card *c = &w->round->card[w->round->card_count++];
    *c = (struct pr_gpu_card){0};
    pr_values_none(c->value, DEVICE_VALUES);
    return c;
}

void pr_gpu_put(struct pr_gpu_card *c, enum pr_metric_id id, double v)
{
    int slot = pr_device_slot(DEVICE_GPU, id);
    c->value[slot] = v;
    if (!isnan(v))
        c->reason[slot] = NULL;
}

void pr_gpu_lacks(struct pr_gpu_card *c, enum pr_metric_id id, const char *reason)
{
    c->reason[pr_device_slot(DEVICE_GPU, id)] = reason;
}

struct pr_gpu_use *pr_gpu_use_of(struct pr_gpu_round *r, pid_t pid, unsigned card)
{
    for (size_t i = 0; i < r->use_count; i++)
        if (r->use[i].pid == pid && r->use[i].card == card)
            return &r->use[i];
    if (r->use_count == GPU_USES)
        return NULL;
    struct pr_gpu_use *use = &r->use[r->use_count++];
    *use = (struct pr_gpu_use){pid, card, NAN, NAN};
    return use;
}

void pr_gpu_say(struct pr_gpu_work *w, const char *format, ...)
{
    va_list args;
    if (w->note_count == GPU_NOTES)
        return;
    struct pr_gpu_note *note = &w->note[w->note_count++];
    note->at = pr_clock_boot();
    va_start(args, format);
    vsnprintf(note->text, sizeof note->text, format, args);
    va_end(args);
}
