/* SPDX-License-Identifier: Apache-2.0 */
/* What a killed recorder left in WAL mode cannot be read in a folder that nothing may be made in:
 * SQLite wants an index beside it. A private copy in the temporary directory can be. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Opening the file gave this code: because there is a log that could not be indexed? */
bool pr_copy_may_help(const char *path, int code);
/* Copies the file, of which fd is open, and its log into a new folder; where the copy is. False
 * where that failed; then nothing is left. */
bool pr_copy_make(int fd, const char *path, char *ret_folder, size_t folder_size, char *ret_copy,
                  size_t size);
/* Removes the folder; "" is allowed. */
void pr_copy_remove(const char *folder);
