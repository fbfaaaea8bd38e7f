/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/io. Surprise: a parent's counters include those of children that it has waited for,
 * so values of processes that are gone must not be added to those of their parents (ledger.c). */
#include "source/pid_io.h"

#include "core/source.h"

const struct pr_scan_row pr_io_rows[IO_ROWS] = {
    {"rchar:", METRIC_IO_RCHAR, 1},
    {"wchar:", METRIC_IO_WCHAR, 1},
    {"read_bytes:", METRIC_IO_READ, 1},
    {"write_bytes:", METRIC_IO_WRITE, 1},
};

static bool parse(const struct pr_tick *t, struct pr_entity *e, const char *text, size_t len)
{
    (void)t;
    return pr_scan_keyed(text, len, pr_io_rows, IO_ROWS, e->value);
}

const struct pr_source pr_source_pid_io = {
    .name = "io", .gives = READ_IO, .file = "io", .parse = parse};
