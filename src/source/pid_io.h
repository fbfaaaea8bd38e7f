/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of an io file, whether of a process or of a thread. */
#pragma once
#include "util/scan.h"

#define IO_ROWS 4
extern const struct pr_scan_row pr_io_rows[IO_ROWS];
