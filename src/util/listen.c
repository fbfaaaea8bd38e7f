/* SPDX-License-Identifier: Apache-2.0 */
#include "util/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/scan.h"

#define BACKLOG 16

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool parse_port(const char *text, in_port_t *ret)
{
    uint64_t port;
    struct pr_scan s = pr_scan_of(text, strlen(text));
    if (*text < '0' || *text > '9' || !pr_scan_u64(&s, &port) || s.p < s.end || port < 1 ||
        port > 65535)
        return false;
    *ret = htons((uint16_t)port);
    return true;
}

/* The host between its brackets, or as it is; true where it fits. */
static bool take_host(const char *text, size_t len, char *host, size_t size)
{
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    } else if (memchr(text, ':', len)) {
        return false; /* which of the colons is before the port? */
    }
    return len > 0 && snprintf(host, size, "%.*s", (int)len, text) < (int)size;
}

static bool parse(const char *text, union address *ret, socklen_t *ret_size)
{
    char host[INET6_ADDRSTRLEN] = "localhost";
    const char *colon = strrchr(text, ':');
    in_port_t port;
    if (colon && !take_host(text, (size_t)(colon - text), host, sizeof host))
        return false;
    if (!parse_port(colon ? colon + 1 : text, &port))
        return false;
    *ret = (union address){0};
    const char *number = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (inet_pton(AF_INET, number, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = port;
        *ret_size = sizeof ret->v4;
        return true;
    }
    ret->v6.sin6_family = AF_INET6;
    ret->v6.sin6_port = port;
    *ret_size = sizeof ret->v6;
    return inet_pton(AF_INET6, number, &ret->v6.sin6_addr) == 1;
}

int pr_listen(const char *address)
{
    union address at;
    socklen_t size;
    const int on = 1;
    if (!parse(address, &at, &size))
        return -EINVAL;
    int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* Connections of a run before, which linger for a minute, are in nobody's way. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &at.any, size) < 0 || listen(fd, BACKLOG) < 0) {
        int code = -errno;
        close(fd);
        return code == -EINVAL ? -EADDRNOTAVAIL : code;
    }
    return fd;
}
