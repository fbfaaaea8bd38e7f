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

/* Where what is before an @ begins and ends, behind "://"; false where there is nothing. */
static bool find_secret(const char *uri, const char **ret_from, const char **ret_at)
{
    const char *host = strstr(uri, "://"), *at = NULL;
    if (!host)
        return false;
    host += 3;
    for (const char *p = host; *p && !strchr("/?#", *p); p++)
        if (*p == '@')
            at = p;
    *ret_from = host;
    *ret_at = at;
    return at != NULL;
}

void pr_address_hide(char *uri)
{
    const char *from, *at;
    if (!find_secret(uri, &from, &at))
        return;
    const char *colon = memchr(from, ':', (size_t)(at - from));
    for (char *p = uri + (colon ? colon + 1 - uri : from - uri); p < at; p++)
        *p = '*';
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
