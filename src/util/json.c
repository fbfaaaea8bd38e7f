/* SPDX-License-Identifier: Apache-2.0 */
#include "util/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "util/text.h"
#include "util/units.h"

static void newline(struct pr_json *j)
{
    if (!j->indent)
        return;
    pr_buf_char(j->out, '\n');
    for (int i = 0; i < j->depth * j->indent; i++)
        pr_buf_char(j->out, ' ');
}

static void before_value(struct pr_json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->comma)
        pr_buf_char(j->out, ',');
    if (j->depth)
        newline(j);
}

void pr_json_open(struct pr_json *j, char bracket)
{
    before_value(j);
    pr_buf_char(j->out, bracket);
    j->depth++;
    j->comma = false;
}

void pr_json_close(struct pr_json *j, char bracket)
{
    j->depth--;
    if (j->comma)
        newline(j);
    pr_buf_char(j->out, bracket);
    j->comma = true;
}

static void quoted(struct pr_json *j, const char *text)
{
    pr_buf_char(j->out, '"');
    for (const char *p = text, *end = text + strlen(text); p < end;) {
        size_t n = pr_text_utf8(p, end);
        unsigned char c = (unsigned char)*p;
        if (!n)
            pr_buf_str(j->out, "\\ufffd");
        else if (c == '"' || c == '\\')
            pr_buf_printf(j->out, "\\%c", c);
        else if (c == '\n')
            pr_buf_str(j->out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            pr_buf_printf(j->out, "\\u%04x", c);
        else
            pr_buf_add(j->out, p, n);
        p += n ? n : 1;
    }
    pr_buf_char(j->out, '"');
}

void pr_json_key(struct pr_json *j, const char *key)
{
    before_value(j);
    quoted(j, key);
    pr_buf_str(j->out, j->indent ? ": " : ":");
    j->after_key = true;
}

void pr_json_string(struct pr_json *j, const char *text)
{
    if (!text) {
        pr_json_null(j);
        return;
    }
    before_value(j);
    quoted(j, text);
    j->comma = true;
}

void pr_json_number(struct pr_json *j, double v)
{
    before_value(j);
    if (isfinite(v))
        pr_units_number(j->out, v);
    else
        pr_buf_str(j->out, "null");
    j->comma = true;
}

void pr_json_int(struct pr_json *j, int64_t v)
{
    before_value(j);
    pr_buf_printf(j->out, "%" PRId64, v);
    j->comma = true;
}

void pr_json_bool(struct pr_json *j, bool v)
{
    before_value(j);
    pr_buf_str(j->out, v ? "true" : "false");
    j->comma = true;
}

void pr_json_null(struct pr_json *j)
{
    before_value(j);
    pr_buf_str(j->out, "null");
    j->comma = true;
}

void pr_json_raw(struct pr_json *j, const char *text)
{
    before_value(j);
    pr_buf_str(j->out, text);
    j->comma = true;
}
