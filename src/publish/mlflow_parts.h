/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the outlet to MLflow share: its state, and calls to the server. */
#pragma once
#include "publish/mlflow.h"
#include "publish/mlflow_names.h"
#include "util/db.h"
#include "util/json.h"

#define MLFLOW_RUN_TAG  "proctor.run"
#define MLFLOW_TAG_MOST 5000

struct pr_mlflow {
    struct pr_outlet outlet;
    struct pr_mlflow_setting setting;
    struct pr_mlflow_names names;
    struct pr_db *json; /* reads answers */
    char *id, *name, *command;
    int64_t started;
    bool shared; /* with other nodes, perhaps */
    int (*make_page)(struct pr_buf *out, const struct pr_stored *r, struct proctor_error *err);
    struct pr_buf page; /* once it is made */
    char experiment[64];
    char artifacts[512];          /* where those of the run are; "" where that is not known */
    bool of_all;                  /* the run is that of several nodes, and another has made it */
    char header[300];             /* that names a workspace; "" for none */
    struct pr_buf metrics, about; /* what is sent next: parts of a JSON object */
    size_t metric_count, sample_count;
    int64_t step, time; /* of the sample that is added; ms */
    struct pr_buf body, url, text;
};

/* Calls the server; body: NULL for a GET. 0 where it answers as MLflow does, else as outlets do. */
int pr_mlflow_ask(struct pr_mlflow *m, const char *path, struct pr_buf *body);
/* Puts a file among the server's artifacts. */
int pr_mlflow_put(struct pr_mlflow *m, const char *path, const char *type, struct pr_buf *body);
/* A member of the answer into ret, or without a path what it is; false where there is none, or it
 * is no JSON. */
bool pr_mlflow_answered(struct pr_mlflow *m, const char *path, char *ret, size_t size);
/* Does the run that was answered have this tag? */
bool pr_mlflow_tagged(struct pr_mlflow *m, const char *key, const char *value);
/* Keeps the reason; returns -code. */
int pr_mlflow_fail(struct pr_mlflow *m, int code, const char *what);
/* For its user, behind what there is to say already. */
void pr_mlflow_remark(struct pr_mlflow *m, const char *what, const char *why);
/* An object in m->body that is open. */
struct pr_json pr_mlflow_body(struct pr_mlflow *m);
void pr_mlflow_member(struct pr_json *j, const char *key, const char *value);
/* {"key": ..., "value": ...}, with the text cut to what a server takes. */
void pr_mlflow_pair(struct pr_json *j, const char *key, const char *value, size_t most);

/* mlflow_place.c. The first node, or the only one, makes the run; others look for it. */
bool pr_mlflow_follows(const struct pr_mlflow *m);
/* The tag by which a run is found again: that of all nodes, or of this one, which
 * is the same for the first. Without what would end a text in a filter. */
void pr_mlflow_tag(const struct pr_mlflow *m, bool own, struct pr_buf *out);
int pr_mlflow_begin(struct pr_outlet *o);
/* mlflow_about.c */
void pr_mlflow_describe(struct pr_outlet *o, const struct pr_stored *r);
int pr_mlflow_end(struct pr_outlet *o, const struct pr_stored *r);
