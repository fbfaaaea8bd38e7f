/* SPDX-License-Identifier: Apache-2.0 */
/* What we need of NVIDIA's management library, in our own declarations: it is loaded at run time,
 * and older ones lack some of it. Layouts and numbers are those of its public interface. */
#pragma once
#include "gpu/gpu.h"
#include "util/dl.h"

enum nvml_result {
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_TOO_SMALL = 7,
    NVML_NO_DRIVER = 9,
    NVML_TIMEOUT = 10,
    NVML_NO_FUNCTION = 13,
    NVML_LOST = 15,
    NVML_NEEDS_RESET = 16,
    NVML_MISMATCH = 18,
};

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_SAMPLES_GPU = 1, NVML_SAMPLES_MEM = 2 };
enum { NVML_FIELD_POWER = 186, NVML_FIELD_POWER_LIMIT = 190, NVML_FIELD_PCIE_TX = 197 };
enum { NVML_FIELD_PCIE_RX = 198, NVML_EVENT_XID = 8, NVML_ECC_UNCORRECTED = 1 };

union nvml_value {
    double d;
    unsigned u;
    unsigned long long ull;
    long long sll;
};

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 ((unsigned)sizeof(struct nvml_memory_v2) | 2u << 24)

struct nvml_rates {
    unsigned gpu, memory;
};

struct nvml_sample {
    unsigned long long time; /* microseconds */
    union nvml_value value;
};

struct nvml_use {
    unsigned pid;
    unsigned long long time;
    unsigned sm, memory, encoder, decoder;
};

struct nvml_process_v1 {
    unsigned pid;
    unsigned long long memory;
};

struct nvml_process {
    unsigned pid;
    unsigned long long memory; /* all ones: not known */
    unsigned gpu_instance, compute_instance;
};

struct nvml_field {
    unsigned id, scope;
    long long time, latency;
    unsigned type;
    int result;
    union nvml_value value;
};

struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char name[32];
};

struct nvml_event {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

struct nvml_api {
    int (*init)(void), (*shutdown)(void), (*count)(unsigned *);
    const char *(*error)(int);
    int (*by_index)(unsigned, void **), (*mig_by_index)(void *, unsigned, void **);
    int (*name)(void *, char *, unsigned), (*uuid)(void *, char *, unsigned);
    int (*driver)(char *, unsigned), (*minor)(void *, unsigned *),
        (*pci)(void *, struct nvml_pci *);
    int (*mig_mode)(void *, unsigned *, unsigned *), (*mig_most)(void *, unsigned *);
    int (*rates)(void *, struct nvml_rates *);
    int (*samples)(void *, int, unsigned long long, unsigned *, unsigned *, struct nvml_sample *);
    int (*memory)(void *, struct nvml_memory *), (*memory_v2)(void *, struct nvml_memory_v2 *);
    int (*power)(void *, unsigned *), (*power_limit)(void *, unsigned *);
    int (*energy)(void *, unsigned long long *), (*reasons)(void *, unsigned long long *);
    int (*temperature)(void *, unsigned, unsigned *), (*clock)(void *, unsigned, unsigned *);
    int (*fields)(void *, int, struct nvml_field *);
    int (*ecc)(void *, int, int, unsigned long long *);
    int (*event_set)(void **), (*event_done)(void *);
    int (*event_ask)(void *, unsigned long long, void *),
        (*event_wait)(void *, struct nvml_event *, unsigned);
    int (*compute)(void *, unsigned *, void *), (*graphics)(void *, unsigned *, void *);
    int (*process_use)(void *, struct nvml_use *, unsigned *, unsigned long long);
};
