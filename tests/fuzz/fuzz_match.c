/* SPDX-License-Identifier: Apache-2.0 */
/* --match [NAME=]REGEX. Patterns are kept simple: repetitions that eat all memory are the C
 * library's, and the user's own. */
#include "core/match.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[NAME_SIZE];
    regex_t regex;
    struct proctor_error err = {0};
    char *text = fuzz_text(data, size < 64 ? size : 64);
    if (!strpbrk(text, "{*+\\")) {
        int r = pr_match_parse(text, "--match", name, &regex, &err);
        FUZZ_ASSERT(r == 0 || *err.message);
        if (r == 0) {
            FUZZ_ASSERT(strnlen(name, NAME_SIZE) < NAME_SIZE);
            regexec(&regex, "python3", 0, NULL, 0);
            regfree(&regex);
        }
    }
    free(text);
    return 0;
}
