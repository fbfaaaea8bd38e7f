/* SPDX-License-Identifier: Apache-2.0 */
/* What a process is called: its comm, which for a script with #! is the script's name; the file it
 * executes; what it was called by (busybox, links); and where an interpreter runs a script, that
 * script or module. Arguments are nobody's name: `vi tool.py` is not tool.py. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/match.h"
#include "util/fs.h"

/* The arguments of a process are read so far: a class path easily has some thousand bytes. */
#define CMDLINE_MOST 32768

/* How interpreters are told what to run. Letters of options that take a value, which may be the
 * next word; that take the rest of their own word; whose value is code, or that make standard input
 * the script (then there is no name); whose value is a module (then that is the name). */
static const struct interpreter {
    const char *name; /* the beginning: python3.11, bash */
    const char *with_value, *attached, *code, *module;
    bool shell; /* +x is an option, and a single dash is not standard input */
} interpreters[] = {
    {"python", "WXQ", "", "c", "m", false},
    {"pypy", "WXQ", "", "c", "m", false},
    {"bash", "oO", "", "cs", "", true},
    {"sh", "o", "", "cs", "", true},
    {"dash", "o", "", "cs", "", true},
    {"zsh", "o", "", "cs", "", true},
    {"ksh", "o", "", "cs", "", true},
    {"perl", "I", "MmiFxDCV", "eE", "", false},
    {"ruby", "IrCEKX", "WTxFi", "e", "", false},
    {"node", "rC", "", "ep", "", false},
    {"nodejs", "rC", "", "ep", "", false},
    {"Rscript", "", "", "e", "", false},
    {"R", "", "", "e", "", false}, /* what Rscript becomes: R --file=x.R */
    {"java", "", "", "", "", false},
    {"php", "cdzSt", "", "r", "", false},
    {"lua", "l", "", "e", "", false},
    {"julia", "CJLtp", "", "eE", "", false},
};

/* Long options that take the next word, and those that are given code. */
static const char *const long_with_value[] = {
    "-cp",
    "-classpath",
    "--class-path",
    "--module-path",
    "--add-modules",
    "--add-opens",
    "--add-exports",
    "--add-reads",
    "--source",
    "--require",
    "--import",
    "--env-file",
    "--loader",
    "--conditions",
    "--input-type",
    "--title",
    "--rcfile",
    "--init-file",
    "--check-hash-based-pycs",
};
static const char *const long_code[] = {"--eval", "--print", "--run"};

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

static bool is_code(const char *option)
{
    for (size_t i = 0; i < sizeof long_code / sizeof *long_code; i++) {
        size_t n = strlen(long_code[i]);
        if (strncmp(option, long_code[i], n) == 0 && (!option[n] || option[n] == '='))
            return true;
    }
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
        if (strchr(how->attached, *p))
            return NULL;
        if (!strchr(how->module, *p) && !strchr(how->with_value, *p))
            continue;
        const char *value = p[1] ? p + 1 : next_word(w);
        return strchr(how->module, *p) && value ? value : NULL;
    }
    return NULL;
}

/* An option: NULL to go on with the next word, else as short_options. */
static const char *option(const struct interpreter *how, const char *word, struct words *w)
{
    if (strcmp(word, "-") == 0)
        return how->shell ? NULL : "";
    if (is_code(word))
        return "";
    if (takes_next(word))
        next_word(w);
    else if (*word == '-' && word[1] != '-' && how->code[0])
        return short_options(how, word, w);
    return NULL;
}

/* The script that an interpreter was given; "" where there is none. */
static const char *script_of(const struct interpreter *how, struct words w)
{
    for (const char *word; (word = next_word(&w));) {
        if (strcmp(word, "--") == 0)
            return (word = next_word(&w)) ? base_of(word) : "";
        if (strncmp(word, "--file=", 7) == 0)
            return base_of(word + 7);
        if (*word != '-' && !(how->shell && *word == '+'))
            return base_of(word);
        const char *found = option(how, word, &w);
        if (found)
            return found;
    }
    return "";
}

/* Who gives himself a title writes one text over all his arguments: "nginx: worker process", or
 * the whole command line with blanks. What stands behind the program is not its name. */
static const char *program_of(const char *called, char *text, size_t size)
{
    size_t n = 0;
    while (called[n] && strncmp(called + n, ": ", 2) != 0 && strncmp(called + n, " -", 2) != 0 &&
           strncmp(called + n, " /", 2) != 0)
        n++;
    snprintf(text, size, "%.*s", (int)n, called);
    return base_of(text);
}

void pr_names_of(const char *cmdline, size_t len, struct pr_names *ret)
{
    struct words w = {cmdline, cmdline + len};
    const char *called = next_word(&w);
    char text[4096];
    if (!called)
        return;
    const char *program = program_of(called, text, sizeof text);
    add(ret, program);
    const struct interpreter *how = interpreter_of(program);
    if (how)
        add(ret, script_of(how, w));
}

void pr_names_read(const struct pr_host *host, pid_t pid, const char *comm, struct pr_names *ret)
{
    static const char gone[] = " (deleted)";
    char path[32], text[CMDLINE_MOST];
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
