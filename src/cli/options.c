/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines against the option table, and --help out of it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "publish/address.h"

/* Where a flag's value is not written. */
static const char *const ON = "true";

struct line {
    const struct pr_command *command;
    int argc;
    char **argv;
    int at; /* the next word */
    struct pr_config *config;
    bool help;
};

/* An address or a port behind an option whose value has to stand behind "=" would be the command.
 * A password in it is not shown. A number alone can be a process to attach to. */
static bool is_meant_for(const struct line *l, const struct pr_option *o, const char *written)
{
    const char *word = l->at < l->argc ? l->argv[l->at] : "";
    bool port = l->command->bit == CMD_RUN && *word && !word[strspn(word, "0123456789.:")];
    if (!o->optional_arg || strlen(written) < 3 || !(port || strstr(word, "://")))
        return false;
    bool shown = !strpbrk(word, "@?");
    pr_complain("%s: did you mean %s=%.200s? Its value is written behind '='", l->command->name,
                written, shown ? word : o->arg);
    return true;
}

/* Sets the option; `value` is what was written behind '=' or the letter, or NULL. */
static bool apply(struct line *l, enum pr_option_id id, const char *written, const char *value)
{
    struct proctor_error err;
    const struct pr_option *o = id == OPTION_COUNT ? NULL : &pr_options[id];
    const char *command = l->command->name;
    if (o && !(o->commands & l->command->bit)) {
        struct pr_buf others = {0};
        for (const struct pr_command *c = pr_commands; c->name; c++)
            if (c->bit & o->commands)
                pr_buf_printf(&others, "%s%s", others.len ? ", " : "", c->name);
        pr_complain("%s: %s is not an option of %s, but of %s", command, written, command,
                    pr_buf_text(&others));
        pr_buf_done(&others);
        return false;
    }
    if (!o) {
        pr_complain("%s: there is no option %s; `proctor %s --help` lists them", command, written,
                    command);
        return false;
    }
    if (!o->arg && value) {
        pr_complain("%s: --%s takes no value", command, o->name);
        return false;
    }
    if (!value && is_meant_for(l, o, written))
        return false;
    if (!value && (!o->arg || o->optional_arg))
        value = ON;
    if (!value && l->at < l->argc)
        value = l->argv[l->at++];
    if (!value) {
        pr_complain("%s: %s needs a value: %s", command, written, o->arg);
        return false;
    }
    if (pr_config_set(l->config, id, value, ORIGIN_OPTION, written, &err) < 0) {
        pr_complain("%s: %s", command, err.message);
        return false;
    }
    /* Out of what `ps` shows; run may first have to start itself again, with the words it got. */
    if (o->secret && value != ON && l->command->bit != CMD_RUN)
        pr_address_hide((char *)(uintptr_t)value);
    return true;
}

static bool long_option(struct line *l, const char *word)
{
    char written[64];
    const char *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    snprintf(written, sizeof written, "%.*s", (int)n, word);
    if (strcmp(written, "--help") == 0)
        return l->help = true;
    return apply(l, pr_option_find_of(written + 2, l->command->bit), written,
                 equals ? equals + 1 : NULL);
}

/* -i1s, -i 1s, -qv */
static bool short_options(struct line *l, const char *word)
{
    for (const char *p = word + 1; *p; p++) {
        char written[3] = {'-', *p, '\0'};
        enum pr_option_id id = pr_option_find_letter(*p, l->command->bit);
        if (*p == 'h' && id == OPTION_COUNT)
            return l->help = true;
        bool takes_rest = id != OPTION_COUNT && pr_options[id].arg && p[1];
        if (!apply(l, id, written, takes_rest ? p + 1 : NULL))
            return false;
        if (takes_rest)
            break;
    }
    return true;
}

