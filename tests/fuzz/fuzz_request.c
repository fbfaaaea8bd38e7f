/* SPDX-License-Identifier: Apache-2.0 */
/* What anybody may write into the socket of a run, and the JSON in it. */
#include "core/request.h"
#include "fuzz.h"
#include "util/json_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_request r, again;
    char *line = fuzz_bytes(data, size);
    pr_json_is_plain(line, size);
    if (pr_request_parse(&r, line, size)) {
        FUZZ_ASSERT(strlen(r.name) >= 1 && strlen(r.name) <= REQUEST_NAME);
        FUZZ_ASSERT(strlen(r.data) < REQUEST_LINE && !strpbrk(r.data, "\n\t\r"));
        FUZZ_ASSERT(!*r.data || pr_json_is_object(r.data, strlen(r.data)));
        FUZZ_ASSERT(pr_request_make(&again, r.verb, r.name, *r.data ? r.data : NULL));
        FUZZ_ASSERT(strcmp(again.data, r.data) == 0);
    }
    free(line);
    return 0;
}
