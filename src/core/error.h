/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a struct proctor_error. */
#pragma once
#include "proctor/proctor.h"

/* Writes code and message where err is not NULL; returns -code. */
int pr_error(struct proctor_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
