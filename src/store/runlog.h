/* SPDX-License-Identifier: Apache-2.0 */
/* Phases and events of a run as JSON lines, in the shape that RunLog of pytyche has. */
#pragma once
#include "store/stored.h"

/* Each line as it is complete, into out; `full` is called when there is something to be written,
 * and empties it. 0 or -errno. */
struct pr_runlog {
    struct pr_buf out;
    void (*full)(struct pr_runlog *log);
    /* Its own. */
    const struct pr_stored *stored;
};
int pr_runlog_write(struct pr_runlog *log, const struct pr_stored *r, struct proctor_error *err);
