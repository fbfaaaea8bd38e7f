/* SPDX-License-Identifier: Apache-2.0 */
#include "source/mountinfo.h"

static bool parse_line(struct pr_scan line, struct pr_mount *ret)
{
    struct pr_scan w;
    *ret = (struct pr_mount){.source = {line.end, line.end}, .options = {line.end, line.end}};
    if (!pr_scan_u64(&line, &ret->id) || !pr_scan_u64(&line, &ret->parent) ||
        !pr_scan_word(&line, &ret->device) || !pr_scan_word(&line, &ret->root) ||
        !pr_scan_word(&line, &ret->point))
        return false;
    do {
        if (!pr_scan_word(&line, &w))
            return false;
    } while (!pr_scan_equals(w, "-"));
    if (!pr_scan_word(&line, &ret->type))
        return false;
    /* A source without a name leaves nothing in its place. That does not make the mount go away. */
    if (pr_scan_word(&line, &ret->source))
        pr_scan_word(&line, &ret->options);
    return true;
}

bool pr_mount_next(struct pr_scan *text, struct pr_mount *ret)
{
    struct pr_scan line;
    while (pr_scan_line(text, &line))
        if (parse_line(line, ret))
            return true;
    return false;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

bool pr_mount_unescape(struct pr_scan s, char *ret, size_t size)
{
    size_t n = 0;
    while (s.p < s.end && n + 1 < size) {
        bool escape = s.end - s.p >= 4 && s.p[0] == '\\' && s.p[1] >= '0' && s.p[1] <= '3' &&
                      is_octal(s.p[2]) && is_octal(s.p[3]);
        ret[n++] =
            escape ? (char)((s.p[1] - '0') << 6 | (s.p[2] - '0') << 3 | (s.p[3] - '0')) : *s.p;
        s.p += escape ? 4 : 1;
    }
    ret[n] = '\0';
    return s.p == s.end;
}

const char *pr_mount_file(const struct pr_host *host, bool second)
{
    /* Under a foreign root "self" would be ourselves, with mounts of our own. */
    return host->foreign != second ? "1/mountinfo" : "self/mountinfo";
}

int pr_mount_table(const struct pr_host *host, char **ret_text, size_t *ret_len)
{
    int r = pr_host_slurp(host, KEPT_MOUNTS, pr_mount_file(host, false), ret_text, ret_len);
    return r < 0 ? pr_host_slurp(host, KEPT_MOUNTS, pr_mount_file(host, true), ret_text, ret_len)
                 : r;
}
