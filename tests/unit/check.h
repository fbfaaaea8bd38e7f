/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with what it lacks: comparing doubles, absent values, and text with a readable failure. */
#pragma once
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/buf.h"

static inline void check_near(double got, double want, double epsilon, const char *what,
                              const char *file, int line)
{
    if (fabs(got - want) <= epsilon)
        return;
    print_error("%s is %.17g, not %.17g\n", what, got, want);
    _fail(file, line);
}

static inline void check_absent(double got, const char *what, const char *file, int line)
{
    if (isnan(got))
        return;
    print_error("%s is %.17g, not absent\n", what, got);
    _fail(file, line);
}

static inline void check_contains(const char *text, const char *part, const char *file, int line)
{
    if (text && strstr(text, part))
        return;
    print_error("'%s' is not in '%s'\n", part, text ? text : "(null)");
    _fail(file, line);
}

#define assert_near(got, want, epsilon) check_near(got, want, epsilon, #got, __FILE__, __LINE__)
#define assert_exactly(got, want)       check_near(got, want, 0, #got, __FILE__, __LINE__)
#define assert_absent(got)              check_absent(got, #got, __FILE__, __LINE__)
#define assert_contains(text, part)     check_contains(text, part, __FILE__, __LINE__)
/* What a buffer holds; the buffer is reset. */
#define assert_buf(buf, want)                                                                      \
    do {                                                                                           \
        assert_string_equal(pr_buf_text(buf), want);                                               \
        pr_buf_reset(buf);                                                                         \
    } while (0)

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
