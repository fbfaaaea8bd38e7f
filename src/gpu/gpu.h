/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor: one way to GPUs and to who uses them. All of it but `expected` is called from the GPU
 * thread alone. To add one: a file with such a table, a row in vendor.c, a line in meson.build. */
#pragma once
#include "core/gpu.h"

#define GPU_MEMBERS 4096 /* whose descriptors are looked at */
#define GPU_NOTES   16

/* An event, on its way to the tick. */
struct pr_gpu_note {
    int64_t at; /* boot time */
    char text[180];
};

/* What the thread works on: the round that is being made, and who the members are. */
struct pr_gpu_work {
    const struct pr_host *host; /* with descriptors of the thread's own */
    struct pr_gpu_round *round;
    struct pr_gpu_note note[GPU_NOTES];
    size_t note_count;
    const pid_t *members; /* as of the last tick */
    size_t member_count;
    bool members_cut;    /* there are more */
    int descriptors;     /* that the vendors' libraries hold */
    bool claimed_nvidia; /* a vendor speaks for the NVIDIA devices already */
    char why[160];       /* of the last vendor that could not be opened */
};

/* One call, or a few that belong together. */
struct pr_gpu_call {
    const char *name;
    double period;  /* seconds: there is no use in asking more often; 0 for each time */
    bool of_all;    /* of processes: once for all the vendor's devices */
    bool of_memory; /* of processes: what it says is about memory, else about usage */
    bool follows;   /* it says what the one before it has found, and is made right after it */
    bool last;      /* a counter: once more at the end */
    /* 0; -EAGAIN: nothing new; -ENOTSUP: it never will; -ENODEV: the device is gone; else -errno.
     */
    int (*read)(void *state, struct pr_gpu_work *w, unsigned card);
};

struct pr_gpu_vendor {
    const char *name;
    /* Might there be such devices? Cheap. Else why not. */
    bool (*expected)(const struct pr_host *host, char *why, size_t size);
    /* 0, or -errno with w->why. */
    int (*open)(void **ret_state, struct pr_gpu_work *w);
    /* Adds its devices to the round, up to GPU_DEVICES. */
    void (*list)(void *state, struct pr_gpu_work *w);
    void (*close)(void *state);
    const struct pr_gpu_call *calls; /* up to an entry without a name */
};

extern const struct pr_gpu_vendor pr_gpu_nvml, pr_gpu_drm;
#define GPU_VENDORS 2
extern const struct pr_gpu_vendor *const pr_gpu_vendors[GPU_VENDORS];

/* A new device in the round, all values absent; NULL where there are too many. */
struct pr_gpu_card *pr_gpu_add_card(struct pr_gpu_work *w);
void pr_gpu_put(struct pr_gpu_card *c, enum pr_metric_id id, double v);
/* Why it is absent: a text that stays. */
void pr_gpu_lacks(struct pr_gpu_card *c, enum pr_metric_id id, const char *reason);
/* What a process has of a device, made where it is new; NULL where there are too many: the round is
 * cut. */
struct pr_gpu_use *pr_gpu_use_of(struct pr_gpu_round *r, pid_t pid, unsigned card);
void pr_gpu_round_copy(struct pr_gpu_round *to, const struct pr_gpu_round *from);
/* What nobody has taken yet stays, where the newer one does not have it. */
void pr_gpu_round_merge(struct pr_gpu_round *to, const struct pr_gpu_round *from);
/* Something happened that is worth an event. */
void pr_gpu_say(struct pr_gpu_work *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
