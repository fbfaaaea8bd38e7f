/* SPDX-License-Identifier: Apache-2.0 */
/* A libnvidia-ml.so.1 without a driver: it says what a script has it say (script.c). With OLD it is
 * a library of long ago: first versions of symbols and structures only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"

#define PUBLIC __attribute__((visibility("default")))
#define SAMPLE 0.02 /* seconds between two of the driver's samples of a device */
#define STEP   0.1  /* and between two of processes */

static int put(void *device, const char *call, unsigned *v, double otherwise)
{
    const struct device *d = of(device);
    int r = answer(d, call);
    if (r == OK)
        *v = (unsigned)value(d, call, otherwise);
    return r;
}

#define GET(name, call, otherwise)                                                                 \
    PUBLIC int name(void *device, unsigned *v);                                                    \
    PUBLIC int name(void *device, unsigned *v)                                                     \
    {                                                                                              \
        return put(device, call, v, otherwise);                                                    \
    }

/* --- the library ------------------------------------------------------------------------------ */

#ifdef OLD
#define V2(name) name
#define V3(name) name
#else
#define V2(name) name##_v2
#define V3(name) name##_v3
#endif

PUBLIC int V2(nvmlInit)(void);
PUBLIC int V2(nvmlInit)(void)
{
    load();
    struct device all = {.id = "all"};
    answer(&all, "init");
    return init_code;
}

PUBLIC int nvmlShutdown(void);
PUBLIC int nvmlShutdown(void)
{
    return OK;
}

PUBLIC const char *nvmlErrorString(int code);
PUBLIC const char *nvmlErrorString(int code)
{
    static char text[32];
    snprintf(text, sizeof text, "fake error %d", code);
    return text;
}

PUBLIC int V2(nvmlDeviceGetCount)(unsigned *count);
PUBLIC int V2(nvmlDeviceGetCount)(unsigned *count)
{
    *count = 0;
    while (nth(*count))
        ++*count;
    return OK;
}

PUBLIC int V2(nvmlDeviceGetHandleByIndex)(unsigned index, void **device);
PUBLIC int V2(nvmlDeviceGetHandleByIndex)(unsigned index, void **device)
{
    *device = nth(index);
    return *device ? answer(of(*device), "handle") : NOT_FOUND;
}

PUBLIC int nvmlDeviceGetName(void *device, char *text, unsigned size);
PUBLIC int nvmlDeviceGetName(void *device, char *text, unsigned size)
{
    const struct device *d = of(device);
    snprintf(text, size, "%s", d ? d->model : "");
    return OK;
}

PUBLIC int nvmlDeviceGetUUID(void *device, char *text, unsigned size);
PUBLIC int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    const struct device *d = of(device);
    snprintf(text, size, "%s", d ? d->uuid : "");
    return OK;
}

PUBLIC int nvmlDeviceGetMinorNumber(void *device, unsigned *v);
PUBLIC int nvmlDeviceGetMinorNumber(void *device, unsigned *v)
{
    const struct device *d = of(device);
    *v = d ? (unsigned)atoi(d->id) : 0;
    return answer(d, "minor");
}

PUBLIC int nvmlSystemGetDriverVersion(char *text, unsigned size);
PUBLIC int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    snprintf(text, size, "580.0.fake");
    return OK;
}

PUBLIC int nvmlDeviceGetUtilizationRates(void *device, unsigned v[2]);
PUBLIC int nvmlDeviceGetUtilizationRates(void *device, unsigned v[2])
{
    const struct device *d = of(device);
    int r = answer(d, "util");
    if (r == OK) {
        v[0] = (unsigned)util_at(d, now());
        v[1] = v[0] / 4;
    }
    return r;
}

struct memory {
    unsigned long long total, free, used;
};

PUBLIC int nvmlDeviceGetMemoryInfo(void *device, struct memory *m);
PUBLIC int nvmlDeviceGetMemoryInfo(void *device, struct memory *m)
{
    const struct device *d = of(device);
    int r = answer(d, "memory");
    if (r == OK) {
        unsigned long long used = (unsigned long long)value(d, "memory", (double)d->used);
        *m = (struct memory){d->total, d->total - used, used};
    }
    return r;
}

GET(nvmlDeviceGetPowerUsage, "power", 250000)
GET(nvmlDeviceGetEnforcedPowerLimit, "limit", 400000)

PUBLIC int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *v);
PUBLIC int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *v)
{
    return sensor ? BAD : put(device, "temperature", v, 47);
}

