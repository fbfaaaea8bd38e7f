/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor behind the public handle; the command uses it too, and drives the session itself. */
#pragma once
#include "lib/handover.h"
#include "report/summary.h"

#define PUBLISH_KINDS 2 /* of servers: publishing.c */

struct pr_publisher;
struct proctor_monitor {
    struct pr_config config;
    struct pr_session session; /* the sampling thread's while `started` */
    struct pr_facts facts;
    struct pr_target_setting target;
    struct pr_buf summary, run_members, summary_members;
    struct proctor_error failure; /* of preparing; code 0 for none */
    pid_t owner;                  /* who made it: in a forked child the handle is dead */
    bool watching, prepared, started, stopped;
    pthread_t thread;
    struct pr_handover handover;
    bool outside;               /* the command: nothing of ours is in the job */
    const struct pr_host *host; /* what is opened already of "/", borrowed; NULL for nothing */
    int hold_limit;             /* held descriptors at most; 0 leaves it to the session */
    pr_say_fn *say;             /* told of trouble at once; NULL for nobody */
    proctor_sample_fn *on_sample;
    void *on_sample_data;
    _Atomic pid_t calling_back; /* the thread that is in on_sample, 0 for none */
    _Atomic pid_t in_sink;      /* the same of a sink of the user's own */
    struct pr_sink **sinks;     /* those, in the order in which they were added */
    size_t sink_count;
    struct pr_publisher *publishers[PUBLISH_KINDS]; /* NULL for none */
    struct pr_publishing published[PUBLISH_KINDS];  /* what has become of them: facts' */
    struct {
        char *run;  /* what it is called there, NULL where it is not known at the start */
        char *uri;  /* the server's, where an option has named it; NULL else */
        bool given; /* the run was there already */
    } mlflow;
};

/* From settings to a session that is ready to begin: files open, writer running. */
int pr_monitor_prepare(struct proctor_monitor *m, struct proctor_error *err);
/* The same, and time begins. Nothing happens where it has already. */
int pr_monitor_begin(struct proctor_monitor *m, struct proctor_error *err);
/* Begins to publish, where that was asked for, and waits a little until the server has a place for
 * the run. publishing.c */
int pr_monitor_publish(struct proctor_monitor *m, struct proctor_error *err);
/* Sends what is left; called once the record is closed, or the run was called off. */
void pr_monitor_publish_end(struct proctor_monitor *m);
/* -ECHILD in a forked child, -EDEADLK in a callback of its own, else 0. */
int pr_monitor_check_caller(const struct proctor_monitor *m, struct proctor_error *err);
/* Watches the rules of --match that are set already, on the whole machine. */
int pr_monitor_watch_matches(struct proctor_monitor *m, struct proctor_error *err);
/* Milliseconds until --duration is over, for poll: 0 when it is, -1 without one. */
int pr_monitor_time_left(const struct proctor_monitor *m);
