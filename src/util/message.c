/* SPDX-License-Identifier: Apache-2.0 */
/* Follows https://protobuf.dev/programming-guides/encoding/ and .../json/. The length of a part is
 * known when it is closed: it gets four bytes, which a varint may have though it needs fewer. */
#include "util/message.h"

#include <stdio.h>
#include <string.h>

#include "util/text.h"
#include "util/units.h"

#define LENGTH_BYTES 4
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2 };

struct pr_message pr_message_of(struct pr_buf *out, bool as_json)
{
    struct pr_message m = {.json = {.out = out}, .as_json = as_json};
    if (as_json)
        pr_json_open(&m.json, '{');
    return m;
}

void pr_message_end(struct pr_message *m)
{
    if (m->as_json)
        pr_json_close(&m->json, '}');
}

static void add_varint(struct pr_buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        pr_buf_char(out, (char)(v | 0x80));
    pr_buf_char(out, (char)v);
}

static void add_tag(struct pr_message *m, int number, int wire)
{
    add_varint(m->json.out, (uint64_t)number << 3 | (unsigned)wire);
}

/* The 8 bytes of a number, the lowest first, whatever the machine has. */
static void add_64(struct pr_buf *out, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        pr_buf_char(out, (char)(v >> 8 * i));
}

void pr_message_open(struct pr_message *m, int number, const char *name)
{
    static const char length[LENGTH_BYTES];
    if (m->as_json) {
        if (name)
            pr_json_key(&m->json, name);
        pr_json_open(&m->json, '{');
        return;
    }
    add_tag(m, number, WIRE_BYTES);
    m->open[m->depth++] = m->json.out->len;
    pr_buf_add(m->json.out, length, sizeof length);
}

void pr_message_close(struct pr_message *m)
{
    struct pr_buf *out = m->json.out;
    if (m->as_json) {
        pr_json_close(&m->json, '}');
        return;
    }
    size_t at = m->open[--m->depth];
    if (out->failed)
        return;
    size_t length = out->len - at - LENGTH_BYTES;
    out->failed |= length >> 7 * LENGTH_BYTES != 0; /* 256 MiB: nobody takes such a message */
    for (int i = 0; i < LENGTH_BYTES; i++)
        out->data[at + (size_t)i] =
            (char)((length >> 7 * i & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
}

void pr_message_list(struct pr_message *m, const char *name)
{
    if (!m->as_json)
        return;
    pr_json_key(&m->json, name);
    pr_json_open(&m->json, '[');
}

void pr_message_list_end(struct pr_message *m)
{
    if (m->as_json)
        pr_json_close(&m->json, ']');
}

/* Strings of protobuf are UTF-8, and receivers refuse whole messages in which one is not. */
static void add_text(struct pr_buf *out, const char *text)
{
    for (const char *p = text, *end = text + strlen(text); p < end;) {
        size_t n = pr_text_utf8(p, end);
        pr_buf_add(out, n ? p : "\xef\xbf\xbd", n ? n : 3);
        p += n ? n : 1;
    }
}

void pr_message_text(struct pr_message *m, int number, const char *name, const char *text)
{
    if (m->as_json) {
        pr_json_key(&m->json, name);
        pr_json_string(&m->json, text);
        return;
    }
    pr_message_open(m, number, NULL);
    add_text(m->json.out, text);
    pr_message_close(m);
}

/* All of it in JSON, too: both forms say the same. */
void pr_message_double(struct pr_message *m, int number, const char *name, double v)
{
    uint64_t bits;
    if (m->as_json) {
        struct pr_buf digits = {0};
        pr_units_shortest(&digits, v);
        pr_json_key(&m->json, name);
        pr_json_raw(&m->json, pr_buf_text(&digits));
        m->json.out->failed |= digits.failed;
        pr_buf_done(&digits);
        return;
    }
    memcpy(&bits, &v, sizeof bits);
    add_tag(m, number, WIRE_64);
    add_64(m->json.out, bits);
}

/* There numbers have 53 bits. */
static void json_text_of(struct pr_message *m, const char *name, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    pr_message_text(m, 0, name, text);
}

void pr_message_fixed64(struct pr_message *m, int number, const char *name, uint64_t v)
{
    if (m->as_json) {
        json_text_of(m, name, v);
        return;
    }
    add_tag(m, number, WIRE_64);
    add_64(m->json.out, v);
}

void pr_message_int(struct pr_message *m, int number, const char *name, int64_t v)
{
    if (m->as_json) {
        json_text_of(m, name, (uint64_t)v);
        return;
    }
    add_tag(m, number, WIRE_VARINT);
    add_varint(m->json.out, (uint64_t)v);
}

void pr_message_enum(struct pr_message *m, int number, const char *name, unsigned v)
{
    if (m->as_json) {
        pr_json_key(&m->json, name);
        pr_json_int(&m->json, v);
        return;
    }
    add_tag(m, number, WIRE_VARINT);
    add_varint(m->json.out, v);
}

void pr_message_bool(struct pr_message *m, int number, const char *name, bool v)
{
    if (m->as_json) {
        pr_json_key(&m->json, name);
        pr_json_bool(&m->json, v);
        return;
    }
    pr_message_enum(m, number, name, v);
}
