/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks of the library's user: callbacks behind the same interface as a file. */
#pragma once
#include "lib/monitor.h"

/* Those that were added are the session's from here on, where it opens. Its notes are there. */
void pr_own_sinks_lend(struct proctor_monitor *m);
/* Closes and frees those that no session has taken over; forked: frees alone. */
void pr_own_sinks_done(struct proctor_monitor *m, bool forked);
