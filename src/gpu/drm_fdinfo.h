/* SPDX-License-Identifier: Apache-2.0 */
/* What a DRM driver says of one client in /proc/PID/fdinfo/FD:
 * Documentation/gpu/drm-usage-stats.rst of the kernel. A client is what one open() of the device
 * made, however many descriptors there are of it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRM_ENGINES 16
#define DRM_REGIONS 12
#define DRM_NAME    24

struct pr_drm_engine {
    char name[DRM_NAME];
    double ns;            /* busy; NaN for none */
    double cycles, total; /* the same in cycles, and of how many; NaN for none */
    double capacity;      /* identical engines behind the name */
};

struct pr_drm_region {
    char name[DRM_NAME];
    int rank; /* of the key that it comes from: resident before memory before total */
    double bytes;
};

struct pr_drm_client {
    char driver[DRM_NAME], slot[DRM_NAME]; /* "" where it has none */
    uint64_t id;
    bool has_id;
    struct pr_drm_engine engine[DRM_ENGINES];
    struct pr_drm_region region[DRM_REGIONS];
    size_t engine_count, region_count;
};

/* False where it is no DRM client. */
bool pr_drm_parse(const char *text, size_t len, struct pr_drm_client *ret);
/* Bytes in the device's own memory; of a device without any, in what it uses instead. NaN where
 * nothing is said. */
double pr_drm_memory(const struct pr_drm_client *c);
