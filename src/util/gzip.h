/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes made smaller by zlib, loaded at first use. */
#pragma once
#include "util/buf.h"

/* Appends the data as a gzip file has it. -ENOSYS where there is no library, -ENOMEM. */
int pr_gzip(struct pr_buf *out, const void *data, size_t n);
