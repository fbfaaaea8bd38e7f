/* SPDX-License-Identifier: Apache-2.0 */
/* ZFS says how full its pools are to nobody but its own command. For the command only, which may
 * fork: a helper that asks `zpool list` at once, then every minute, and a last time when it is
 * asked. It is nobody's child that we would wait for, and ends when its socket is closed. */
#pragma once
#include <stdbool.h>

#include "core/host.h"

/* Starts it while nothing else has a thread yet. The socket for pr_machine.space_helper, or -1
 * where there is nothing to ask. */
int pr_space_helper_start(const struct pr_host *host);
/* Asks for the last time; it ends when it has answered. */
void pr_space_helper_ask(int socket);
/* Waits until the last answer is there to be read; false where that takes longer. */
bool pr_space_helper_wait(int socket, int milliseconds);
