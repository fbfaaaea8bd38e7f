/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as PNG: librsvg draws our SVG. It is loaded at first use. */
#pragma once
#include "report/svg.h"

/* -ENOTSUP where the library is not there, with what to do about it. */
int pr_png_ready(struct proctor_error *err);
/* Twice the size, for screens with small points. 0 or -errno. */
int pr_png(struct pr_buf *out, const struct pr_picture *picture, struct proctor_error *err);
