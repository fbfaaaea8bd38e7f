/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of DRM drivers: drm.c lists and reads them in sysfs, drm_clients.c says who uses them. */
#pragma once
#include "gpu/drm_fdinfo.h"
#include "gpu/gpu.h"

#define DRM_CLIENTS 512
#define DRM_HOLDERS 512
#define DRM_FILES   8 /* of one process that are read */

struct drm_card {
    char dir[40];   /* "sys/class/drm/card0" */
    char hwmon[64]; /* below it, "" for none */
    char slot[DRM_NAME], driver[DRM_NAME];
    signed char way[DEVICE_VALUES]; /* which file of a metric it has; -1: none, 0: not looked for */
};

/* A client that was seen, with what its engines had used. */
struct drm_client {
    unsigned card;
    uint64_t id;
    unsigned sweep; /* the last that it was in */
    int64_t at;
    struct pr_drm_engine engine[DRM_ENGINES];
    size_t engine_count;
};

/* A member, and which of its descriptors are of DRM devices. */
struct drm_holder {
    pid_t pid;
    unsigned sweep;
    int64_t looked;
    int fd[DRM_FILES];
    size_t count;
    bool more;    /* it has more of them */
    bool denied;  /* its descriptors cannot be seen */
    bool compute; /* it has /dev/kfd open, whose work no DRM client shows */
};

struct drm {
    unsigned first, count;
    struct drm_card card[GPU_DEVICES];
    unsigned sweep;
    bool memory_known, usage_known; /* by that sweep, of all members */
    bool cut;                       /* it could not look at everything */
    struct drm_client client[DRM_CLIENTS];
    size_t client_count;
    struct drm_holder holder[DRM_HOLDERS];
    size_t holder_count;
};

int pr_drm_clients(void *state, struct pr_gpu_work *w, unsigned card);
/* Right after the above: was utilisation in it? */
int pr_drm_usage(void *state, struct pr_gpu_work *w, unsigned card);
