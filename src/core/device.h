/* SPDX-License-Identifier: Apache-2.0 */
/* Things of which the machine has several: cores, disks, file systems, network interfaces, GPUs.
 * Each has a record of the metrics whose row has its scope, in slots. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/metric.h"

#define DEVICE_VALUES 17 /* the most metrics that one kind has */
#define DEVICE_NAME   64

/* In the order of their SCOPE_ bits. */
enum pr_device_kind {
    DEVICE_CORE,
    DEVICE_DISK,
    DEVICE_FILESYSTEM,
    DEVICE_INTERFACE,
    DEVICE_GPU,
    DEVICE_KINDS
};

/* What goes out. */
struct pr_device {
    enum pr_device_kind kind;
    bool counted; /* it is in the machine's sum; a bond or a partition's parent is there besides */
    char name[DEVICE_NAME];
    const char *model, *uuid;    /* of a GPU, for as long as the session lives; else NULL */
    double value[DEVICE_VALUES]; /* by slot; counters since we saw it first; NaN is absent */
};

/* What is kept of one between two readings. */
struct pr_device_state {
    struct pr_device out;
    bool present;                                   /* in this reading */
    bool away;                                      /* it was not in the one before */
    unsigned missed;                                /* readings that it has not been in */
    double raw[DEVICE_VALUES], last[DEVICE_VALUES]; /* as the kernel has them, now and before */
    double total[DEVICE_VALUES];                    /* growth of counters since the first reading */
};

struct pr_devices {
    struct pr_device_state *items;
    size_t count, cap;
    size_t cursor; /* where the next one is likely to be: kernel files keep their order */
};

/* "core", "disk", "filesystem", "interface", "gpu". */
const char *pr_device_kind_name(enum pr_device_kind kind);
/* The metric in this slot, or METRIC_NONE behind the last. */
enum pr_metric_id pr_device_metric(enum pr_device_kind kind, int slot);
/* The slot of a metric, or -1. */
int pr_device_slot(enum pr_device_kind kind, enum pr_metric_id id);

/* A reading begins: nobody is present yet. */
void pr_devices_begin(struct pr_devices *set);
/* The device with this name, marked as present and with all readings absent; made where it is new.
 * Borrowed until the next call. NULL when memory is out. */
struct pr_device_state *pr_devices_get(struct pr_devices *set, enum pr_device_kind kind,
                                       const char *name, size_t len);
/* What the kernel says of it. */
void pr_device_put(struct pr_device_state *d, enum pr_metric_id id, double raw);
/* After a reading: growth since the one before goes into each device's values and, for metrics that
 * are summed, of those that count into sum[id]. dt: seconds since the reading before, NaN for
 * none. */
void pr_devices_settle(struct pr_devices *set, double dt, double *sum);
void pr_devices_done(struct pr_devices *set);
