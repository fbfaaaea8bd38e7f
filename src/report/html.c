/* SPDX-License-Identifier: Apache-2.0 */
/* The model in its page. */
#include <errno.h>
#include <string.h>

#include "report/model.h"
#include "report/template.h"

#define PLACE "@MODEL@"

/* Only strings of JSON can have a `<`; none may end the script element that it stands in. */
static void put_escaped(struct pr_buf *out, const char *json, size_t len)
{
    for (const char *end = json + len, *at; json < end; json = at + 1) {
        at = memchr(json, '<', (size_t)(end - json));
        pr_buf_add(out, json, (size_t)((at ? at : end) - json));
        if (!at)
            return;
        pr_buf_str(out, "\\u003c");
    }
}

int pr_model_html_ready(struct proctor_error *err)
{
    if (pr_template_len)
        return 0;
    return pr_error(err, ENOTSUP,
                    "this build has no page: install node and npm and build again; .json works "
                    "without");
}

int pr_model_html(struct pr_buf *out, const struct pr_model *const *runs, size_t count,
                  struct proctor_error *err)
{
    return pr_model_html_compared(out, runs, count, "null", err);
}

int pr_model_html_compared(struct pr_buf *out, const struct pr_model *const *runs, size_t count,
                           const char *comparison, struct proctor_error *err)
{
    const char *place = memmem(pr_template, pr_template_len, PLACE, strlen(PLACE));
    if (!place)
        return pr_model_html_ready(err) < 0 ? -ENOTSUP
                                            : pr_error(err, EINVAL, "the page is broken");
    struct pr_buf json = {0};
    pr_model_json_compared(&json, runs, count, comparison);
    pr_buf_add(out, pr_template, (size_t)(place - pr_template));
    put_escaped(out, json.data, json.len);
    place += strlen(PLACE);
    pr_buf_add(out, place, (size_t)(pr_template + pr_template_len - place));
    bool failed = json.failed || out->failed;
    pr_buf_done(&json);
    return failed ? pr_error(err, ENOMEM, "out of memory") : 0;
}

int pr_model_page(struct pr_buf *out, const struct pr_stored *r, struct proctor_error *err)
{
    struct pr_model m = {0};
    const struct pr_model *const one = &m;
    int code = pr_model_html_ready(err);
    if (code == 0)
        code = pr_model_read(&m, r, MODEL_BYTES, err);
    if (code == 0)
        code = pr_model_html(out, &one, 1, err);
    pr_model_done(&m);
    return code;
}
