/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/match.h"
#include "core/run_file.h"
#include "core/select.h"
#include "util/fs.h"
#include "util/scan.h"
#include "util/text.h"
#include "util/units.h"

#define VARIABLE_PREFIX "PROCTOR_"

static const char dialect_names[] = "native"
#define DIALECT(name, dialect) " " name
#include "core/dialects.def"
#undef DIALECT
    ;

const struct pr_option pr_options[OPTION_COUNT] = {
#define FIELD(kind, member) .type = TYPE_##kind, .field = offsetof(struct pr_config, member)
#define OPTION(id, ...)     [OPTION_##id] = {__VA_ARGS__},
#include "core/options.def"
#undef OPTION
#undef FIELD
};

static void *field(struct pr_config *c, enum pr_option_id id)
{
    return (char *)c + pr_options[id].field;
}

static bool is_list(enum pr_option_type type)
{
    return type == TYPE_LIST || type == TYPE_LABELS || type == TYPE_KEYS || type == TYPE_MATCH;
}

static void list_clear(struct pr_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct pr_list){0};
}

static bool list_add(struct pr_list *list, const char *item, size_t len)
{
    char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items)
        return false;
    list->items = items;
    items[list->count] = strndup(item, len);
    return items[list->count] && ++list->count;
}

/* --- reading one value ------------------------------------------------------------------------ */

static bool word_in(const char *words, const char *word)
{
    struct pr_scan s = pr_scan_of(words, strlen(words)), w;
    while (pr_scan_word(&s, &w))
        if (pr_scan_equals(w, word))
            return true;
    return false;
}

static int set_flag(bool *ret, const char *value, const char *what, struct proctor_error *err)
{
    static const char *const yes = "true yes on 1", *const no = "false no off 0";
    if (!word_in(yes, value) && !word_in(no, value))
        return pr_error(err, EINVAL, "%s: '%.40s' is neither true nor false; write true or false",
                        what, value);
    *ret = word_in(yes, value);
    return 0;
}

static int set_number(const struct pr_option *o, double *ret, const char *value, const char *what,
                      struct proctor_error *err)
{
    static const struct {
        bool (*parse)(const char *, double *);
        const char *noun, *example;
    } readers[] = {
        [TYPE_DURATION] = {pr_units_parse_duration, "a duration", "100ms, 0.5, 2s, 5m or 1h"},
        [TYPE_SIZE] = {pr_units_parse_size, "a size", "512M, 64GiB or a number of bytes"},
        [TYPE_NUMBER] = {pr_units_parse_number, "a number", "4 or 2.5"},
        [TYPE_PERCENT] = {pr_units_parse_percent, "a percentage", "1% or 0.5%"},
        [TYPE_COUNT] = {pr_units_parse_number, "a whole number", "1 or 10"},
    };
    double v;
    if (!readers[o->type].parse(value, &v) || (o->type == TYPE_COUNT && v != floor(v)))
        return pr_error(err, EINVAL, "%s: '%.40s' is not %s; write it as %s", what, value,
                        readers[o->type].noun, readers[o->type].example);
    if (v < o->min)
        return pr_error(err, EINVAL, "%s: '%.40s' is too small; the least is %s", what, value,
                        o->min_text);
    /* Nobody means more than this, and clocks in nanoseconds would overflow. */
    if (o->type == TYPE_DURATION && v > 3e8)
        return pr_error(err, EINVAL, "%s: '%.40s' is too long; the most is 9 years", what, value);
    if (o->type == TYPE_COUNT && v > 1e6)
        return pr_error(err, EINVAL, "%s: '%.40s' is too large; the most is 1000000", what, value);
    *ret = v;
    return 0;
}

static int check_choice(const struct pr_option *o, const char *value, const char *what,
                        struct proctor_error *err)
{
    if (!word_in(o->choices, value))
        return pr_error(err, EINVAL, "%s: '%.40s' is not one of: %s", what, value, o->choices);
    return 0;
}

static int check_text(const struct pr_option *o, const char *value, const char *what,
                      struct proctor_error *err)
{
    if (o->type == TYPE_CHOICE)
        return check_choice(o, value, what, err);
    if (!*value)
        return pr_error(err, EINVAL, "%s: the value is empty; it takes %s", what, o->arg);
    if (o == &pr_options[OPTION_RUN_ID] && !pr_run_id_is_good(value))
        return pr_error(err, EINVAL,
                        "%s: '%.40s' cannot name a run: take up to 100 bytes without / and control "
                        "characters, no . or - first, no .proctor at the end, and not last",
                        what, value);
    const char *equals = strchr(value, '=');
    if (o->type == TYPE_LABELS && (!equals || equals == value))
        return pr_error(err, EINVAL, "%s: '%.80s' is not KEY=VALUE", what, value);
    if (o->type == TYPE_MATCH)
        return pr_match_parse(value, what, NULL, NULL, err);
    if (o->type == TYPE_LABELS && equals - value > LABEL_KEY_MAX)
        return pr_error(err, EINVAL, "%s: '%.40s...' has a key of more than %d bytes; shorten it",
                        what, value, LABEL_KEY_MAX);
    return o->type == TYPE_KEYS ? pr_select_check(value, what, err) : 0;
}

