/* SPDX-License-Identifier: Apache-2.0 */
/* What a process was called with. Any thread may ask. */
#pragma once
#include "core/host.h"

#define COMMAND_MOST 200 /* bytes that are kept of it */

/* Its arguments, a blank between two, on one line and shortened; "" where there are none (a kernel
 * thread), or where they cannot be read. Done by src/source/pid_command.c. */
void pr_command_read(const struct pr_host *host, pid_t pid, char ret_text[COMMAND_MOST + 1]);
/* The same out of the text of its cmdline: NUL behind each argument. */
void pr_command_of(const char *cmdline, size_t len, char ret_text[COMMAND_MOST + 1]);
/* The directory that a process is in; "" where that is not known. */
void pr_directory_read(const struct pr_host *host, pid_t pid, char *ret_path, size_t size);
