/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/drm_fdinfo.h"

#include <math.h>
#include <string.h>

#include "util/scan.h"

static void keep(char *to, struct pr_scan from)
{
    size_t n = (size_t)(from.end - from.p);
    n = n < DRM_NAME ? n : DRM_NAME - 1;
    memcpy(to, from.p, n);
    to[n] = '\0';
}

static struct pr_drm_engine *engine_of(struct pr_drm_client *c, struct pr_scan name)
{
    char text[DRM_NAME];
    keep(text, name);
    for (size_t i = 0; i < c->engine_count; i++)
        if (strcmp(c->engine[i].name, text) == 0)
            return &c->engine[i];
    if (c->engine_count == DRM_ENGINES || !*text)
        return NULL;
    struct pr_drm_engine *e = &c->engine[c->engine_count++];
    *e = (struct pr_drm_engine){.ns = NAN, .cycles = NAN, .total = NAN, .capacity = 1};
    memcpy(e->name, text, sizeof e->name);
    return e;
}

/* Several keys may speak of a region: the one that is nearest to what lies in memory counts. */
static void put_region(struct pr_drm_client *c, struct pr_scan name, int rank, double bytes)
{
    char text[DRM_NAME];
    size_t i = 0;
    keep(text, name);
    while (i < c->region_count && strcmp(c->region[i].name, text) != 0)
        i++;
    if (i == DRM_REGIONS || !*text || (i < c->region_count && c->region[i].rank >= rank))
        return;
    c->region_count += i == c->region_count;
    memcpy(c->region[i].name, text, sizeof text);
    c->region[i].rank = rank;
    c->region[i].bytes = bytes;
}

static double scaled(uint64_t v, struct pr_scan unit)
{
    static const struct {
        const char *name;
        double scale;
    } units[] = {{"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
    struct pr_scan word;
    if (pr_scan_word(&unit, &word))
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (pr_scan_equals(word, units[i].name))
                return (double)v * units[i].scale;
    return (double)v;
}

/* The longer of two keys of which one begins with the other stands first. */
enum key { CAPACITY, ENGINE, CYCLES, TOTAL_CYCLES, RESIDENT, MEMORY, TOTAL, KEYS };
static const char *const keys[KEYS] = {[CAPACITY] = "drm-engine-capacity-",
                                       [ENGINE] = "drm-engine-",
                                       [CYCLES] = "drm-cycles-",
                                       [TOTAL_CYCLES] = "drm-total-cycles-",
                                       [RESIDENT] = "drm-resident-",
                                       [MEMORY] = "drm-memory-",
                                       [TOTAL] = "drm-total-"};

static void put_engine(struct pr_drm_client *c, enum key key, struct pr_scan name, double v)
{
    struct pr_drm_engine *e = engine_of(c, name);
    if (!e)
        return;
    if (key == CAPACITY)
        e->capacity = v > 0 ? v : 1;
    else
        *(key == ENGINE ? &e->ns : key == CYCLES ? &e->cycles : &e->total) = v;
}

static void take_number(struct pr_drm_client *c, struct pr_scan key, struct pr_scan value)
{
    uint64_t v;
    if (!pr_scan_u64(&value, &v))
        return;
    for (int i = 0; i < KEYS; i++) {
        struct pr_scan name = key;
        if (!pr_scan_prefix(&name, keys[i]))
            continue;
        if (i < RESIDENT)
            put_engine(c, (enum key)i, name, (double)v);
        else
            put_region(c, name, KEYS - i, scaled(v, value));
        return;
    }
}

bool pr_drm_parse(const char *text, size_t len, struct pr_drm_client *ret)
{
    struct pr_scan s = pr_scan_of(text, len), line, word;
    *ret = (struct pr_drm_client){0};
    while (pr_scan_line(&s, &line)) {
        const char *colon = memchr(line.p, ':', (size_t)(line.end - line.p));
        if (!colon)
            continue;
        struct pr_scan key = {line.p, colon}, value = {colon + 1, line.end};
        if (pr_scan_equals(key, "drm-driver") && pr_scan_word(&value, &word))
            keep(ret->driver, word);
        else if (pr_scan_equals(key, "drm-pdev") && pr_scan_word(&value, &word))
            keep(ret->slot, word);
        else if (pr_scan_equals(key, "drm-client-id"))
            ret->has_id = pr_scan_u64(&value, &ret->id);
        else
            take_number(ret, key, value);
    }
    return *ret->driver;
}

double pr_drm_memory(const struct pr_drm_client *c)
{
    double own = NAN, other = NAN;
    for (size_t i = 0; i < c->region_count; i++) {
        const char *name = c->region[i].name; /* i915 calls its own memory local0 */
        bool local = strncmp(name, "vram", 4) == 0 || strncmp(name, "local", 5) == 0;
        double *sum = local ? &own : &other;
        *sum = isnan(*sum) ? c->region[i].bytes : *sum + c->region[i].bytes;
    }
    return isnan(own) ? other : own;
}
