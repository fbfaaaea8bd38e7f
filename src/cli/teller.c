/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/teller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cli.h"

#define PATIENCE_US 300000 /* for each step */

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_usec = PATIENCE_US};
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

void pr_tell(enum pr_request_verb verb, const char *name, const char *data, bool wait)
{
    char line[REQUEST_LINE + 1], answer[4];
    const char *path = getenv("PROCTOR_SOCKET");
    int fd = path && *path ? connect_to(path) : -1;
    if (fd < 0)
        return;
    int n = snprintf(line, sizeof line, "%s %s%s%s\n", pr_request_verb_name(verb), name,
                     data ? "\t" : "", data ? data : "");
    if (n <= REQUEST_LINE && send(fd, line, (size_t)n, MSG_NOSIGNAL) == n && wait)
        recv(fd, answer, sizeof answer, 0);
    close(fd);
}

bool pr_tell_check(const char *command, const char *name)
{
    if (pr_request_is_name(name, strlen(name)))
        return true;
    pr_complain("%s: '%.80s' is no name: it must have 1 to %d bytes, and no control characters",
                command, name, REQUEST_NAME);
    return false;
}