/* Operands are moved to the front, in their order, except for run: there the first ends it all. */
static int parse_words(struct line *l)
{
    int operands = 1;
    bool run = l->command->bit == CMD_RUN;
    for (l->at = 1; l->at < l->argc && !l->help;) {
        char *word = l->argv[l->at++];
        if (strcmp(word, "--") == 0) {
            if (run)
                return l->at;
            while (l->at < l->argc)
                l->argv[operands++] = l->argv[l->at++];
            break;
        }
        if (word[0] != '-' || !word[1]) {
            if (run)
                return l->at - 1;
            l->argv[operands++] = word;
        } else if (!(word[1] == '-' ? long_option(l, word) : short_options(l, word))) {
            return -1;
        }
    }
    if (run)
        return l->argc;
    l->argv[operands] = NULL;
    return 1;
}

/* A variable that looks like one of ours and is none: misspelt, most likely. Nobody is kept from
 * working by it, but it is said. */
static void look_for_unknown_variables(const char *command)
{
    /* What a job may see that is no option, and where the Python package finds its parts. */
    static const char *const others[] = {
        "PROCTOR_HOME=", "PROCTOR_SOCKET=", "PROCTOR_MLFLOW_RUN_ID=", "PROCTOR_LIBRARY=",
        "PROCTOR_COMMAND="};
    char name[64];
    for (char **entry = environ; *entry; entry++) {
        size_t n = strcspn(*entry, "=");
        bool known = strncmp(*entry, "PROCTOR_", 8) != 0;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            known |= strncmp(*entry, others[i], strlen(others[i])) == 0;
        for (int id = 0; id < OPTION_COUNT && !known; id++) {
            pr_option_variable(&pr_options[id], name, sizeof name);
            known = strlen(name) == n && strncmp(*entry, name, n) == 0;
        }
        if (!known)
            pr_complain("%s: the variable '%.80s' sets nothing; `proctor config` lists what can be "
                        "set",
                        command, *entry);
    }
}

int pr_cli_parse(const struct pr_command *command, int argc, char **argv, struct pr_config *c,
                 bool *ret_help)
{
    struct proctor_error err;
    struct line line = {.command = command, .argc = argc, .argv = argv, .config = c};
    int first = parse_words(&line);
    *ret_help = line.help;
    if (line.help)
        return first;
    /* Lower origins do not touch what the command line has set. */
    if (first > 0 && pr_config_environment(c, command->bit, &err) < 0) {
        pr_complain("%s: %s", command->name, err.message);
        return -1;
    }
    if (first > 0 && (command->bit & (CMD_RUN | CMD_ATTACH | CMD_SYSTEM)))
        look_for_unknown_variables(command->name);
    return first;
}

static void wrapped(const char *text, int indent, int width)
{
    int column = indent;
    for (const char *p = text; *p;) {
        int n = (int)strcspn(p, " ");
        if (column > indent && column + 1 + n > width) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", n, p);
        column += n;
        p += n + (p[n] == ' ');
    }
    putchar('\n');
}

static void help_option(const struct pr_option *o)
{
    char left[64];
    int n = o->letter ? snprintf(left, sizeof left, "  -%c, --%s", o->letter, o->name)
                      : snprintf(left, sizeof left, "      --%s", o->name);
    if (o->arg)
        snprintf(left + n, sizeof left - (size_t)n, o->optional_arg ? "[=%s]" : " %s", o->arg);
    printf("%-30s", left);
    if (strlen(left) >= 30)
        printf("\n%30s", "");
    char text[768];
    n = snprintf(text, sizeof text, "%s", o->help);
    if (o->preset)
        n += snprintf(text + n, sizeof text - (size_t)n, " [%s]", o->preset);
    if (o->choices)
        snprintf(text + n, sizeof text - (size_t)n, " (one of: %s)", o->choices);
    wrapped(text, 30, 100);
}

void pr_cli_help(const struct pr_command *command)
{
    printf("usage: proctor %s%s%s\n\n  ", command->name, *command->args ? " " : "", command->args);
    wrapped(command->help, 2, 100);
    if (command->bit)
        puts("");
    for (int id = 0; id < OPTION_COUNT; id++)
        if (pr_options[id].commands & command->bit)
            help_option(&pr_options[id]);
    if (!(command->bit & (CMD_RUN | CMD_ATTACH)))
        return;
    puts("\nAn option is also a PROCTOR_ variable (PROCTOR_INTERVAL=100ms) and a line in the "
         "config\nfile (interval = 100ms); `proctor config` shows what is in force.");
}
