/* SPDX-License-Identifier: Apache-2.0 */
/* Where sockets of runs are: $XDG_RUNTIME_DIR/proctor, else a private directory under the temporary
 * one. */
#pragma once
#include <stddef.h>

/* The directory, made where it is not there; only ours, and short enough for a socket whose name
 * has name_len bytes. 0 or -errno. */
int pr_socket_directory(char *path, size_t size, size_t name_len);
/* Removes sockets in such a directory that nobody listens on any more: their recorders were killed.
 */
void pr_socket_tidy(const char *directory);
