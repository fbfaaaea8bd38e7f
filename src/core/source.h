/* SPDX-License-Identifier: Apache-2.0 */
/* Where numbers come from: one kernel interface each. A source of a process is a file below
 * /proc/PID with a parser, or a function where it is no file. */
#pragma once
#include <stddef.h>

#include "core/entity.h"
#include "core/host.h"

struct pr_tick {
    struct pr_host *host;
    int64_t now; /* boot time, ns */
    char *text;  /* room for one file */
    size_t text_size;
};

struct pr_source {
    const char *name;
    enum pr_read gives;
    const char *file; /* below /proc/PID; NULL where `read` does it all */
    bool can_wait;    /* expensive: read as far as the budget goes */
    bool seldom;      /* not read at each tick, and held only where few are */
    /* Takes the text of the file into e->value; false where it is not understood. */
    bool (*parse)(const struct pr_tick *t, struct pr_entity *e, const char *text, size_t len);
    /* Instead of file and parse: fills e->value. 0 or -errno. */
    int (*read)(const struct pr_tick *t, struct pr_entity *e);
};

extern const struct pr_source *const pr_sources[SOURCE_COUNT];

/* Reads the file of a source into t->text: through the held descriptor, else by path. Length or
 * -errno; -ESRCH and -ENOENT mean that the process is gone. */
ssize_t pr_source_text(const struct pr_tick *t, struct pr_entity *e, enum pr_source_id id);
/* Reads one source of one process. 0 or -errno; -EIO: it is not understood. */
int pr_source_read(const struct pr_tick *t, struct pr_entity *e, enum pr_source_id id);
/* Gives back what e holds. */
void pr_source_release(struct pr_host *host, struct pr_entity *e);
/* All but stat, as long as more of those are held than may be. */
void pr_source_release_others(struct pr_host *host, struct pr_entity *e);
