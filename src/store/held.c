/* SPDX-License-Identifier: Apache-2.0 */
/* Whether somebody records into a file. */
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "store/stored.h"

bool pr_stored_is_held(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
    if (fd >= 0)
        close(fd);
    return held;
}
