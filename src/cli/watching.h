/* SPDX-License-Identifier: Apache-2.0 */
/* What attach and system have in common. */
#pragma once
#include "cli/cli.h"
#include "cli/server.h"

enum { EXIT_NO_TARGET = 1 };

struct pr_watching {
    const char *command; /* for complaints */
    struct proctor_monitor *monitor;
    struct pr_summary_file summary;
    struct pr_server server;
    int signals;
    int ended; /* readable when the process has; -1 where that cannot be had */
};

/* Records until it is over, and prints the summary; returns the exit status. */
int pr_watching_record(struct pr_watching *w);
/* The exit status for an error of the library's. */
int pr_watching_status(int code);
void pr_watching_done(struct pr_watching *w);
