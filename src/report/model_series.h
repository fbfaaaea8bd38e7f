/* SPDX-License-Identifier: Apache-2.0 */
/* One series of a report: what it is of, its limits and its figures. */
#pragma once
#include "core/metric.h"

enum pr_family {
    FAMILY_CPU,
    FAMILY_MEMORY,
    FAMILY_GPU,
    FAMILY_DISK,
    FAMILY_NETWORK,
    FAMILY_ENERGY,
    FAMILY_OTHER
};

/* What a series is of: tiles, charts and rules name groups, of GPUs there are several in one. */
enum pr_group {
    GROUP_CPU,
    GROUP_CPU_MACHINE,
    GROUP_MEMORY,
    GROUP_RSS,
    GROUP_USS,
    GROUP_GPU_UTIL,
    GROUP_GPU_IDLE,
    GROUP_GPU_MEMORY,
    GROUP_READ,
    GROUP_WRITE,
    GROUP_RECEIVE,
    GROUP_SEND,
    GROUP_POWER,
    GROUP_PROCESSES,
    /* Of a job on several nodes: how many, and each of them. */
    GROUP_NODES,
    GROUP_NODE_CPU,
    GROUP_NODE_MEMORY,
    GROUP_NODE_READ,
    GROUP_NODE_WRITE,
    GROUP_NODE_RECEIVE,
    GROUP_NODE_SEND,
    GROUPS
};

struct pr_bound {
    double value;
    const char *text; /* NULL: there is none */
};
struct pr_figures {
    double min, mean, max, at, total; /* NaN for unknown */
};

struct pr_model_series {
    const char *key, *label, *note, *metric; /* metric: its key in the summary, NULL for none */
    const char *counter;                     /* of a rate: whose total is its integral; or NULL */
    const char *device;                      /* that it is of; NULL for none */
    const char *mark; /* what to know of its figures in a word or two, or NULL */
    enum pr_group group;
    enum pr_unit unit;
    enum pr_family family;
    struct pr_bound limit, host;
    struct pr_figures stats;
    int curve;
    bool once; /* a gauge of which there is one sample: no mean, no least */
};
