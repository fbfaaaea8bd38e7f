/* SPDX-License-Identifier: Apache-2.0 */
/* Where a server can be reached. */
#pragma once

/* A listening socket, close-on-exec and without waiting, on ADDR:PORT, [ADDR]:PORT or, on the
 * loopback interface, PORT. Addresses are numbers, or localhost: nobody is asked for a name.
 * Descriptor or -errno; -EINVAL where it is no such address. */
int pr_listen(const char *address);
