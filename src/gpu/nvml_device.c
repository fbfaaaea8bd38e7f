/* SPDX-License-Identifier: Apache-2.0 */
/* Readings of one NVIDIA device. What a device does not support is absent, with its reason, and
 * takes nothing else with it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "gpu/nvml_state.h"
#include "util/clock.h"

#define IDS(...)                                                                                   \
    (const enum pr_metric_id[]){__VA_ARGS__},                                                      \
        sizeof((const enum pr_metric_id[]){__VA_ARGS__}) / sizeof(enum pr_metric_id)

/* --- utilisation ------------------------------------------------------------------------------ */

#define PERIOD (NS_PER_S / 5) /* between two of the driver's samples of a device, about */

static double percent(union nvml_value v, unsigned type)
{
    return (type == 0 ? v.d : type == 1 ? v.u : (double)v.ull) / 100;
}

/* Takes what is new in the buffer: a burst between two readings is in it. False where that is
 * nothing. */
static bool take_samples(struct nvml *n, struct nvml_window *window, unsigned count, unsigned type)
{
    double sum = 0, most = 0;
    unsigned long long newest = window->seen;
    unsigned used = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct nvml_sample *s = &n->samples[i];
        double v = percent(s->value, type);
        if (s->time <= window->seen || !(v >= 0 && v <= 1))
            continue;
        sum += v;
        most = fmax(most, v);
        newest = s->time > newest ? s->time : newest;
        used++;
    }
    window->seen = newest;
    window->mean = used ? sum / used : NAN;
    window->most = used ? most : NAN;
    return used;
}

/* What the driver has sampled since the reading before. 0, or -EAGAIN where that is nothing. */
static int read_window(struct nvml *n, const struct nvml_device *d, struct nvml_window *window)
{
    unsigned type = 1, count = NVML_BUFFER;
    unsigned long long now = (unsigned long long)pr_clock_wall() / 1000;
    bool first = !window->seen;
    int result =
        n->api.samples(d->handle, NVML_SAMPLES_GPU, window->seen, &type, &count, n->samples);
    if (result == NVML_OK) {
        bool any = take_samples(n, window, count, type);
        return any && !first ? 0 : -EAGAIN; /* the first is about the time before */
    }
    if (result == NVML_NOT_FOUND) {
        window->seen = first ? now : window->seen;
        return -EAGAIN;
    }
    window->absent = result == NVML_NOT_SUPPORTED || result == NVML_NO_FUNCTION;
    return result == NVML_LOST ? -ENODEV : window->absent ? -ENOTSUP : -EIO;
}

/* What was seen another way is not taken again. The driver's times are those of the wall. */
static void skip_window(struct nvml_window *window)
{
    unsigned long long now = (unsigned long long)pr_clock_wall() / 1000;
    if (window->seen && window->seen < now && now - window->seen < 60000000)
        window->seen = now;
}

static int read_rates(struct nvml *n, struct pr_gpu_work *w, unsigned card, bool memory_alone)
{
    struct nvml_rates rates;
    struct pr_gpu_card *c = &w->round->card[card];
    int result =
        n->api.rates ? n->api.rates(pr_nvml_device(n, card)->handle, &rates) : NVML_NO_FUNCTION;
    if (result == NVML_OK) {
        pr_gpu_put(c, METRIC_GPU_MEM_UTIL, rates.memory / 100.0);
        if (!memory_alone)
            pr_gpu_put(c, METRIC_GPU_UTIL, rates.gpu / 100.0);
    }
    return pr_nvml_result(c, result,
                          (const enum pr_metric_id[]){METRIC_GPU_MEM_UTIL, METRIC_GPU_UTIL},
                          memory_alone ? 1 : 2);
}

/* The driver's latest sample costs little, its buffer 1.5 ms of CPU: that is asked where more than
 * one sample has passed. */
