/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: every file is on NFS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/vfs.h>

int fstatfs64(int fd, struct statfs64 *ret)
{
    struct stat st;
    int (*real)(int, struct statfs64 *) =
        (int (*)(int, struct statfs64 *))dlsym(RTLD_NEXT, "fstatfs64");
    int result = real(fd, ret);
    if (result == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        ret->f_type = 0x6969;
    return result;
}