PUBLIC int nvmlDeviceGetClockInfo(void *device, unsigned which, unsigned *v);
PUBLIC int nvmlDeviceGetClockInfo(void *device, unsigned which, unsigned *v)
{
    return which == 1 ? put(device, "sm", v, 1500) : put(device, "mem", v, 2600);
}

#ifdef OLD
struct info {
    unsigned pid;
    unsigned long long memory;
};
#else
struct info {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
#endif

static int list(void *device, unsigned *count, struct info *infos, const char *kind)
{
    const struct device *d = of(device);
    int r = answer(d, "processes");
    unsigned used = 0;
    for (size_t i = 0; i < process_count && r == OK; i++) {
        if (strcmp(processes[i].id, d->id) != 0 || !strstr(processes[i].kind, kind))
            continue;
        if (used == *count)
            return SMALL;
        infos[used++] = (struct info){.pid = processes[i].pid, .memory = processes[i].memory};
    }
    *count = used;
    return r;
}

PUBLIC int V3(nvmlDeviceGetComputeRunningProcesses)(void *, unsigned *, struct info *);
PUBLIC int V3(nvmlDeviceGetComputeRunningProcesses)(void *device, unsigned *n, struct info *infos)
{
    return list(device, n, infos, "c");
}

PUBLIC int V3(nvmlDeviceGetGraphicsRunningProcesses)(void *, unsigned *, struct info *);
PUBLIC int V3(nvmlDeviceGetGraphicsRunningProcesses)(void *device, unsigned *n, struct info *infos)
{
    return list(device, n, infos, "g");
}

#ifndef OLD
struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

PUBLIC int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *m);
PUBLIC int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *m)
{
    struct memory one;
    if (m->version != (sizeof *m | 2u << 24))
        return BAD;
    int r = nvmlDeviceGetMemoryInfo(device, &one);
    if (r == OK)
        *m = (struct memory_v2){m->version, one.total, 1 << 20, one.free, one.used};
    return r;
}

PUBLIC int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *v);
PUBLIC int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *v)
{
    const struct device *d = of(device);
    int r = answer(d, "energy");
    *v = (unsigned long long)(5e9 + now() * 200000); /* 200 W, and a past */
    return r;
}

PUBLIC int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *v);
PUBLIC int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *v)
{
    unsigned bits = 0;
    int r = put(device, "reasons", &bits, 1);
    *v = bits;
    return r;
}

struct sample {
    unsigned long long time;
    unsigned long long value;
};

/* All that is newer than `seen`, up to 14 seconds back. */
PUBLIC int nvmlDeviceGetSamples(void *, int, unsigned long long, unsigned *, unsigned *,
                                struct sample *);
PUBLIC int nvmlDeviceGetSamples(void *device, int type, unsigned long long seen, unsigned *kind,
                                unsigned *count, struct sample *out)
{
    const struct device *d = of(device);
    unsigned used = 0;
    int r = answer(d, "samples");
    if (r != OK)
        return r;
    double end = now();
    for (double at = (double)(long)((end - 14 > 0 ? end - 14 : 0) / SAMPLE) * SAMPLE; at < end;
         at += SAMPLE) {
        unsigned long long time = (unsigned long long)((loaded + at) * 1e6);
        if (time <= seen)
            continue;
        if (used == *count)
            return SMALL;
        out[used++] =
            (struct sample){time, (unsigned long long)util_at(d, at) / (type == 2 ? 4 : 1)};
    }
    *kind = 1;
    *count = used;
    return used ? OK : NOT_FOUND;
}

struct use {
    unsigned pid;
    unsigned long long time;
    unsigned sm, memory, encoder, decoder;
};

/* As the real one: one entry for each process, a mean since `seen`; from 0 over the whole buffer.
 */
PUBLIC int nvmlDeviceGetProcessUtilization(void *, struct use *, unsigned *, unsigned long long);
PUBLIC int nvmlDeviceGetProcessUtilization(void *device, struct use *out, unsigned *count,
                                           unsigned long long seen)
{
    const struct device *d = of(device);
    int r = answer(d, "use");
    unsigned used = 0;
    if (r != OK)
        return r;
    double newest = (double)(long)(now() / STEP) * STEP;
    double from = seen ? (double)seen / 1e6 - loaded : newest - 14;
    from = from < newest - 14 ? newest - 14 : from;
    if (newest - from < STEP / 2)
        return NOT_FOUND;
    for (size_t i = 0; i < process_count && used < *count; i++) {
        const struct process *p = &processes[i];
        double busy = (p->until < newest ? p->until : newest) - (from > 0 ? from : 0);
        if (strcmp(p->id, d->id) != 0 || busy <= 0)
            continue;
        out[used++] = (struct use){.pid = p->pid,
                                   .time = (unsigned long long)((loaded + newest) * 1e6),
                                   .sm = (unsigned)(p->sm * busy / (newest - from) + 0.5)};
    }
    *count = used;
    return used ? OK : NOT_FOUND;
}

