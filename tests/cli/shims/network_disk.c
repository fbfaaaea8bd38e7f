/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: every file is on NFS. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/vfs.h>

int fstatfs(int fd, struct statfs *ret)
{
    struct stat st;
    int (*real)(int, struct statfs *) = (int (*)(int, struct statfs *))dlsym(RTLD_NEXT, "fstatfs");
    int result = real(fd, ret);
    if (result == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        ret->f_type = 0x6969;
    return result;
}
