/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the NVIDIA vendor share: nvml.c finds devices, nvml_device.c reads them,
 * nvml_process.c says who uses them. */
#pragma once
#include "gpu/nvml.h"

#define NVML_BUFFER 1024 /* samples, or processes, in one answer */

struct nvml_held {
    unsigned pid;
    double usage;
};

/* A buffer of the driver's own samples: what was seen of it, and the last result. */
struct nvml_window {
    bool absent; /* this driver has none */
    unsigned long long seen;
    int64_t at; /* boot time of the last reading of utilisation, in whichever way */
    double mean, most;
};

struct nvml_device {
    void *handle;
    unsigned minor;
    bool divided, part; /* it has parts (MIG); it is one */
    bool no_instant_power;
    struct nvml_window gpu;
    unsigned long long processes_seen;
    int64_t processes_at, processes_step; /* boot time; the shortest between two samples, ns */
    bool processes_told, no_process_use;
    bool listed, users; /* the lists were told; they had somebody */
    bool silence_said;
    struct nvml_held held[64];
    size_t held_count;
    bool held_cut; /* there were more */
    unsigned long long pcie[2], reasons, ecc;
    int64_t pcie_at;
    bool ecc_known, events_asked;
    unsigned throttle_said;
};

struct nvml {
    struct nvml_api api;
    void *library, *events;
    bool old_processes; /* only the first layout */
    bool told;          /* some device has told who is on it */
    unsigned first, count;
    struct nvml_device device[GPU_DEVICES];
    struct nvml_sample samples[NVML_BUFFER];
    struct nvml_use uses[NVML_BUFFER];
    struct nvml_process processes[NVML_BUFFER];
};

static inline struct nvml_device *pr_nvml_device(struct nvml *n, unsigned card)
{
    return &n->device[card - n->first];
}

/* What a result means to the caller of a call; the reason goes to these metrics. */
int pr_nvml_result(struct pr_gpu_card *c, int result, const enum pr_metric_id *ids, size_t count);

/* nvml_device.c: of one device. nvml_process.c: of all. */
int pr_nvml_util(void *state, struct pr_gpu_work *w, unsigned card);
int pr_nvml_memory(void *state, struct pr_gpu_work *w, unsigned card);
int pr_nvml_power(void *state, struct pr_gpu_work *w, unsigned card);
int pr_nvml_energy(void *state, struct pr_gpu_work *w, unsigned card);
int pr_nvml_temperature(void *state, struct pr_gpu_work *w, unsigned card);
int pr_nvml_clocks(void *state, struct pr_gpu_work *w, unsigned card);
int pr_nvml_throttle(void *state, struct pr_gpu_work *w, unsigned card);
int pr_nvml_pcie(void *state, struct pr_gpu_work *w, unsigned card);
int pr_nvml_errors(void *state, struct pr_gpu_work *w, unsigned card);
int pr_nvml_process_memory(void *state, struct pr_gpu_work *w, unsigned card);
int pr_nvml_process_use(void *state, struct pr_gpu_work *w, unsigned card);