/* Takes the items of a list out of its text: from the command line one, but for keys; elsewhere
 * several, separated by commas. All are checked before any is kept. */
static int read_list(struct pr_list *ret, const struct pr_option *o, const char *value,
                     enum pr_origin origin, const char *what, struct proctor_error *err)
{
    /* A comma may be part of a regular expression. */
    bool several = (origin != ORIGIN_OPTION || o->type == TYPE_KEYS) && o->type != TYPE_MATCH;
    int r = 0;
    for (const char *p = value; *p && r == 0;) {
        size_t n = several ? strcspn(p, ",") : strlen(p);
        if (n && !list_add(ret, p, n))
            r = pr_error(err, ENOMEM, "%s: out of memory", what);
        else if (n)
            r = check_text(o, ret->items[ret->count - 1], what, err);
        p += n + (p[n] == ',');
    }
    return r == 0 && !ret->count ? check_text(o, "", what, err) : r;
}

static int set_list(struct pr_list *list, const struct pr_option *o, const char *value, bool more,
                    enum pr_origin origin, const char *what, struct proctor_error *err)
{
    struct pr_list items = {0};
    int r = read_list(&items, o, value, origin, what, err);
    if (r == 0 && !more)
        list_clear(list);
    for (size_t i = 0; i < items.count && r == 0; i++)
        if (!list_add(list, items.items[i], strlen(items.items[i])))
            r = pr_error(err, ENOMEM, "%s: out of memory", what);
    list_clear(&items);
    return r;
}

static bool keep_text(struct pr_config *c, enum pr_option_id id, const char *value, bool append)
{
    char *text = NULL;
    if (append && c->text[id]) {
        if (asprintf(&text, "%s,%s", c->text[id], value) < 0)
            return false;
    } else if (!(text = strdup(value))) {
        return false;
    }
    free(c->text[id]);
    c->text[id] = text;
    return true;
}

int pr_config_set(struct pr_config *c, enum pr_option_id id, const char *value,
                  enum pr_origin origin, const char *what, struct proctor_error *err)
{
    const struct pr_option *o = &pr_options[id];
    int r = 0;
    if (origin < c->origin[id])
        return 0;
    bool again = origin == c->origin[id];
    if (o->implied && strcmp(value, "true") == 0)
        value = o->implied;
    if (o->type == TYPE_FLAG) {
        bool on = false;
        r = set_flag(&on, value, what, err);
        if (r == 0)
            *(bool *)field(c, id) = on;
    } else if (o->type <= TYPE_COUNT) {
        r = set_number(o, field(c, id), value, what, err);
    } else if (is_list(o->type)) {
        r = set_list(field(c, id), o, value, again, origin, what, err);
    } else {
        r = check_text(o, value, what, err);
    }
    if (r < 0)
        return r;
    if (!keep_text(c, id, value, is_list(o->type) && again))
        return pr_error(err, ENOMEM, "%s: out of memory", what);
    if (o->type == TYPE_TEXT || o->type == TYPE_CHOICE)
        *(const char **)field(c, id) = c->text[id];
    c->origin[id] = (uint8_t)origin;
    return 0;
}

const char *pr_config_dialect(const struct pr_config *c)
{
    return strcmp(c->dialect, "native") == 0 ? NULL : c->dialect;
}

int pr_config_check_table(const struct pr_config *c, struct proctor_error *err)
{
    if (!c->table || pr_config_dialect(c))
        return 0;
    return pr_error(err, EINVAL,
                    "--table: '%.40s': only a dialect has tables; name one with --dialect",
                    c->table);
}

/* --- where values come from ------------------------------------------------------------------- */

int pr_config_init(struct pr_config *c)
{
    *c = (struct pr_config){0};
    for (int id = 0; id < OPTION_COUNT; id++) {
        const char *preset = pr_options[id].preset;
        if (preset &&
            pr_config_set(c, (enum pr_option_id)id, preset, ORIGIN_DEFAULT, "", NULL) < 0) {
            pr_config_done(c);
            return -ENOMEM;
        }
    }
    return 0;
}

void pr_config_done(struct pr_config *c)
{
    for (int id = 0; id < OPTION_COUNT; id++) {
        free(c->text[id]);
        if (is_list(pr_options[id].type))
            list_clear(field(c, (enum pr_option_id)id));
    }
    *c = (struct pr_config){0};
}

enum pr_option_id pr_option_find(const char *name)
{
    for (int id = 0; id < OPTION_COUNT; id++)
        if (strcmp(pr_options[id].name, name) == 0)
            return (enum pr_option_id)id;
    return OPTION_COUNT;
}

enum pr_option_id pr_option_find_of(const char *name, unsigned commands)
{
    for (int id = 0; id < OPTION_COUNT; id++)
        if ((pr_options[id].commands & commands) && strcmp(pr_options[id].name, name) == 0)
            return (enum pr_option_id)id;
    return pr_option_find(name);
}

