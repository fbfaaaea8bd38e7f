/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/loadavg, "0.52 0.58 0.59 1/467 12345". */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pr_loadavg {
    double load1;
    uint64_t tasks;    /* of all processes; 0 where it is not there */
    uint64_t last_pid; /* 0 where it is not there, or not told */
};

/* False where the text is not what it should be. */
bool pr_loadavg_parse(const char *text, size_t len, struct pr_loadavg *ret);
/* False where a container's file system (lxcfs) has put its own in the place: its last pid is made
 * up, or behind. */
bool pr_loadavg_is_the_kernels(int fd);
