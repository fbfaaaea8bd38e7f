/* SPDX-License-Identifier: Apache-2.0 */
/* The only place that converts, parses or prints units. Nothing here depends on the locale. */
#pragma once
#include <stdbool.h>

#include "util/buf.h"

enum pr_unit {
    UNIT_COUNT,
    UNIT_SECONDS,
    UNIT_BYTES,
    UNIT_BYTES_PER_SECOND,
    UNIT_CORES,
    UNIT_RATIO,
    UNIT_PERCENT,
    UNIT_GPUS,
    UNIT_WATTS,
    UNIT_JOULES,
    UNIT_CELSIUS,
    UNIT_HERTZ,
};

/* "seconds", "bytes", ...; "1" for counts. */
const char *pr_units_name(enum pr_unit unit);
/* "_seconds", "_bytes", ...; "" where columns carry none. */
const char *pr_units_suffix(enum pr_unit unit);

/* A plain decimal number, at most nine decimals, no trailing zeros. */
void pr_units_number(struct pr_buf *out, double v);
void pr_units_fixed(struct pr_buf *out, double v, int decimals);
/* As C and Python print it: the exact value, rounded to so many decimals, an exact half to even. */
void pr_units_exact(struct pr_buf *out, double v, int decimals);
/* The same as a number again: Python's round(). */
double pr_units_round(double v, int decimals);
/* The shortest text that reads back as v, with a point or an exponent in it: Python's repr(). */
void pr_units_shortest(struct pr_buf *out, double v);
/* For people, three significant digits: "412 MiB", "1.72 cores", "12.4 s", "1 h 12 m 04 s". */
void pr_units_human(struct pr_buf *out, double v, enum pr_unit unit);

/* What a value of that size is divided by for people, and what it is then called: "GiB", "%". Of
 * seconds, seconds. */
double pr_units_scale(double size, enum pr_unit unit, const char **ret_name);
/* A moment on an axis with that step: "0", "0.2 s", "1 h 30 m"; parts that are 0 are left out. */
void pr_units_tick(struct pr_buf *out, double seconds, double step);

/* "100ms", "0.5", "2s", "5m", "1h": seconds. */
bool pr_units_parse_duration(const char *text, double *ret);
/* "64G", "64GiB", "64GB", "1048576": bytes. */
bool pr_units_parse_size(const char *text, double *ret);
/* "2.5": a decimal number of at least 0. */
bool pr_units_parse_number(const char *text, double *ret);
/* "1%" or "1": percent. */
bool pr_units_parse_percent(const char *text, double *ret);
/* A value in that unit, with or without its name: "90s", "2GiB", "20MB/s", "1.5cores",
 * "80%" of a ratio, "3kWh". */
bool pr_units_parse(const char *text, enum pr_unit unit, double *ret);