enum pr_option_id pr_option_find_letter(char letter, unsigned commands)
{
    enum pr_option_id found = OPTION_COUNT;
    for (int id = OPTION_COUNT - 1; id >= 0 && letter; id--) {
        bool theirs = found == OPTION_COUNT || (pr_options[id].commands & commands);
        if (pr_options[id].letter == letter && theirs)
            found = (enum pr_option_id)id;
    }
    return found;
}

bool pr_config_is_recorded(const struct pr_config *c)
{
    if (c->output)
        return !c->no_record || c->origin[OPTION_OUTPUT] > c->origin[OPTION_NO_RECORD];
    return c->kept && !c->no_record;
}

bool pr_config_is_told(const struct pr_config *c)
{
    bool samples =
#define SINK(option, open) c->option.count ||
#include "core/sinks.def"
#undef SINK
        c->mlflow || c->otlp || pr_config_is_recorded(c);
    return samples || !c->kept || c->machine || c->verbose || c->summary || c->report.count;
}

void pr_option_variable(const struct pr_option *o, char *text, size_t size)
{
    int n = snprintf(text, size, VARIABLE_PREFIX "%s", o->name);
    for (char *p = text; p < text + n && p < text + size; p++)
        *p = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
}

const char *pr_origin_name(enum pr_origin origin)
{
    static const char *const names[] = {"default", "config file", "variable", "option"};
    return names[origin];
}

bool pr_config_path(char *text, size_t size)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (base && *base)
        return snprintf(text, size, "%s/proctor/config", base) < (int)size;
    return home && *home && snprintf(text, size, "%s/.config/proctor/config", home) < (int)size;
}

static char *trimmed(char *start, char *end)
{
    while (start < end && strchr(" \t\r", *start))
        start++;
    while (end > start && strchr(" \t\r", end[-1]))
        end--;
    *end = '\0';
    return start;
}

static char *unquoted(char *value)
{
    size_t n = strlen(value);
    if (n < 2 || value[0] != '"' || value[n - 1] != '"')
        return value;
    value[n - 1] = '\0';
    return value + 1;
}

/* One line "name = value"; comments and empty lines are fine. */
static int apply_line(struct pr_config *c, unsigned command, char *line, char *end,
                      const char *what, struct proctor_error *err)
{
    for (char *p = line; p < end; p++) /* a comment begins the line, or stands behind a blank */
        if (*p == '#' && (p == line || p[-1] == ' ' || p[-1] == '\t'))
            end = p;
    line = trimmed(line, end);
    if (!*line)
        return 0;
    char *equals = strchr(line, '=');
    if (!equals)
        return pr_error(err, EINVAL, "%s: '%.60s' is not NAME = VALUE", what, line);
    char *value = unquoted(trimmed(equals + 1, line + strlen(line)));
    char *name = trimmed(line, equals), named[200];
    enum pr_option_id id = pr_option_find(name);
    if (id == OPTION_COUNT)
        return pr_error(err, EINVAL,
                        "%s: there is no option '%.60s'; `proctor run --help` lists them", what,
                        name);
    if (!(pr_options[id].commands & command))
        return 0;
    snprintf(named, sizeof named, "%.140s: %s", what, name);
    return pr_config_set(c, id, value, ORIGIN_FILE, named, err);
}

int pr_config_text(struct pr_config *c, unsigned command, char *text, size_t len, const char *path,
                   struct proctor_error *err)
{
    char what[160];
    int r = 0, number = 0;
    for (char *line = text; r == 0 && line < text + len;) {
        char *end = memchr(line, '\n', (size_t)(text + len - line));
        end = end ? end : text + len;
        const char *tail = pr_text_tail(path, 120); /* the message has to say more than that */
        snprintf(what, sizeof what, "%s%s:%d", tail > path ? "..." : "", tail, ++number);
        r = apply_line(c, command, line, end, what, err);
        line = end + 1;
    }
    return r;
}

static int apply_file(struct pr_config *c, unsigned command, struct proctor_error *err)
{
    char path[4096], *text = NULL;
    size_t len;
    /* Absent or unreadable is not an error. */
    if (!pr_config_path(path, sizeof path) || pr_fs_slurp(AT_FDCWD, path, &text, &len) < 0)
        return 0;
    int r = pr_config_text(c, command, text, len, path, err);
    free(text);
    return r;
}

/* As a rule there are none, and then no name has to be made. */
static bool has_variables(void)
{
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, VARIABLE_PREFIX, sizeof VARIABLE_PREFIX - 1) == 0)
            return true;
    return false;
}

int pr_config_environment(struct pr_config *c, unsigned command, struct proctor_error *err)
{
    int r = apply_file(c, command, err);
    bool any = has_variables();
    for (int id = 0; r == 0 && any && id < OPTION_COUNT; id++) {
        char name[64];
        const struct pr_option *o = &pr_options[id];
        pr_option_variable(o, name, sizeof name);
        const char *value = o->no_env || !(o->commands & command) ? NULL : getenv(name);
        if (value && *value)
            r = pr_config_set(c, (enum pr_option_id)id, value, ORIGIN_VARIABLE, name, err);
    }
    return r;
}
