/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the outlet to MLflow share: its state, and calls to the server. */
#pragma once
#include "publish/mlflow.h"
#include "publish/mlflow_names.h"
#include "util/db.h"
#include "util/json.h"

struct pr_mlflow {
    struct pr_outlet outlet;
    struct pr_mlflow_setting setting;
    struct pr_mlflow_names names;
    struct pr_db *json; /* reads answers */
    char *id, *name, *command;
    int64_t started;
    char experiment[64];
    char header[300];             /* that names a workspace; "" for none */
    struct pr_buf metrics, about; /* what is sent next: parts of a JSON object */
    size_t metric_count, sample_count;
    int64_t step, time; /* of the sample that is added; ms */
    struct pr_buf body, url, text;
};

/* Calls the server; body: NULL for a GET. 0 where it answers as MLflow does, else as outlets do. */
int pr_mlflow_ask(struct pr_mlflow *m, const char *path, struct pr_buf *body);
/* A member of the answer into ret, or without a path what it is; false where there is none, or it
 * is no JSON. */
bool pr_mlflow_answered(struct pr_mlflow *m, const char *path, char *ret, size_t size);
/* Keeps the reason; returns -code. */
int pr_mlflow_fail(struct pr_mlflow *m, int code, const char *what);
/* An object in m->body that is open. */
struct pr_json pr_mlflow_body(struct pr_mlflow *m);
void pr_mlflow_member(struct pr_json *j, const char *key, const char *value);
/* {"key": ..., "value": ...}, with the text cut to what a server takes. */
void pr_mlflow_pair(struct pr_json *j, const char *key, const char *value, size_t most);
