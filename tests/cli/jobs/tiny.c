/* SPDX-License-Identifier: Apache-2.0 */
/* tiny MILLISECONDS: linked statically, so that it is much smaller than proctor. It sleeps, and
 * says its largest resident size: "VmHWM: N kB". */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char status[8192];

int main(int argc, char **argv)
{
    if (argc < 2)
        return 96;
    usleep((useconds_t)atol(argv[1]) * 1000);
    int fd = open("/proc/self/status", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof status - 1);
    const char *line = n > 0 ? strstr(status, "VmHWM:") : NULL;
    const char *end = line ? strchr(line, '\n') : NULL;
    if (!end)
        return 97;
    size_t len = (size_t)(end + 1 - line);
    return write(STDOUT_FILENO, line, len) == (ssize_t)len ? 0 : 97;
}
