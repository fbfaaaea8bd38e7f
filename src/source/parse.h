/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers of sources that are more than a parser, for those sources and for fuzzing. Each takes any
 * bytes, and says false where they are not what they should be. */
#pragma once
#include "util/scan.h"

/* A line of /proc/diskstats: bytes read and written. */
bool pr_diskstats_line(struct pr_scan line, struct pr_scan *ret_name, double *ret_bytes);
/* A line of /proc/net/dev: bytes received and sent. False for its two lines of headings. */
bool pr_netdev_line(struct pr_scan line, struct pr_scan *ret_name, double *ret_bytes);
/* Seconds in the line "some" or "full" of a pressure file. */
bool pr_pressure_total(const char *text, size_t len, const char *which, double *ret_seconds);
