/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may write as its Accept header, and what a user may call a job. */
#include "core/config.h"
#include "fuzz.h"
#include "sink/exposition.h"

/* A line is a comment, or has one pair of quotes for each label and nothing behind its number. */
static void check_line(const char *p, const char *end)
{
    int quotes = 0;
    if (*p == '#')
        return;
    FUZZ_ASSERT(end - p > 8 && memcmp(p, "proctor_", 8) == 0);
    for (; p < end && (*p != '}' || quotes % 2); p++) {
        quotes += *p == '"';
        p += *p == '\\';
    }
    FUZZ_ASSERT(quotes == 4 && p + 2 < end && p[1] == ' ' && p[2] >= '0' && p[2] <= '9');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct proctor_snapshot s;
    struct pr_config config;
    struct pr_exposition x;
    struct pr_buf out = {0};
    char *text = fuzz_text(data, size);
    enum pr_exposition_form form = pr_exposition_choose(text);
    FUZZ_ASSERT(pr_config_init(&config) == 0);
    struct pr_sink_setting setting = {
        .select = pr_select_of(&config), .name = text, .run_id = "20260101T000000Z-00000000"};
    if (pr_exposition_init(&x, &setting) == 0) {
        pr_exposition_write(&out, &x, form, &s);
        for (const char *p = pr_buf_text(&out), *end; *p; p = end + 1) {
            FUZZ_ASSERT((end = strchr(p, '\n')));
            check_line(p, end);
        }
    }
    pr_exposition_done(&x);
    pr_config_done(&config);
    pr_buf_done(&out);
    free(text);
    return 0;
}
