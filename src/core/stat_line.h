/* SPDX-License-Identifier: Apache-2.0 */
/* What a stat file says of who a process is; targets need it as well as the source. */
#pragma once
#include <stdbool.h>

#include "core/entity.h"

struct pr_stat_line {
    pid_t pid, ppid, pgrp;
    uint64_t start;
    char state;
    char comm[COMM_MAX];
};

/* False where the text is not that of a stat file. */
bool pr_stat_line_parse(const char *text, size_t len, struct pr_stat_line *ret);
