/* SPDX-License-Identifier: Apache-2.0 */
#include "publish/address.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int digit(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

void pr_address_unescape(char *ret, size_t size, const char *from, const char *end)
{
    size_t n = 0;
    while (from < end && n + 1 < size) {
        int high = *from == '%' && end - from > 2 ? digit(from[1]) : -1,
            low = high < 0 ? -1 : digit(from[2]);
        ret[n++] = low < 0 ? *from : (char)(high * 16 + low);
        from += low < 0 ? 1 : 3;
    }
    ret[n] = '\0';
}

/* Behind a host is the number of a port. What is neither is a password with a / or a # in it that
 * should have been escaped: it must not be taken for a path, which everybody may see. */
static bool is_no_port(const char *host, const char *end)
{
    const char *colon = memchr(host, ':', (size_t)(end - host));
    return *host != '[' && colon && colon + 1 + strspn(colon + 1, "0123456789") < end;
}

/* Where what is before an @ begins and ends, behind "://"; false where there is nothing. */
static bool find_secret(const char *uri, const char **ret_from, const char **ret_at)
{
    const char *host = strstr(uri, "://"), *at = NULL;
    if (!host)
        return false;
    host += 3;
    const char *end = host + strcspn(host, "/?#");
    for (const char *p = host; p < end; p++)
        if (*p == '@')
            at = p;
    if (!at && is_no_port(host, end))
        at = strrchr(end, '@');
    *ret_from = host;
    *ret_at = at;
    return at != NULL;
}

static void cover(char *from, const char *end)
{
    while (from < end)
        *from++ = '*';
}

void pr_address_hide(char *uri)
{
    const char *from, *at;
    bool secret = find_secret(uri, &from, &at);
    const char *colon = secret ? memchr(from, ':', (size_t)(at - from)) : NULL;
    char *query = strchr(secret ? uri + (at - uri) : uri, '?');
    if (secret)
        cover(uri + (colon ? colon + 1 - uri : from - uri), at);
    if (query) /* often a key */
        cover(query + 1, query + strlen(query));
}

int pr_address_split(const char *uri, struct pr_address *ret)
{
    const char *from, *at;
    *ret = (struct pr_address){0};
    if (strlen(uri) >= sizeof ret->url)
        return -ENAMETOOLONG;
    if (!find_secret(uri, &from, &at)) {
        snprintf(ret->url, sizeof ret->url, "%s", uri);
        return 0;
    }
    const char *colon = memchr(from, ':', (size_t)(at - from));
    pr_address_unescape(ret->user, sizeof ret->user, from, colon ? colon : at);
    pr_address_unescape(ret->password, sizeof ret->password, colon ? colon + 1 : at, at);
    snprintf(ret->url, sizeof ret->url, "%.*s%s", (int)(from - uri), uri, at + 1);
    return 0;
}

int pr_address_refuse(const char *uri, const char *said, const char *like,
                      struct proctor_error *err)
{
    const char *host = strstr(uri, "://");
    host = host ? host + 3 : uri;
    const char *port = strchr(host, ':');
    size_t digits = port ? strspn(port + 1, "0123456789") : 0;
    /* HOST:PORT, and perhaps a path */
    if (!digits || port == host || (port[1 + digits] && port[1 + digits] != '/') ||
        strpbrk(uri, "@? "))
        return pr_error(err, EINVAL, "%s: it is no address; write it as %s", said, like);
    return pr_error(err, EINVAL, "%s: '%.80s' is no address; write it as http://%.80s, like %s",
                    said, uri, host, like);
}
