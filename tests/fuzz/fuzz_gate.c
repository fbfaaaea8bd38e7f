/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of `compare --fail-if`. */
#include <math.h>

#include "fuzz.h"
#include "report/compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct pr_gate g;
    struct proctor_error err = {0};
    if (pr_gate_parse(&g, text, &err) == 0) {
        struct pr_buf name = {0};
        FUZZ_ASSERT(isfinite(g.threshold) && g.of.id <= METRIC_DURATION &&
                    g.of.stat < COMPARE_STATS);
        pr_figure_name(&name, g.of);
        FUZZ_ASSERT(name.len > 0);
        pr_buf_done(&name);
    } else {
        FUZZ_ASSERT(*err.message);
    }
    free(text);
    return 0;
}