int pr_nvml_util(void *state, struct pr_gpu_work *w, unsigned card)
{
    struct nvml *n = state;
    struct nvml_device *d = pr_nvml_device(n, card);
    struct pr_gpu_card *c = &w->round->card[card];
    int64_t now = pr_clock_boot();
    d->gpu.absent |= !n->api.samples;
    bool sampled = d->gpu.at && now - d->gpu.at < PERIOD * 3 / 2;
    int r = d->gpu.absent ? -ENOTSUP : sampled ? -EAGAIN : read_window(n, d, &d->gpu);
    if (r == -ENODEV)
        return r;
    if (r == -ENOTSUP)
        pr_gpu_lacks(c, METRIC_GPU_UTIL_MAX, "the driver keeps no samples of this device");
    if (sampled)
        skip_window(&d->gpu);
    d->gpu.at = now;
    int rates = read_rates(n, w, card, r == 0);
    double latest = c->value[pr_device_slot(DEVICE_GPU, METRIC_GPU_UTIL)];
    if (r == 0)
        pr_gpu_put(c, METRIC_GPU_UTIL, d->gpu.mean);
    if (r != -ENOTSUP)
        pr_gpu_put(c, METRIC_GPU_UTIL_MAX, r == 0 ? d->gpu.most : latest);
    return r == 0 ? 0 : rates;
}

/* --- the rest --------------------------------------------------------------------------------- */

int pr_nvml_memory(void *state, struct pr_gpu_work *w, unsigned card)
{
    struct nvml *n = state;
    void *handle = pr_nvml_device(n, card)->handle;
    struct pr_gpu_card *c = &w->round->card[card];
    struct nvml_memory_v2 two = {.version = NVML_MEMORY_V2};
    struct nvml_memory one;
    int result = n->api.memory_v2 ? n->api.memory_v2(handle, &two) : NVML_NO_FUNCTION;
    if (result == NVML_OK) {
        pr_gpu_put(c, METRIC_GPU_MEM_RESERVED, (double)two.reserved);
        one = (struct nvml_memory){two.total, two.free, two.used};
    } else if (result != NVML_LOST) { /* there, what is reserved counts as used */
        pr_gpu_lacks(c, METRIC_GPU_MEM_RESERVED, "this driver is too old for it");
        result = n->api.memory ? n->api.memory(handle, &one) : NVML_NO_FUNCTION;
    }
    if (result == NVML_OK) {
        pr_gpu_put(c, METRIC_GPU_MEM_USED, (double)one.used);
        pr_gpu_put(c, METRIC_GPU_MEM_TOTAL, (double)one.total);
    }
    return pr_nvml_result(c, result, IDS(METRIC_GPU_MEM_USED, METRIC_GPU_MEM_TOTAL));
}

static double field_value(const struct nvml_field *f)
{
    return f->result != NVML_OK ? NAN
           : f->type == 0       ? f->value.d
           : f->type == 1       ? f->value.u
                                : (double)f->value.ull;
}

/* Watts that a call or a field has brought, or the reason why it has not. */
static int put_power(struct pr_gpu_card *c, enum pr_metric_id id, int result, double milliwatts)
{
    if (result == NVML_OK && milliwatts > 0)
        pr_gpu_put(c, id, milliwatts / 1000);
    return pr_nvml_result(c, result, &id, 1);
}

/* The instant's power costs a thousandth of the mean's, and the limit is to be had with it. */
int pr_nvml_power(void *state, struct pr_gpu_work *w, unsigned card)
{
    struct nvml *n = state;
    struct nvml_device *d = pr_nvml_device(n, card);
    struct pr_gpu_card *c = &w->round->card[card];
    struct nvml_field f[2] = {{.id = NVML_FIELD_POWER, .result = NVML_NOT_SUPPORTED},
                              {.id = NVML_FIELD_POWER_LIMIT, .result = NVML_NOT_SUPPORTED}};
    unsigned power = 0, limit = 0;
    int result;
    d->no_instant_power |= !n->api.fields;
    if (!d->no_instant_power) {
        result = n->api.fields(d->handle, 2, f);
        if (result == NVML_LOST || f[0].result == NVML_LOST)
            return put_power(c, METRIC_GPU_POWER, NVML_LOST, 0);
        d->no_instant_power = result != NVML_OK || !(field_value(&f[0]) > 0);
    }
    if (!d->no_instant_power) {
        put_power(c, METRIC_GPU_POWER_LIMIT, f[1].result, field_value(&f[1]));
        return put_power(c, METRIC_GPU_POWER, NVML_OK, field_value(&f[0]));
    }
    result = n->api.power_limit ? n->api.power_limit(d->handle, &limit) : NVML_NO_FUNCTION;
    put_power(c, METRIC_GPU_POWER_LIMIT, result, limit);
    result = n->api.power ? n->api.power(d->handle, &power) : NVML_NO_FUNCTION;
    return put_power(c, METRIC_GPU_POWER, result, power);
}

