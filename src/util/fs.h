/* SPDX-License-Identifier: Apache-2.0 */
/* Small files in one call, and writing that does not stop half way. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Opens path below dirfd for reading, close-on-exec; never waits. Descriptor or -errno. */
int pr_fs_open(int dirfd, const char *path);
/* Reads from the start of fd until the end or until size-1 bytes; NUL-terminates.
 * Length or -errno. */
ssize_t pr_fs_pread(int fd, char *text, size_t size);
/* The same of a kernel file with many records, which comes in pieces of about 4 KB; where it does
 * not fit, it ends behind its last whole line. */
ssize_t pr_fs_pread_long(int fd, char *text, size_t size);
/* Open, read, close. Length or -errno. */
ssize_t pr_fs_read(int dirfd, const char *path, char *text, size_t size);
/* A whole file of up to 64 MiB as a malloc'ed, NUL-terminated text; the caller frees.
 * 0 or -errno. */
int pr_fs_slurp(int dirfd, const char *path, char **ret_text, size_t *ret_len);
/* Calls each for every name in a directory but "." and "..", until one says false. room, aligned as
 * malloc's is, holds a piece of the listing: nothing is allocated. 0 or -errno. */
int pr_fs_list(int dirfd, const char *path, char *room, size_t size,
               bool (*each)(void *of, const char *name), void *of);
/* Writes as much as goes; *ret_done says how much did. 0 or -errno. */
int pr_fs_write(int fd, const char *data, size_t len, size_t *ret_done);
/* The same for a short text that is not worth waiting for: false where a pipe has no room for so
 * long.
 */
bool pr_fs_write_soon(int fd, const char *data, size_t len, int milliseconds);
