/* SPDX-License-Identifier: Apache-2.0 */
/* Durations, sizes, numbers and percentages as users write them, and how they are printed. */
#include <math.h>

#include "fuzz.h"
#include "util/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool (*const parse[])(const char *,
                                 double *) = {pr_units_parse_duration, pr_units_parse_size,
                                              pr_units_parse_number, pr_units_parse_percent};
    if (size == 0)
        return 0;
    char *text = fuzz_text(data + 1, size - 1);
    double v = NAN;
    struct pr_buf out = {0};
    if (parse[*data % 4](text, &v)) {
        FUZZ_ASSERT(v >= 0 && isfinite(v));
        pr_units_number(&out, v);
        pr_units_human(&out, v, (enum pr_unit)(*data / 4 % (UNIT_HERTZ + 1)));
        FUZZ_ASSERT(out.len > 0);
    } else {
        FUZZ_ASSERT(isnan(v));
    }
    if (pr_units_parse(text, (enum pr_unit)(*data % (UNIT_HERTZ + 1)), &v))
        FUZZ_ASSERT(v >= 0 && isfinite(v));
    pr_buf_done(&out);
    free(text);
    return 0;
}
