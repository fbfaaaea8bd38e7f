/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside, made safe: nothing that a terminal obeys, one field of a CSV row, one JSON
 * string, and always valid UTF-8. */
#include "fuzz.h"
#include "util/json.h"
#include "util/text.h"

static void check(struct pr_buf *out)
{
    const char *p = pr_buf_text(out), *end = p + out->len;
    while (p < end) {
        size_t n = pr_text_utf8(p, end);
        unsigned char c = (unsigned char)*p;
        FUZZ_ASSERT(n > 0 && c >= 0x20 && c != 0x7f);
        FUZZ_ASSERT(!(n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0));
        p += n;
    }
}

/* A field is quoted as a whole, with quotes doubled inside, or has none of what needs that. */
static void check_csv(struct pr_buf *out)
{
    const char *p = pr_buf_text(out);
    if (*p != '"') {
        FUZZ_ASSERT(!strpbrk(p, "\",\n\r"));
        return;
    }
    for (p++; *p != '"' || p[1] == '"'; p++) {
        FUZZ_ASSERT(*p && *p != '\n');
        p += *p == '"';
    }
    FUZZ_ASSERT(p[1] == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_buf out = {0};
    struct pr_json j = {.out = &out};
    char *text = fuzz_text(data, size);
    pr_text_safe(&out, text);
    check(&out);
    pr_buf_reset(&out);
    pr_text_csv(&out, text);
    check(&out);
    check_csv(&out);
    pr_buf_reset(&out);
    pr_json_string(&j, text);
    FUZZ_ASSERT(out.len >= 2 && out.data[0] == '"' && out.data[out.len - 1] == '"');
    for (size_t i = 0; i < out.len; i++)
        FUZZ_ASSERT((unsigned char)out.data[i] >= 0x20);
    pr_buf_done(&out);
    free(text);
    return 0;
}
