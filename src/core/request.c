/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request.h"

#include <string.h>

#include "util/json_check.h"

static const char *const verbs[] = {[REQUEST_BEGIN] = "begin",
                                    [REQUEST_END] = "end",
                                    [REQUEST_DURING] = "during",
                                    [REQUEST_MARK] = "mark"};
#define VERBS (sizeof verbs / sizeof *verbs)

const char *pr_request_verb_name(enum pr_request_verb verb)
{
    return verbs[verb];
}

bool pr_request_is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return false;
    return len > 0 && len <= REQUEST_NAME;
}

/* Outside of its strings JSON has no control characters but blanks. */
static bool take_data(struct pr_request *r, const char *data, size_t len)
{
    if (len >= sizeof r->data || r->verb != REQUEST_MARK || !pr_json_is_object(data, len))
        return false;
    for (size_t i = 0; i < len; i++)
        r->data[i] = (unsigned char)data[i] < 0x20 ? ' ' : data[i];
    r->data[len] = '\0';
    return true;
}

static bool take(struct pr_request *r, const char *name, size_t name_len, const char *data,
                 size_t data_len)
{
    r->name[0] = r->data[0] = '\0';
    if (!pr_request_is_name(name, name_len))
        return false;
    memcpy(r->name, name, name_len);
    r->name[name_len] = '\0';
    return !data || take_data(r, data, data_len);
}

bool pr_request_parse(struct pr_request *r, const char *line, size_t len)
{
    const char *blank = memchr(line, ' ', len), *end = line + len;
    if (!blank)
        return false;
    for (size_t i = 0; i < VERBS; i++) {
        size_t n = (size_t)(blank - line);
        if (strlen(verbs[i]) != n || memcmp(verbs[i], line, n) != 0)
            continue;
        const char *name = blank + 1, *tab = memchr(name, '\t', (size_t)(end - name));
        r->verb = (enum pr_request_verb)i;
        return take(r, name, (size_t)((tab ? tab : end) - name), tab ? tab + 1 : NULL,
                    tab ? (size_t)(end - tab - 1) : 0);
    }
    return false;
}

bool pr_request_make(struct pr_request *r, enum pr_request_verb verb, const char *name,
                     const char *data)
{
    r->verb = verb;
    return take(r, name, strlen(name), data, data ? strlen(data) : 0);
}
