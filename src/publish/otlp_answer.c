/* SPDX-License-Identifier: Apache-2.0 */
/* ExportMetricsServiceResponse {1: {1: rejected points, 2: why}}, and google.rpc.Status {1: code,
 * 2: why}: both are a number and a text. */
#include <stdio.h>
#include <string.h>

#include "publish/otlp_parts.h"
#include "util/text.h"

struct bytes {
    const unsigned char *at, *end;
};

static bool read_varint(struct bytes *b, uint64_t *ret)
{
    *ret = 0;
    for (int shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        unsigned char c = *b->at++;
        *ret |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80))
            return true;
    }
    return false;
}

/* One field: its number, and what it is: a number, or bytes. False where it is none. */
static bool read_field(struct bytes *b, uint64_t *ret_field, uint64_t *ret_number,
                       struct bytes *ret_bytes)
{
    static const unsigned fixed[] = {[1] = 8, [5] = 4};
    uint64_t tag, n;
    *ret_number = 0;
    *ret_bytes = (struct bytes){0};
    if (!read_varint(b, &tag) || tag >> 3 == 0)
        return false;
    *ret_field = tag >> 3;
    unsigned wire = tag & 7;
    if (wire == 0)
        return read_varint(b, ret_number);
    if (wire == 2 && !read_varint(b, &n))
        return false;
    if (wire == 1 || wire == 5)
        n = fixed[wire];
    else if (wire != 2)
        return false;
    if (n > (uint64_t)(b->end - b->at))
        return false;
    *ret_bytes = (struct bytes){b->at, b->at + n};
    b->at += n;
    return true;
}

/* On one line, and fit to be shown. */
static void keep_text(struct pr_otlp_answer *ret, const char *text, size_t n)
{
    struct pr_buf raw = {0}, line = {0};
    pr_buf_add(&raw, text, n < 200 ? n : 200);
    pr_text_line(&line, pr_buf_text(&raw), 60);
    snprintf(ret->text, sizeof ret->text, "%s", pr_buf_text(&line));
    pr_buf_done(&raw);
    pr_buf_done(&line);
}

static bool read_message(struct pr_otlp_answer *ret, struct bytes b, bool within)
{
    uint64_t field, number;
    struct bytes part;
    while (b.at < b.end) {
        if (!read_field(&b, &field, &number, &part))
            return false;
        if (within) {
            if (field == 1 && part.at && !read_message(ret, part, false))
                return false;
        } else if (field == 1 && !part.at) {
            ret->number = (int64_t)number;
        } else if (field == 2 && part.at) {
            keep_text(ret, (const char *)part.at, (size_t)(part.end - part.at));
        }
    }
    return true;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static bool read_json(struct pr_otlp_answer *ret, bool success, const char *body,
                      struct pr_db *json)
{
    static const char sql[] =
        "SELECT CAST(json_extract(?1, ?2) AS INTEGER), json_extract(?1, ?3), json_type(?1)";
    struct pr_query *q = NULL;
    bool good = pr_query_new(&q, json, sql) == 0;
    if (good) {
        pr_query_text(q, 1, body);
        pr_query_text(q, 2, success ? "$.partialSuccess.rejectedDataPoints" : "$.code");
        pr_query_text(q, 3, success ? "$.partialSuccess.errorMessage" : "$.message");
        good = pr_query_step(q) == 1 && strcmp(pr_query_get_text(q, 2), "object") == 0;
    }
    const char *text = good ? pr_query_get_text(q, 1) : NULL;
    if (good)
        ret->number = pr_query_get_int(q, 0);
    if (text)
        keep_text(ret, text, strlen(text));
    pr_query_free(q);
    return good;
}

bool pr_otlp_answered(struct pr_otlp_answer *ret, bool success, const struct pr_buf *body,
                      bool as_json, struct pr_db *json)
{
    struct pr_buf text = {0};
    *ret = (struct pr_otlp_answer){0};
    if (!body->len)
        return true;
    const unsigned char *data = (const unsigned char *)body->data;
    if (!as_json && data[0] != '{') /* who always answers with JSON is understood, too */
        return read_message(ret, (struct bytes){data, data + body->len}, success);
    pr_buf_add(&text, body->data, body->len);
    bool good = read_json(ret, success, pr_buf_text(&text), json);
    pr_buf_done(&text);
    return good;
}
