/* SPDX-License-Identifier: Apache-2.0 */
/* lender KIB MILLISECONDS: has so much memory, and a child by vfork that lives in it for so long
 * before it becomes `true`. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 96;
    size_t size = (size_t)atol(argv[1]) * 1024;
    useconds_t time = (useconds_t)atol(argv[2]) * 1000;
    char *room = malloc(size);
    if (!room)
        return 97;
    memset(room, 1, size);
    usleep(100000);
    pid_t pid = vfork();
    if (pid == 0) {
        usleep(time);
        execl("/bin/true", "true", (char *)NULL);
        _exit(98);
    }
    int status = 97;
    waitpid(pid, &status, 0);
    usleep(50000);
    return status == 0 && room[size - 1] == 1 ? 0 : 97;
}
