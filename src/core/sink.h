/* SPDX-License-Identifier: Apache-2.0 */
/* Where snapshots go: one output each, called from the writer's thread. */
#pragma once
#include "core/event.h"
#include "core/notes.h"
#include "core/roll.h"
#include "core/select.h"
#include "core/snapshot.h"

struct pr_sink {
    const struct pr_sink_ops *ops; /* the first member of every sink */
};

struct pr_sink_ops {
    /* Borrows the snapshot during the call. Trouble goes to the events given at open. */
    void (*write)(struct pr_sink *sink, const struct proctor_snapshot *snapshot);
    /* Writes what is left and frees the sink. */
    void (*close)(struct pr_sink *sink);
    /* The summary at the end: the members of a JSON object, without its braces. NULL where a sink
     * has no use for it. */
    void (*summary)(struct pr_sink *sink, const char *members);
    /* There are new notes, and no snapshot has come with them. NULL where a sink has no use for
     * them. */
    void (*notes)(struct pr_sink *sink);
    bool devices;   /* it wants the series of each core, disk and the like */
    bool processes; /* it wants the values of each process, whatever the settings say */
    bool matches;   /* it wants those of each name of --match */
};

/* What the job was, besides its values. */
struct pr_sink_job {
    char *const *argv;          /* NULL-terminated; NULL where it is no command */
    pid_t pid;                  /* its first process, 0 where there is none */
    pid_t group;                /* the process group of the job, or that is watched */
    pid_t recorder;             /* whoever recorded it */
    bool no_gpu;                /* it is known that the machine has none */
    int exit_code, exit_signal; /* -1 where there is none; known at the summary */
};

/* What servers have in our process; sinks keep it up to date. */
struct pr_sink_served {
    _Atomic int threads, files;
    _Atomic int64_t cpu; /* ns */
};

struct pr_sink_setting {
    const char *path;
    bool processes; /* also a row per process */
    struct pr_select select;
    struct pr_events *events;
    const struct pr_roll *roll; /* those below snapshot->enrolled, and all at the summary */
    const char *run;            /* what the run is: members of a JSON object; NULL for nothing */
    /* The same in words: what the job is called, the run's id, and the node, NULL for none. */
    const char *name, *run_id, *node;
    struct pr_notes *notes;
    int fd;                        /* of the run file, which is the sink's where opening succeeds */
    bool asked_for;                /* by --output: what is in the way is an error at once */
    _Atomic int *held;             /* descriptors that the run file has; kept up to date */
    struct pr_sink_served *served; /* NULL where nobody counts */
    const char *dialect, *table;   /* of another tool (dialect.h); NULL: our own, its first */
    const struct pr_host *host;    /* where members can be looked at; NULL for nowhere */
    const struct pr_sink_job *job; /* until the sink is closed; NULL where nothing is known */
};

/* Opens the file, or - for standard output. */
typedef int pr_sink_open(const struct pr_sink_setting *setting, struct pr_sink **ret_sink,
                         struct proctor_error *err);
#define SINK(option, open) pr_sink_open open;
#include "core/sinks.def"
#undef SINK
/* The run file: `path` is there, empty, and open as `fd`. */
pr_sink_open pr_record_open;
