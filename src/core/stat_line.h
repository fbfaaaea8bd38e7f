/* SPDX-License-Identifier: Apache-2.0 */
/* What a stat file says of who a process is; targets need it as well as the source. */
#pragma once
#include <stdbool.h>

#include "core/source.h"

struct pr_stat_line {
    pid_t pid, ppid, pgrp;
    uint64_t start;
    char state;
    int threads;
    char comm[COMM_MAX];
};

/* Nothing of it runs any more. Where only its first thread has ended it shows as a zombie, too. */
static inline bool pr_stat_line_is_dead(const struct pr_stat_line *line)
{
    return (line->state == 'Z' || line->state == 'X') && line->threads <= 1;
}

/* False where the text is not that of a stat file. */
bool pr_stat_line_parse(const char *text, size_t len, struct pr_stat_line *ret);
/* The same, with all that the source takes from it, into e; its start time, too. */
bool pr_stat_take(const struct pr_tick *t, struct pr_entity *e, const char *text, size_t len);
