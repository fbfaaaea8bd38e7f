/* SPDX-License-Identifier: Apache-2.0 */
/* What is read once per sample: the machine, and the cgroup that the job is in. Sources fill `raw`
 * with what the kernel says; counters come out as growth since the first reading. */
#pragma once
#include "core/device.h"
#include "core/gpu.h"
#include "core/host.h"
#include "core/source.h"

enum pr_machine_source_id {
#define MACHINE_SOURCE(name) MACHINE_##name,
#include "core/machine.def"
#undef MACHINE_SOURCE
    MACHINE_COUNT,
};

#define MACHINE_REASON 120
/* Seconds. The kernel's ticks are 1 to 10 ms: over less than this there is no rate. */
#define MACHINE_RATE_LEAST 0.05

struct pr_machine {
    struct pr_host *host; /* borrowed */
    unsigned reads;       /* READ_ bits that are wanted */
    struct pr_devices devices;
    double raw[METRIC_COUNT];   /* this reading; NaN is absent. Only from PROC_METRICS on */
    double value[METRIC_COUNT]; /* the result, the same way */
    pid_t of;                   /* the process whose cgroup is the job's, 0 for none */
    bool moved;                 /* it is in another one than before: for whoever wants to know */
    const char *cgroup;         /* or the cgroup itself, as the user named it; borrowed */
    int64_t ran_at;   /* when somebody of the job was last seen to have run, 0 for always */
    int space_helper; /* the command's: socket of a process that asks ZFS, -1 for none (space.h) */
    double space_cpu; /* CPU time that it has used, seconds */
    struct pr_gpu *gpu;          /* the thread that reads them; NULL for none */
    struct pr_gpu_account *gpus; /* what the ticks have taken from it (tick_gpu.c) */
    char gpu_reason[160];        /* why there is nothing */
    /* Below is machine.c's own. */
    double base[METRIC_COUNT], highest[METRIC_COUNT], sum[METRIC_COUNT];
    double previous[METRIC_COUNT]; /* the result before; NaN where it was absent */
    int64_t read_at;               /* boot time of the last reading, 0 for never */
    struct {
        bool failed; /* for good: it is not there */
        int fd;      /* held, -1 for none */
        void *state;
    } source[MACHINE_COUNT];
    char reason[MACHINE_COUNT][MACHINE_REASON]; /* why a reading failed; the first stays */
};

struct pr_machine_source {
    const char *name; /* for people: "/proc/meminfo" */
    enum pr_read gives;
    const char *file; /* below /proc, read into t->text for parse; NULL where `read` does it */
    bool in_pieces;   /* the file has many records, and comes in several reads */
    /* Takes the text into m->raw and m->devices. False where it is not what it should be. */
    bool (*parse)(struct pr_machine *m, const char *text, size_t len);
    /* Instead of file and parse. 0 or -errno. *state is the source's own, NULL at first; what it
     * keeps there is given back by close. */
    int (*read)(struct pr_machine *m, const struct pr_tick *t, void **state);
    /* close_files: false where a fork has copied the handle, and the descriptors are not ours. */
    void (*close)(void *state, bool close_files);
};

extern const struct pr_machine_source *const pr_machine_sources[MACHINE_COUNT];

void pr_machine_init(struct pr_machine *m, struct pr_host *host, unsigned reads);
/* Reads what is wanted into m->value and m->devices. */
void pr_machine_read(struct pr_machine *m, const struct pr_tick *t);
/* How many processes and threads have ever been started; NaN for unknown. text: room to read. */
double pr_machine_forks(const struct pr_host *host, char *text, size_t size);
/* Nothing is known of this sample: all values absent. */
void pr_machine_skip(struct pr_machine *m);
void pr_machine_done(struct pr_machine *m, bool close_files);
/* Why a metric is absent; NULL where nothing failed. */
const char *pr_machine_reason(const struct pr_machine *m, enum pr_metric_id id);
/* For sources: a small file below the directory `at` into t->text, through the held descriptor,
 * else by path, and then it is held where that may be: a captured tree may change between two
 * samples. Length or -errno. */
ssize_t pr_machine_text(const struct pr_tick *t, int *held, int at, const char *path,
                        bool in_pieces);
/* For sources: is what was dear to read at `then`, 0 for never, to be read again? */
bool pr_machine_due(const struct pr_machine *m, int64_t then, int64_t now);
/* For sources: the reason in words, in the place of strerror's. */
void pr_machine_explain(struct pr_machine *m, enum pr_machine_source_id id, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
