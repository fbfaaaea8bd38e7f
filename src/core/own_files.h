/* SPDX-License-Identifier: Apache-2.0 */
/* Run files that this process has open, to record or to read. Closing any descriptor of a file
 * drops the locks that SQLite has on it in the same process: so there is one descriptor for each,
 * which is closed when nobody needs the file any more. Any thread may call. */
#pragma once
#include <stdbool.h>

struct pr_own_file;

/* Before its database is opened for reading. *ret_held: somebody records into it, as far as locks
 * tell. -EISDIR, -EMEDIUMTYPE no plain file, or another -errno. */
int pr_own_file_read(const char *path, struct pr_own_file **ret, bool *ret_held);
/* The descriptor of it, borrowed. */
int pr_own_file_fd(const struct pr_own_file *f);
/* After its database was closed. NULL is allowed. */
void pr_own_file_done(struct pr_own_file *f);

/* The same for the recorder, who has made the file. 0 or -ENOMEM; then fd is still the caller's. */
int pr_own_file_record(int fd);
/* Closes it, at the latest when those who read it here are done. */
void pr_own_file_close(int fd);
