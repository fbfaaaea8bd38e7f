/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run has been published, kept in its own file: a row for each server, in `publications`,
 * which is made when there is something to put into it. */
#pragma once
#include "store/stored.h"

struct pr_published {
    int64_t id;       /* of its row; 0 where there is none yet */
    const char *kind; /* "mlflow", "otlp"; borrowed */
    const char *url;  /* of the server, without what is secret; borrowed */
    char remote[128]; /* what the run is called there; "" where that is not known yet */
    char prefix[128]; /* parts of names, as they were chosen at the first time */
    char node[64];
    bool owned;       /* we have made it there, and close it */
    int64_t sample;   /* the last that the server has; 0 for none */
    bool ended;       /* it also knows how the run ended, and has the report */
    int64_t refused;  /* samples before that which it would not have */
    int64_t rejected; /* points that it would not have of the others */
};

/* Fills in the rest from the newest row of this kind and url, and where `remote` is given of that.
 * 1 there is one, 0 there is none, -errno. */
int pr_published_find(const struct pr_stored *r, struct pr_published *p);
/* Writes the row. What another has reached meanwhile stays reached. r: opened with STORED_CHANGE;
 * others may be recording. 0 or -errno. */
int pr_published_save(const struct pr_stored *r, struct pr_published *p);
/* Samples that the record has behind this one; -errno. */
int64_t pr_published_left(const struct pr_stored *r, int64_t sample);