int pr_nvml_energy(void *state, struct pr_gpu_work *w, unsigned card)
{
    struct nvml *n = state;
    struct pr_gpu_card *c = &w->round->card[card];
    unsigned long long millijoules;
    int result = n->api.energy ? n->api.energy(pr_nvml_device(n, card)->handle, &millijoules)
                               : NVML_NO_FUNCTION;
    if (result == NVML_OK) {
        c->sure_energy = true;
        pr_gpu_put(c, METRIC_GPU_ENERGY, (double)millijoules / 1000);
    }
    return pr_nvml_result(c, result, IDS(METRIC_GPU_ENERGY));
}

int pr_nvml_temperature(void *state, struct pr_gpu_work *w, unsigned card)
{
    struct nvml *n = state;
    struct pr_gpu_card *c = &w->round->card[card];
    unsigned v;
    int result = n->api.temperature ? n->api.temperature(pr_nvml_device(n, card)->handle, 0, &v)
                                    : NVML_NO_FUNCTION;
    if (result == NVML_OK)
        pr_gpu_put(c, METRIC_GPU_TEMP, v);
    return pr_nvml_result(c, result, IDS(METRIC_GPU_TEMP));
}

int pr_nvml_clocks(void *state, struct pr_gpu_work *w, unsigned card)
{
    static const struct {
        unsigned which;
        enum pr_metric_id id;
    } rows[] = {{NVML_CLOCK_SM, METRIC_GPU_CLOCK_SM}, {NVML_CLOCK_MEM, METRIC_GPU_CLOCK_MEM}};
    struct nvml *n = state;
    struct pr_gpu_card *c = &w->round->card[card];
    int r = -ENOTSUP;
    for (size_t i = 0; i < 2; i++) {
        unsigned megahertz;
        int result = n->api.clock
                         ? n->api.clock(pr_nvml_device(n, card)->handle, rows[i].which, &megahertz)
                         : NVML_NO_FUNCTION;
        if (result == NVML_OK)
            pr_gpu_put(c, rows[i].id, megahertz * 1e6);
        int one = pr_nvml_result(c, result, &rows[i].id, 1);
        if (one == -ENODEV)
            return one;
        r = one == 0 ? 0 : r; /* one of them is worth asking for again */
    }
    return r;
}

/* --- what happens ----------------------------------------------------------------------------- */

#define THROTTLE_SAID 8 /* for each device: it may go to and fro all the time */

/* Idle clocks and those that somebody chose are no news. */
static void say_throttle(struct pr_gpu_work *w, struct nvml_device *d, const struct pr_gpu_card *c,
                         unsigned long long bits)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{4, "power cap"},
                 {8, "hardware slowdown"},
                 {32, "temperature"},
                 {64, "hardware thermal"},
                 {128, "power brake"}};
    unsigned long long now = 0;
    char text[120] = "";
    int used = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(bits & names[i].bit))
            continue;
        now |= names[i].bit;
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s", used ? ", " : "",
                         names[i].name);
    }
    if (now == d->reasons || d->throttle_said >= THROTTLE_SAID)
        return;
    d->throttle_said++;
    pr_gpu_say(w, "%s: %s%s%s", c->name, now ? GPU_HELD_DOWN : "clocks are no longer held down",
               text, d->throttle_said == THROTTLE_SAID ? " (later changes are not said)" : "");
    d->reasons = now;
}

