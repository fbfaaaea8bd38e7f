/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: a disk that takes nothing for as long as the file named by BLOCKED is there. Only what
 * is written at a place in a file waits, as SQLite writes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static void wait_for_the_disk(void)
{
    const char *file = getenv("BLOCKED");
    while (file && access(file, F_OK) == 0)
        usleep(5000);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    wait_for_the_disk();
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    return real(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    return pwrite64(fd, data, size, at);
}
