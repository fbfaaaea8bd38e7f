/* SPDX-License-Identifier: Apache-2.0 */
/* What has become of publishing a run to one server, for the summary. */
#pragma once
#include <stdint.h>

struct pr_publishing {
    const char *kind; /* "mlflow", "otlp" */
    char url[1024];   /* without what is secret */
    char remote[128]; /* what the run is called there; "" where it has no name */
    int64_t sent;     /* samples */
    int64_t left;     /* not sent; -1 for unknown */
    int64_t refused;  /* samples that the server would not have */
    int64_t rejected; /* points that it would not have of the others */
    char error[300];  /* the last; "" for none */
};
