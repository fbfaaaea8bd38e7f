/* SPDX-License-Identifier: Apache-2.0 */
/* What a process is called: its comm, which for a script with #! is the script's name; the file it
 * executes; what it was called by (busybox, links); and where an interpreter runs a script, that
 * script or module. Arguments are nobody's name: `vi tool.py` is not tool.py. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/match.h"
#include "util/fs.h"

/* How interpreters are told what to run. Letters of options that take a value, options whose value
 * is code (then there is no script) or a module (then that is the name). */
static const struct interpreter {
    const char *name; /* the beginning: python3.11, bash */
    const char *with_value, *code, *module;
} interpreters[] = {
    {"python", "WXQ", "c", "m"},  {"pypy", "WXQ", "c", "m"}, {"bash", "oO", "c", ""},
    {"sh", "o", "c", ""},         {"dash", "o", "c", ""},    {"zsh", "o", "c", ""},
    {"ksh", "o", "c", ""},        {"perl", "I", "eE", ""},   {"ruby", "IrCEK", "e", ""},
    {"node", "r", "ep", ""},      {"nodejs", "r", "ep", ""}, {"Rscript", "", "e", ""},
    {"java", "", "", ""},         {"php", "cdz", "r", ""},   {"lua", "l", "e", ""},
    {"julia", "CJLtp", "eE", ""},
};

/* Long options that take the next word. */
static const char *const long_with_value[] = {"-cp",      "-classpath", "--class-path", "--require",
                                              "--import", "--rcfile",   "--init-file"};

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void add(struct pr_names *names, const char *name)
{
    if (!*name || names->count == NAMES_MOST)
        return;
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->text[i], name) == 0)
            return;
    snprintf(names->text[names->count++], NAME_SIZE, "%s", name);
}

/* "python" is python, python3 and python3.11, and not pythonista. */
static const struct interpreter *interpreter_of(const char *name)
{
    name += *name == '-'; /* a login shell */
    for (size_t i = 0; i < sizeof interpreters / sizeof *interpreters; i++) {
        size_t n = strlen(interpreters[i].name);
        if (strncmp(name, interpreters[i].name, n) == 0 &&
            !name[n + strspn(name + n, "0123456789.")])
            return &interpreters[i];
    }
    return NULL;
}

static bool takes_next(const char *option)
{
    for (size_t i = 0; i < sizeof long_with_value / sizeof *long_with_value; i++)
        if (strcmp(option, long_with_value[i]) == 0)
            return true;
    return false;
}

/* Words of a cmdline, one after the other; NULL behind the last. */
struct words {
    const char *p, *end;
};

static const char *next_word(struct words *w)
{
    if (w->p >= w->end)
        return NULL;
    const char *word = w->p;
    w->p += strnlen(word, (size_t)(w->end - word)) + 1;
    return word;
}

/* Letters behind one dash: -Wignore, -W ignore, -bm module. NULL: go on with the next word; else
 * what is to be run, "" where there is nothing to be named by. */
static const char *short_options(const struct interpreter *how, const char *option, struct words *w)
{
    for (const char *p = option + 1; *p; p++) {
        if (strchr(how->code, *p))
            return "";
        if (!strchr(how->module, *p) && !strchr(how->with_value, *p))
            continue;
        const char *value = p[1] ? p + 1 : next_word(w);
        return strchr(how->module, *p) && value ? value : NULL;
    }
    return NULL;
}

/* The script that an interpreter was given; "" where there is none. */
static const char *script_of(const struct interpreter *how, struct words w)
{
    for (const char *word; (word = next_word(&w));) {
        if (strcmp(word, "-jar") == 0 || strcmp(word, "--") == 0)
            continue;
        if (*word != '-')
            return base_of(word);
        if (takes_next(word))
            next_word(&w);
        else if (word[1] != '-' && how->code[0]) {
            const char *found = short_options(how, word, &w);
            if (found)
                return found;
        }
    }
    return "";
}

void pr_names_of(const char *cmdline, size_t len, struct pr_names *ret)
{
    struct words w = {cmdline, cmdline + len};
    const char *called = next_word(&w);
    if (!called)
        return;
    add(ret, base_of(called));
    const struct interpreter *how = interpreter_of(base_of(called));
    if (how)
        add(ret, script_of(how, w));
}

void pr_names_read(const struct pr_host *host, pid_t pid, const char *comm, struct pr_names *ret)
{
    static const char gone[] = " (deleted)";
    char path[32], text[4096];
    ret->count = 0;
    add(ret, comm);
    snprintf(path, sizeof path, "%d/cmdline", (int)pid);
    ssize_t n = pr_fs_read(host->proc, path, text, sizeof text);
    if (n > 0)
        pr_names_of(text, (size_t)n, ret);
    snprintf(path, sizeof path, "%d/exe", (int)pid);
    n = readlinkat(host->proc, path, text, sizeof text - 1);
    if (n <= 0)
        return;
    text[n] = '\0';
    size_t cut = strlen(gone);
    if ((size_t)n > cut && strcmp(text + n - cut, gone) == 0)
        text[(size_t)n - cut] = '\0';
    add(ret, base_of(text));
}
