/* SPDX-License-Identifier: Apache-2.0 */
/* MLflow's tracking server: where it is and who we are there, as MLflow's own client takes it from
 * the environment; and an outlet that sends a run to it. */
#pragma once
#include "core/error.h"
#include "publish/outlet.h"

struct pr_mlflow_setting {
    char url[1024]; /* of the server, without what is secret, and no / at its end */
    char user[256], password[1024], token[4096];
    bool insecure, with_token; /* a token was there, before it was forgotten */
    double timeout;            /* seconds */
    _Atomic int *files;        /* where descriptors are counted; NULL for nowhere */
    const char *ca, *certificate, *workspace;
    const char *experiment_id, *experiment; /* the latter by its name */
    const char *run;                        /* MLFLOW_RUN_ID: it is there already, and not ours */
    char node[64];                          /* "node_3"; "" where there is only one */
    const char *prefix;                     /* of what is the job's: "process/" */
};

/* uri: of the option; NULL for MLFLOW_TRACKING_URI. node, prefix: of the options, or NULL; a node
 * "" is none. -EINVAL where there is no server that could be talked to from here; err says what to
 * do. */
int pr_mlflow_read(struct pr_mlflow_setting *s, const char *uri, const char *node,
                   const char *prefix, struct proctor_error *err);
/* Which node of several this is, from --node or the variables of those who start jobs on several:
 * "node_3" into text; "" where there is only one. */
void pr_mlflow_node(const char *option, char *text, size_t size);

/* What a run is called, before there is a file that says it. */
struct pr_mlflow_run {
    const char *id, *name, *command; /* name: NULL for none; command: its first word */
    int64_t started;                 /* wall time, ns */
    bool shared;                     /* its id may be that of other nodes, too */
    /* Makes the report; NULL for none. 0 or -errno. */
    int (*page)(struct pr_buf *out, const struct pr_stored *r, struct proctor_error *err);
};

/* 0 or -errno. Texts of the setting are borrowed from the environment and the options; the rest is
 * copied. */
int pr_mlflow_open(const struct pr_mlflow_setting *s, const struct pr_mlflow_run *run,
                   struct pr_outlet **ret, struct proctor_error *err);
