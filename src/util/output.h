/* SPDX-License-Identifier: Apache-2.0 */
/* Opening what a user named as an output. */
#pragma once
#include <stdbool.h>

/* Opens path for writing, close-on-exec. Regular files are replaced; devices and pipes are just
 * written. "-" and names of our own descriptors (/dev/stdout, /dev/fd/N, /proc/self/fd/N) are
 * duplicated, so that what others write there is neither truncated nor overwritten. Descriptor or
 * -errno; -ENXIO is a fifo that nobody reads yet: waiting for its reader would hold up the job. */
int pr_output_open(const char *path);
/* The same at the end: a reader of a fifo may be just about to come, and is waited for a little. */
int pr_output_open_late(const char *path);
/* Would it be, or become, a regular file of its own name, so that another can take its place? */
bool pr_output_is_plain(const char *path);
