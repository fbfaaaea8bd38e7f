/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor mark`: words into a JSON object. */
#include <string.h>

#include "cli/cli.h"
#include "cli/teller.h"
#include "util/json.h"
#include "util/json_check.h"

/* Of words with the same key the last one counts. */
static bool comes_again(char **words, size_t key_len)
{
    for (char **other = words + 1; *other; other++)
        if (strncmp(*other, *words, key_len) == 0)
            return true;
    return false;
}

/* key_len: with its '='. */
static void put(struct pr_json *j, char *word, size_t key_len)
{
    const char *value = word + key_len;
    word[key_len - 1] = '\0';
    pr_json_key(j, word);
    word[key_len - 1] = '=';
    if (pr_json_is_plain(value, strlen(value)))
        pr_json_raw(j, value);
    else
        pr_json_string(j, value);
}

static bool put_all(struct pr_json *j, char **words)
{
    pr_json_open(j, '{');
    for (; *words; words++) {
        size_t key_len = strcspn(*words, "=") + 1;
        if (key_len == 1 || !(*words)[key_len - 1]) {
            pr_complain("mark: '%.80s' is not KEY=VALUE", *words);
            return false;
        }
        if (!comes_again(words, key_len))
            put(j, *words, key_len);
    }
    pr_json_close(j, '}');
    return true;
}

static int mark(const char *name, char **words)
{
    struct pr_buf data = {0};
    struct pr_json j = {.out = &data};
    int status = EXIT_USAGE;
    if (!put_all(&j, words)) {
        ; /* it has complained */
    } else if (data.len + strlen(name) + sizeof "mark \t\n" > REQUEST_LINE) {
        pr_complain("mark: all together it must not have more than %d bytes", REQUEST_LINE);
    } else {
        pr_tell(REQUEST_MARK, name, *words ? pr_buf_text(&data) : NULL, false);
        status = 0;
    }
    pr_buf_done(&data);
    return status;
}

int pr_main_mark(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        pr_cli_help(pr_command_find("mark"));
        return 0;
    }
    if (argc < 2) {
        pr_complain("mark: a name is missing: proctor mark %s", pr_command_find("mark")->args);
        return EXIT_USAGE;
    }
    return pr_tell_check("mark", argv[1]) ? mark(argv[1], argv + 2) : EXIT_USAGE;
}
