/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent to MLflow of a sample, under which names and in which units: tables of columns, as
 * dialects are. */
#pragma once
#include "sink/dialect_row.h"

enum { MLFLOW_PROCESS, MLFLOW_SYSTEM, MLFLOW_GPU, MLFLOW_TABLES };
#define MLFLOW_GPUS 128 /* the most of which a sample has points */

struct pr_mlflow_names {
    const char *prefix; /* of the first table; borrowed, as node is */
    const char *node;   /* a part of all names; "" for none */
    struct pr_table_state tables[MLFLOW_TABLES];
};

/* 0 or -ENOMEM. */
int pr_mlflow_names_init(struct pr_mlflow_names *n, const char *prefix, const char *node);
void pr_mlflow_names_done(struct pr_mlflow_names *n);
/* Calls each with every value that a sample has; the key is borrowed. */
typedef void pr_mlflow_value_fn(void *of, const char *key, double value);
void pr_mlflow_values(struct pr_mlflow_names *n, const struct proctor_snapshot *s,
                      pr_mlflow_value_fn *each, void *of);
