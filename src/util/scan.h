/* SPDX-License-Identifier: Apache-2.0 */
/* Scanners for kernel text: a cursor that only moves forward and never past the end.
 * No stdio, no locale, no allocation. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pr_scan {
    const char *p, *end;
};

static inline struct pr_scan pr_scan_of(const char *text, size_t len)
{
    return (struct pr_scan){text, text + len};
}

/* Skips blanks, then reads decimal digits; false (cursor unmoved past blanks) where there are none.
 * A number too large for 64 bits saturates. */
bool pr_scan_u64(struct pr_scan *s, uint64_t *ret);
/* As above, with an optional minus sign. */
bool pr_scan_i64(struct pr_scan *s, int64_t *ret);
/* Skips blanks and one run of non-blanks; false at the end of the line. */
bool pr_scan_word(struct pr_scan *s, struct pr_scan *ret_word);
/* The rest of the current line without its newline; false at the end of the text. */
bool pr_scan_line(struct pr_scan *s, struct pr_scan *ret_line);
/* True, and the cursor behind it, where the text goes on with `prefix`. */
bool pr_scan_prefix(struct pr_scan *s, const char *prefix);
bool pr_scan_equals(struct pr_scan s, const char *text);
/* The digits behind a point: "25" is 0.25. False where there are none, or more than 18. */
bool pr_scan_fraction(struct pr_scan *s, double *ret);

/* A number that differs where texts do, nearly always. */
uint64_t pr_scan_hash(const char *text, size_t len);

/* One line "Key: value" of a keyed file (io, status, smaps_rollup, meminfo): which metric it
 * belongs to and what to multiply by. Several rows may feed one metric: they add up. */
#define SCAN_METRICS 128
struct pr_scan_row {
    const char *key; /* with its colon */
    int metric;      /* below SCAN_METRICS */
    double scale;
};

/* Fills values[row.metric] for each row whose key occurs. A metric without any line is untouched.
 * False where no row was found at all. */
bool pr_scan_keyed(const char *text, size_t len, const struct pr_scan_row *rows, size_t count,
                   double *values);