struct field {
    unsigned id, scope;
    long long time, latency;
    unsigned type;
    int result;
    unsigned long long value;
};

PUBLIC int nvmlDeviceGetFieldValues(void *device, int count, struct field *f);
PUBLIC int nvmlDeviceGetFieldValues(void *device, int count, struct field *f)
{
    const struct device *d = of(device);
    if (!d)
        return BAD;
    for (int i = 0; i < count; i++) {
        unsigned v = 0;
        f[i].type = 3;
        bool power = f[i].id == 186, limit = f[i].id == 190;
        f[i].result = power || limit
                          ? put(device, power ? "power" : "limit", &v, power ? 250000 : 400000)
                      : f[i].id == 197 || f[i].id == 198 ? answer(d, "pcie")
                                                         : NOT_SUPPORTED;
        f[i].value =
            power || limit ? v : (unsigned long long)(now() * (f[i].id == 198 ? 3e6 : 1e6));
    }
    return OK;
}

PUBLIC int nvmlDeviceGetTotalEccErrors(void *, int, int, unsigned long long *);
PUBLIC int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *v)
{
    unsigned errors = 0;
    int r = type == 1 && counter == 0 ? put(device, "ecc", &errors, 0) : BAD;
    *v = errors;
    return r;
}

PUBLIC int nvmlEventSetCreate(void **set);
PUBLIC int nvmlEventSetCreate(void **set)
{
    *set = &rules;
    return OK;
}

PUBLIC int nvmlEventSetFree(void *set);
PUBLIC int nvmlEventSetFree(void *set)
{
    return set == &rules ? OK : BAD;
}

static uint64_t watched, told;

PUBLIC int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set);
PUBLIC int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
    watched |= types == 8 ? UINT64_C(1) << (uintptr_t)device : 0;
    return set == &rules ? OK : BAD;
}

struct event {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

PUBLIC int nvmlEventSetWait_v2(void *set, struct event *e, unsigned milliseconds);
PUBLIC int nvmlEventSetWait_v2(void *set, struct event *e, unsigned milliseconds)
{
    load();
    if (set != &rules || milliseconds) /* a real one would keep the caller waiting */
        return BAD;
    for (size_t i = 0; i < rule_count; i++) {
        if (strcmp(rules[i].what, "xid") != 0 || told >> i & 1 || now() < rules[i].v[1])
            continue;
        uintptr_t handle = (uintptr_t)nth((unsigned)atoi(rules[i].id));
        if (!(watched >> handle & 1))
            continue;
        told |= UINT64_C(1) << i;
        *e = (struct event){.device = (void *)handle, .type = 8, .data = (unsigned)rules[i].v[0]};
        return OK;
    }
    return TIMEOUT;
}

struct pci {
    char legacy[16];
    unsigned numbers[5];
    char name[32];
};

PUBLIC int nvmlDeviceGetPciInfo_v3(void *device, struct pci *p);
PUBLIC int nvmlDeviceGetPciInfo_v3(void *device, struct pci *p)
{
    const struct device *d = of(device);
    *p = (struct pci){.legacy = "wrong"};
    snprintf(p->name, sizeof p->name, "00000000:%02X:00.0", d ? (unsigned)atoi(d->id) + 1 : 0);
    return answer(d, "pci");
}

/* --- MIG -------------------------------------------------------------------------------------- */

static unsigned parts(const struct device *whole, unsigned index, void **ret)
{
    unsigned count = 0;
    size_t n = strlen(whole->id);
    for (size_t i = 0; i < device_count; i++)
        if (is_part(&devices[i]) && strncmp(devices[i].id, whole->id, n) == 0 &&
            devices[i].id[n] == '.' && count++ == index)
            *ret = (void *)(uintptr_t)(i + 1);
    return count;
}

PUBLIC int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending);
PUBLIC int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending)
{
    const struct device *d = of(device);
    void *part;
    if (!d)
        return BAD;
    *current = *pending = parts(d, 0, &part) > 0;
    return *current ? OK : answer(d, "mig");
}

PUBLIC int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count);
PUBLIC int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count)
{
    *count = of(device) ? 7 : 0;
    return OK;
}

PUBLIC int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **ret);
PUBLIC int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **ret)
{
    const struct device *d = of(device);
    return d && index < parts(d, index, ret) ? OK : NOT_FOUND;
}
#endif
