/* SPDX-License-Identifier: Apache-2.0 */
/* The vendors, and what they share. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    if (r->use_count == GPU_USES) {
        r->cut = true;
        return NULL;
    }
    struct pr_gpu_use *use = &r->use[r->use_count++];
    *use = (struct pr_gpu_use){pid, card, NAN, NAN, false};
    return use;
}

void pr_gpu_round_copy(struct pr_gpu_round *to, const struct pr_gpu_round *from)
{
    memcpy(to, from, offsetof(struct pr_gpu_round, card));
    memcpy(to->card, from->card, from->card_count * sizeof *to->card);
    memcpy(to->use, from->use, from->use_count * sizeof *to->use);
}

static void merge_card(struct pr_gpu_card *to, const struct pr_gpu_card *from)
{
    double value[DEVICE_VALUES];
    memcpy(value, to->value, sizeof value);
    *to = *from;
    for (int slot = 0; slot < DEVICE_VALUES; slot++)
        if (isnan(to->value[slot]) && !from->lost)
            to->value[slot] = value[slot];
}

/* Memory and usage are told by different calls: each is of the newest round that knows it. */
static void merge_uses(struct pr_gpu_round *to, const struct pr_gpu_round *from, bool memory,
                       bool usage)
{
    size_t kept = 0;
    for (size_t i = 0; i < to->use_count; i++) {
        struct pr_gpu_use u = to->use[i];
        u.memory = memory ? NAN : u.memory;
        u.usage = usage ? NAN : u.usage;
        u.on &= !memory;
        if (u.on || !isnan(u.memory) || !isnan(u.usage))
            to->use[kept++] = u;
    }
    to->use_count = kept;
    for (size_t i = 0; i < from->use_count; i++) {
        const struct pr_gpu_use *f = &from->use[i];
        struct pr_gpu_use *u = pr_gpu_use_of(to, f->pid, f->card);
        if (!u)
            return;
        u->memory = memory ? f->memory : u->memory;
        u->usage = usage ? f->usage : u->usage;
        u->on |= f->on;
    }
}

void pr_gpu_round_merge(struct pr_gpu_round *to, const struct pr_gpu_round *from)
{
    bool memory = from->memory_known || !to->memory_known;
    bool usage = from->usage_known || !to->usage_known;
    for (size_t i = 0; i < from->card_count; i++)
        merge_card(&to->card[i], &from->card[i]);
    to->cut = false;
    merge_uses(to, from, memory, usage);
    to->memory_whole = memory ? from->memory_whole : to->memory_whole;
    to->usage_whole = usage ? from->usage_whole : to->usage_whole;
    to->memory_known = !to->cut && (to->memory_known || from->memory_known);
    to->usage_known = !to->cut && (to->usage_known || from->usage_known);
    to->no_memory = from->no_memory;
    to->no_usage = from->no_usage;
    to->card_count = from->card_count;
    to->at = from->at;
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
