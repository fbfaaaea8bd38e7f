/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of https://opentelemetry.io/docs/specs/otel/protocol/exporter/: what is said for
 * metrics comes before what is said for all signals, and an option before both. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "publish/address.h"
#include "publish/otlp.h"
#include "util/units.h"

#define HERE    "http://127.0.0.1:4318"
#define PATH    "/v1/metrics"
#define PREFIX  "OTEL_EXPORTER_OTLP_"
#define TIMEOUT 10.0 /* seconds */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* OTEL_EXPORTER_OTLP_METRICS_NAME, else OTEL_EXPORTER_OTLP_NAME; `said` is which. */
static const char *of_both(const char *name, char *said, size_t size)
{
    static const char *const ways[] = {PREFIX "METRICS_", PREFIX};
    const char *value = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !value; i++) {
        snprintf(said, size, "%s%s", ways[i], name);
        value = variable(said);
    }
    return value;
}

/* --- lists ------------------------------------------------------------------------------------ */

static bool take_pair(const char *from, const char *end, pr_otlp_pair_fn *each, void *of)
{
    char key[256], value[4096];
    const char *equals = memchr(from, '=', (size_t)(end - from)), *stop = equals;
    while (from < end && isspace((unsigned char)*from))
        from++;
    if (from == end) /* nothing between two commas */
        return true;
    while (stop && stop > from && isspace((unsigned char)stop[-1]))
        stop--;
    if (!equals || stop == from || stop - from >= (ptrdiff_t)sizeof key ||
        end - equals >= (ptrdiff_t)sizeof value)
        return false;
    for (equals++; equals < end && isspace((unsigned char)*equals);)
        equals++;
    while (end > equals && isspace((unsigned char)end[-1]))
        end--;
    pr_address_unescape(key, sizeof key, from, stop);
    pr_address_unescape(value, sizeof value, equals, end);
    bool good = each(of, key, value);
    explicit_bzero(value, sizeof value);
    return good;
}

bool pr_otlp_pairs(const char *list, pr_otlp_pair_fn *each, void *of)
{
    bool good = true;
    while (good && *list) {
        const char *end = list + strcspn(list, ",");
        good = take_pair(list, end, each, of);
        list = *end ? end + 1 : end;
    }
    return good;
}

/* --- headers ---------------------------------------------------------------------------------- */

/* A name of letters and the like, and nothing that would be the end of a line. */
static bool add_header(void *of, const char *key, const char *value)
{
    struct pr_otlp_setting *s = of;
    size_t at = strlen(s->headers);
    for (const char *p = key; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("!#$%&'*+-.^_`|~", *p))
            return false;
    for (const char *p = value; *p; p++)
        if (iscntrl((unsigned char)*p) && *p != '\t')
            return false;
    return *key && snprintf(s->headers + at, sizeof s->headers - at, "%s: %s\n", key, value) <
                       (int)(sizeof s->headers - at);
}

static int take_headers(struct pr_otlp_setting *s, struct proctor_error *err)
{
    char said[64];
    const char *list = of_both("HEADERS", said, sizeof said);
    if (!list || pr_otlp_pairs(list, add_header, s))
        return 0;
    explicit_bzero(s->headers, sizeof s->headers);
    return pr_error(err, EINVAL, "otlp: %s is not NAME=VALUE,NAME=VALUE with %%2C for a comma",
                    said);
}

/* --- the address ------------------------------------------------------------------------------ */

static bool ends_in(const char *text, size_t n, const char *end)
{
    size_t m = strlen(end);
    return n >= m && strncmp(text + n - m, end, m) == 0;
}

/* whole: the address is not of a server, but of what metrics are sent to. */
static int take_address(struct pr_otlp_setting *s, const char *address, bool whole,
                        const char *said, struct proctor_error *err)
{
    struct pr_address parts;
    if (strncasecmp(address, "http://", 7) != 0 && strncasecmp(address, "https://", 8) != 0)
        return pr_address_refuse(address, said, "http://HOST:4318", err);
    if (pr_address_split(address, &parts) < 0)
        return pr_error(err, EINVAL, "%s: the address is too long", said);
    size_t n = strcspn(parts.url, "?#");
    const char *query = parts.url[n] == '?' ? parts.url + n : "";
    int query_length = (int)strcspn(query, "#");
    while (!whole && n && parts.url[n - 1] == '/')
        n--;
    const char *path = whole || ends_in(parts.url, n, PATH) ? "" : PATH;
    snprintf(s->shown, sizeof s->shown, "%.*s%s", (int)n, parts.url, path);
    snprintf(s->url, sizeof s->url, "%s%.*s", s->shown, query_length, query);
    snprintf(s->user, sizeof s->user, "%s", parts.user);
    snprintf(s->password, sizeof s->password, "%s", parts.password);
    explicit_bzero(&parts, sizeof parts);
    return 0;
}

