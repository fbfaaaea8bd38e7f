/* SPDX-License-Identifier: Apache-2.0 */
#include "util/units.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/scan.h"

static const struct {
    const char *name, *suffix, *human;
} units[] = {
    [UNIT_COUNT] = {"1", "", ""},
    [UNIT_SECONDS] = {"seconds", "_seconds", " s"},
    [UNIT_BYTES] = {"bytes", "_bytes", ""},
    [UNIT_BYTES_PER_SECOND] = {"bytes per second", "_bytes_per_second", "/s"},
    [UNIT_CORES] = {"cores", "_cores", " cores"},
    [UNIT_RATIO] = {"ratio", "_ratio", ""},
    [UNIT_PERCENT] = {"percent", "", " %"},
    [UNIT_GPUS] = {"GPUs", "", " GPUs"},
    [UNIT_WATTS] = {"watts", "_watts", " W"},
    [UNIT_JOULES] = {"joules", "_joules", " J"},
    [UNIT_CELSIUS] = {"celsius", "_celsius", " \302\260C"},
    [UNIT_HERTZ] = {"hertz", "_hertz", " Hz"},
};

const char *pr_units_name(enum pr_unit unit)
{
    return units[unit].name;
}

const char *pr_units_suffix(enum pr_unit unit)
{
    return units[unit].suffix;
}

static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

/* Digits by hand: printf would ask the locale for its decimal point. */
void pr_units_fixed(struct pr_buf *out, double v, int decimals)
{
    char digits[40];
    size_t n = sizeof digits;
    if (!isfinite(v))
        return;
    while (decimals > 0 && fabs(v) * powers[decimals] > 9e18)
        decimals--;
    if (fabs(v) > 9e18) { /* beyond 64 bits nothing of ours is real: the largest will do */
        v = v < 0 ? -9e18 : 9e18;
    }
    uint64_t scaled = (uint64_t)llround(fabs(v) * powers[decimals]);
    bool negative = v < 0 && scaled;
    for (int i = 0; i <= decimals || scaled; i++) {
        if (i == decimals && decimals)
            digits[--n] = '.';
        digits[--n] = (char)('0' + scaled % 10);
        scaled /= 10;
    }
    if (negative)
        digits[--n] = '-';
    pr_buf_add(out, digits + n, sizeof digits - n);
}

void pr_units_number(struct pr_buf *out, double v)
{
    bool whole = v == floor(v);
    size_t start = out->len;
    pr_units_fixed(out, v, whole ? 0 : 9);
    if (whole || out->failed || !memchr(out->data + start, '.', out->len - start))
        return;
    while (out->len && out->data[out->len - 1] == '0')
        out->len--;
    if (out->len && out->data[out->len - 1] == '.')
        out->len--;
}

#define EXACT_MOST     1e22 /* beyond this no figure of ours is real */
#define EXACT_DECIMALS 17

static int print_exact(char *text, size_t size, double v, int decimals)
{
    return isfinite(v) && fabs(v) < EXACT_MOST && decimals <= EXACT_DECIMALS
               ? snprintf(text, size, "%.*f", decimals, v)
               : 0;
}

void pr_units_exact(struct pr_buf *out, double v, int decimals)
{
    char text[64];
    int n = print_exact(text, sizeof text, v, decimals);
    int whole = decimals ? (int)strspn(text + (n && *text == '-'), "0123456789") : n;
    if (!n)
        return;
    if (decimals)
        whole += *text == '-';
    pr_buf_add(out, text, (size_t)whole);
    if (decimals) { /* the locale's point may be anything, and of any length */
        pr_buf_char(out, '.');
        pr_buf_add(out, text + n - decimals, (size_t)decimals);
    }
}

double pr_units_round(double v, int decimals)
{
    char text[64];
    return print_exact(text, sizeof text, v, decimals) ? strtod(text, NULL) : v;
}

/* The digits of v without point and trailing zeros, as few as read back; returns how many stand
 * before the point. */
static int shortest_digits(double v, char *digits)
{
    char text[40];
    size_t n = 0;
    for (int precision = 14; precision <= 16; precision++) { /* with 15 digits none is too many */
        snprintf(text, sizeof text, "%.*e", precision, v);
        if (strtod(text, NULL) == v)
            break;
    }
    const char *e = strchr(text, 'e');
    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return atoi(e + 1) + 1;
}