int pr_nvml_throttle(void *state, struct pr_gpu_work *w, unsigned card)
{
    struct nvml *n = state;
    struct nvml_device *d = pr_nvml_device(n, card);
    struct pr_gpu_card *c = &w->round->card[card];
    unsigned long long bits;
    int result = n->api.reasons ? n->api.reasons(d->handle, &bits) : NVML_NO_FUNCTION;
    if (result == NVML_OK) {
        pr_gpu_put(c, METRIC_GPU_THROTTLE, (double)bits);
        say_throttle(w, d, c, bits);
    }
    return pr_nvml_result(c, result, IDS(METRIC_GPU_THROTTLE));
}

int pr_nvml_pcie(void *state, struct pr_gpu_work *w, unsigned card)
{
    static const enum pr_metric_id ids[] = {METRIC_GPU_PCIE_RX, METRIC_GPU_PCIE_TX};
    struct nvml *n = state;
    struct nvml_device *d = pr_nvml_device(n, card);
    struct pr_gpu_card *c = &w->round->card[card];
    struct nvml_field f[2] = {{.id = NVML_FIELD_PCIE_RX}, {.id = NVML_FIELD_PCIE_TX}};
    int result = n->api.fields ? n->api.fields(d->handle, 2, f) : NVML_NO_FUNCTION;
    if (result == NVML_OK && f[0].result != NVML_OK)
        result = f[0].result;
    int64_t now = pr_clock_boot();
    double seconds = d->pcie_at ? pr_seconds(now - d->pcie_at) : NAN;
    for (size_t i = 0; i < 2 && result == NVML_OK; i++) {
        unsigned long long v = (unsigned long long)field_value(&f[i]);
        if (v >= d->pcie[i]) /* else it began anew */
            pr_gpu_put(c, ids[i], (double)(v - d->pcie[i]) / seconds);
        d->pcie[i] = v;
        d->pcie_at = now;
    }
    return pr_nvml_result(c, result, ids, 2);
}

static void ask_for_events(struct nvml *n, struct nvml_device *d)
{
    const struct nvml_api *api = &n->api;
    d->events_asked = true;
    if (!api->event_set || !api->event_ask || !api->event_wait)
        return;
    if (!n->events && api->event_set(&n->events) != NVML_OK)
        n->events = NULL;
    if (n->events)
        api->event_ask(d->handle, NVML_EVENT_XID, n->events);
}

/* Never waits: what has happened is there. */
static void take_events(struct nvml *n, struct pr_gpu_work *w)
{
    struct nvml_event event;
    for (int i = 0; i < 16 && n->events && n->api.event_wait(n->events, &event, 0) == NVML_OK; i++)
        for (unsigned k = 0; k < n->count; k++)
            if (n->device[k].handle == event.device && (event.type & NVML_EVENT_XID))
                pr_gpu_say(w, "%s: the driver reports Xid error %llu",
                           w->round->card[n->first + k].name, event.data);
}

int pr_nvml_errors(void *state, struct pr_gpu_work *w, unsigned card)
{
    struct nvml *n = state;
    struct nvml_device *d = pr_nvml_device(n, card);
    unsigned long long errors;
    if (d->part)
        return -ENOTSUP;
    if (!d->events_asked)
        ask_for_events(n, d);
    take_events(n, w);
    int result =
        n->api.ecc ? n->api.ecc(d->handle, NVML_ECC_UNCORRECTED, 0, &errors) : NVML_NO_FUNCTION;
    if (result == NVML_LOST)
        return -ENODEV;
    if (result != NVML_OK)
        return n->events ? -EAGAIN : -ENOTSUP;
    if (d->ecc_known && errors > d->ecc)
        pr_gpu_say(w, "%s: %llu memory errors that ECC could not correct",
                   w->round->card[card].name, errors - d->ecc);
    d->ecc_known = true;
    d->ecc = errors;
    return 0;
}