static int find_address(struct pr_otlp_setting *s, const char *option, struct proctor_error *err)
{
    static const char metrics[] = PREFIX "METRICS_ENDPOINT", all[] = PREFIX "ENDPOINT";
    if (option)
        return take_address(s, option, false, "--otlp", err);
    if (variable(metrics))
        return take_address(s, variable(metrics), true, metrics, err);
    if (variable(all))
        return take_address(s, variable(all), false, all, err);
    return take_address(s, HERE, false, "--otlp", err);
}

/* --- the rest --------------------------------------------------------------------------------- */

static int take_protocol(struct pr_otlp_setting *s, struct proctor_error *err)
{
    char said[64];
    const char *value = of_both("PROTOCOL", said, sizeof said);
    s->json = value && strcmp(value, "http/json") == 0;
    if (!value || s->json || strcmp(value, "http/protobuf") == 0)
        return 0;
    if (strcmp(value, "grpc") == 0)
        return pr_error(err, EINVAL,
                        "otlp: %s is grpc, which proctor does not speak: set it to http/protobuf, "
                        "and name the collector's port for HTTP, 4318 in most",
                        said);
    return pr_error(err, EINVAL, "otlp: %s is '%.40s'; it can be http/protobuf or http/json", said,
                    value);
}

static int take_compression(struct pr_otlp_setting *s, struct proctor_error *err)
{
    char said[64];
    const char *value = of_both("COMPRESSION", said, sizeof said);
    s->gzip = value && strcmp(value, "gzip") == 0;
    if (!value || s->gzip || strcmp(value, "none") == 0)
        return 0;
    return pr_error(err, EINVAL, "otlp: %s is '%.40s'; it can be gzip or none", said, value);
}

static int take_timeout(struct pr_otlp_setting *s, struct proctor_error *err)
{
    char said[64];
    double ms;
    const char *value = of_both("TIMEOUT", said, sizeof said);
    s->timeout = TIMEOUT;
    if (!value)
        return 0;
    if (!pr_units_parse_number(value, &ms) || !(ms >= 1))
        return pr_error(err, EINVAL, "otlp: %s is '%.40s'; it is a number of milliseconds", said,
                        value);
    s->timeout = ms / 1000;
    return 0;
}

static bool ignore(void *of, const char *key, const char *value)
{
    (void)of, (void)key, (void)value;
    return true;
}

int pr_otlp_read(struct pr_otlp_setting *s, const char *url, struct proctor_error *err)
{
    static int (*const parts[])(struct pr_otlp_setting *, struct proctor_error *) = {
        take_protocol, take_compression, take_timeout, take_headers};
    const char *disabled = variable("OTEL_SDK_DISABLED");
    char said[64];
    *s = (struct pr_otlp_setting){.disabled = disabled && strcasecmp(disabled, "true") == 0,
                                  .attributes = variable("OTEL_RESOURCE_ATTRIBUTES"),
                                  .service = variable("OTEL_SERVICE_NAME")};
    s->ca = of_both("CERTIFICATE", said, sizeof said);
    s->certificate = of_both("CLIENT_CERTIFICATE", said, sizeof said);
    s->key = of_both("CLIENT_KEY", said, sizeof said);
    if (s->attributes && !pr_otlp_pairs(s->attributes, ignore, NULL))
        return pr_error(err, EINVAL,
                        "otlp: OTEL_RESOURCE_ATTRIBUTES is not KEY=VALUE,KEY=VALUE with %%2C for a "
                        "comma");
    int code = find_address(s, url, err);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && code == 0; i++)
        code = parts[i](s, err);
    if (code < 0)
        pr_otlp_forget(s);
    return code;
}

void pr_otlp_forget(struct pr_otlp_setting *s)
{
    explicit_bzero(s->password, sizeof s->password);
    explicit_bzero(s->headers, sizeof s->headers);
}