void pr_units_shortest(struct pr_buf *out, double v)
{
    char digits[24];
    if (!isfinite(v))
        return;
    int before = shortest_digits(fabs(v), digits), n = (int)strlen(digits);
    if (signbit(v))
        pr_buf_char(out, '-');
    if (before < -3 || before > 16) {
        pr_buf_add(out, digits, 1);
        if (n > 1)
            pr_buf_printf(out, ".%s", digits + 1);
        pr_buf_printf(out, "e%c%02d", before < 1 ? '-' : '+', abs(before - 1));
    } else if (before <= 0) {
        pr_buf_printf(out, "0.%.*s%s", -before, "000", digits);
    } else if (before >= n) {
        pr_buf_printf(out, "%s%.*s.0", digits, before - n, "0000000000000000");
    } else {
        pr_buf_printf(out, "%.*s.%s", before, digits, digits + before);
    }
}

static void significant(struct pr_buf *out, double v)
{
    double a = fabs(v);
    pr_units_fixed(out, v, a == 0 || a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2);
}

static void human_bytes(struct pr_buf *out, double v)
{
    static const char *const names[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
    size_t i = 0;
    while (fabs(v) >= 1023.5 && i + 1 < sizeof names / sizeof *names) {
        v /= 1024;
        i++;
    }
    if (i)
        significant(out, v);
    else
        pr_units_fixed(out, v, 0);
    pr_buf_str(out, names[i]);
}

static void human_seconds(struct pr_buf *out, double v)
{
    if (v < 5e-6)
        v = 0; /* 0.00 ms would not say more */
    if (v < 99.95) {
        bool milli = v < 0.9995 && v > 0;
        significant(out, milli ? v * 1e3 : v);
        pr_buf_str(out, milli ? " ms" : " s");
        return;
    }
    int64_t s = llround(v);
    if (s >= 86400)
        pr_buf_printf(out, "%lld d ", (long long)(s / 86400));
    if (s >= 3600)
        pr_buf_printf(out, "%lld h ", (long long)(s / 3600 % 24));
    pr_buf_printf(out, s >= 3600 ? "%02lld m %02lld s" : "%lld m %02lld s",
                  (long long)(s / 60 % 60), (long long)(s % 60));
}

void pr_units_human(struct pr_buf *out, double v, enum pr_unit unit)
{
    if (unit == UNIT_SECONDS) {
        human_seconds(out, v);
        return;
    }
    if (unit == UNIT_BYTES || unit == UNIT_BYTES_PER_SECOND)
        human_bytes(out, v);
    else if (unit == UNIT_COUNT)
        pr_units_fixed(out, v, 0);
    else
        significant(out, v);
    pr_buf_str(out, units[unit].human);
}

struct scale {
    double by;
    const char *name;
};

double pr_units_scale(double size, enum pr_unit unit, const char **ret_name)
{
    static const struct scale bytes[] = {{1, "B"},        {0x1p10, "KiB"}, {0x1p20, "MiB"},
                                         {0x1p30, "GiB"}, {0x1p40, "TiB"}, {0x1p50, "PiB"},
                                         {0, NULL}},
                              rates[] = {{1, "B/s"},        {0x1p10, "KiB/s"}, {0x1p20, "MiB/s"},
                                         {0x1p30, "GiB/s"}, {0x1p40, "TiB/s"}, {0, NULL}},
                              joules[] = {{1, "J"}, {3600, "Wh"}, {3.6e6, "kWh"}, {0, NULL}},
                              ratio[] = {{0.01, "%"}, {0, NULL}};
    const struct scale *best = unit == UNIT_BYTES              ? bytes
                               : unit == UNIT_BYTES_PER_SECOND ? rates
                               : unit == UNIT_JOULES           ? joules
                               : unit == UNIT_RATIO            ? ratio
                                                               : NULL;
    if (!best) {
        *ret_name = units[unit].human + (units[unit].human[0] == ' ');
        return 1;
    }
    /* 1023.6 KiB would be said as 1 MiB. */
    double slack = best == joules ? 1 : 1023.5 / 1024;
    while (best[1].name && fabs(size) >= best[1].by * slack)
        best++;
    *ret_name = best->name;
    return best->by;
}

void pr_units_tick(struct pr_buf *out, double seconds, double step)
{
    static const struct {
        int64_t by, below;
        const char *name;
    } parts[] = {{86400, INT64_MAX, "d"}, {3600, 24, "h"}, {60, 60, "m"}, {1, 60, "s"}};
    size_t begin = out->len;
    if (step < 1) {
        bool milli = step < 0.1;
        pr_units_number(out, milli ? round(seconds * 1e4) / 10 : round(seconds * 10) / 10);
        pr_buf_str(out, seconds == 0 ? "" : milli ? " ms" : " s");
        return;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int64_t n = llround(seconds) / parts[i].by % parts[i].below;
        if (n)
            pr_buf_printf(out, "%s%lld %s", out->len > begin ? " " : "", (long long)n,
                          parts[i].name);
    }
    if (out->len == begin)
        pr_buf_char(out, '0');
}

struct suffix {
    const char *name;
    double factor;
};

/* A decimal number of at least 0, then nothing but one of the suffixes. */
static bool parse(const char *text, const struct suffix *suffixes, double *ret)
{
    struct pr_scan s = pr_scan_of(text, strlen(text));
    uint64_t whole = 0;
    double v = 0, fraction;
    if (s.p < s.end && (*s.p == ' ' || *s.p == '\t'))
        return false;
    bool any = pr_scan_u64(&s, &whole);
    v = (double)whole;
    if (s.p < s.end && *s.p == '.') {
        s.p++;
        if (s.p < s.end && *s.p >= '0' && *s.p <= '9') {
            if (!pr_scan_fraction(&s, &fraction))
                return false;
            v += fraction;
            any = true;
        }
    }
    if (!any)
        return false;
    for (; suffixes->name; suffixes++) {
        if (!pr_scan_equals(s, suffixes->name))
            continue;
        *ret = v * suffixes->factor;
        return true;
    }
    return false;
}

bool pr_units_parse_duration(const char *text, double *ret)
{
    static const struct suffix suffixes[] = {{"", 1},      {"s", 1},     {"ms", 1e-3},
                                             {"us", 1e-6}, {"min", 60},  {"m", 60},
                                             {"h", 3600},  {"d", 86400}, {NULL, 0}};
    return parse(text, suffixes, ret);
}

bool pr_units_parse_size(const char *text, double *ret)
{
    static const struct suffix suffixes[] = {
        {"", 1},         {"B", 1},        {"K", 0x1p10},   {"M", 0x1p20},   {"G", 0x1p30},
        {"T", 0x1p40},   {"k", 0x1p10},   {"m", 0x1p20},   {"g", 0x1p30},   {"t", 0x1p40},
        {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"Ki", 0x1p10},
        {"Mi", 0x1p20},  {"Gi", 0x1p30},  {"Ti", 0x1p40},  {"kB", 1e3},     {"KB", 1e3},
        {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {NULL, 0}};
    return parse(text, suffixes, ret);
}

bool pr_units_parse_number(const char *text, double *ret)
{
    static const struct suffix suffixes[] = {{"", 1}, {NULL, 0}};
    return parse(text, suffixes, ret);
}

bool pr_units_parse_percent(const char *text, double *ret)
{
    static const struct suffix suffixes[] = {{"%", 1}, {"", 1}, {NULL, 0}};
    return parse(text, suffixes, ret);
}

/* Durations, sizes and plain numbers are read as elsewhere; what follows is of the rest. */
bool pr_units_parse(const char *text, enum pr_unit unit, double *ret)
{
    static const struct suffix cores[] = {{"", 1}, {"cores", 1}, {"core", 1}, {NULL, 0}},
                               ratio[] = {{"", 1}, {"%", 0.01}, {NULL, 0}},
                               percent[] = {{"", 1}, {"%", 1}, {NULL, 0}},
                               gpus[] = {{"", 1}, {"GPUs", 1}, {"GPU", 1}, {NULL, 0}},
                               watts[] = {{"", 1}, {"W", 1}, {"kW", 1e3}, {NULL, 0}},
                               joules[] = {{"", 1},      {"J", 1},      {"kJ", 1e3},
                                           {"Wh", 3600}, {"kWh", 36e5}, {NULL, 0}},
                               celsius[] = {{"", 1}, {"C", 1}, {NULL, 0}},
                               hertz[] = {{"", 1},      {"Hz", 1},    {"kHz", 1e3},
                                          {"MHz", 1e6}, {"GHz", 1e9}, {NULL, 0}};
    static const struct suffix *const others[] = {
        [UNIT_CORES] = cores,     [UNIT_RATIO] = ratio, [UNIT_PERCENT] = percent,
        [UNIT_GPUS] = gpus,       [UNIT_WATTS] = watts, [UNIT_JOULES] = joules,
        [UNIT_CELSIUS] = celsius, [UNIT_HERTZ] = hertz};
    char size[64];
    size_t n = strlen(text);
    switch (unit) {
    case UNIT_COUNT:
        return pr_units_parse_number(text, ret);
    case UNIT_SECONDS:
        return pr_units_parse_duration(text, ret);
    case UNIT_BYTES:
        return pr_units_parse_size(text, ret);
    case UNIT_BYTES_PER_SECOND: /* 20MB/s, or the same without */
        if (n >= sizeof size)
            return false;
        snprintf(size, sizeof size, "%.*s",
                 (int)(n > 2 && strcmp(text + n - 2, "/s") == 0 ? n - 2 : n), text);
        return pr_units_parse_size(size, ret);
    default:
        return parse(text, others[unit], ret);
    }
}
