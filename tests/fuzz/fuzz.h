/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share. A target feeds one parser with any bytes; what must hold besides not
 * crashing is asserted, and a failed assertion is a crash to the fuzzer. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_ASSERT(holds)                                                                         \
    do {                                                                                           \
        if (!(holds))                                                                              \
            __builtin_trap();                                                                      \
    } while (0)

/* The bytes in memory of exactly their size and a NUL behind, so that a step too far is seen. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    FUZZ_ASSERT(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* The same without the NUL, for parsers that are told a length. */
static inline char *fuzz_bytes(const uint8_t *data, size_t size)
{
    char *text = malloc(size ? size : 1);
    FUZZ_ASSERT(text);
    memcpy(text, data, size);
    return text;
}
