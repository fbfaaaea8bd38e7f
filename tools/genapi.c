/* SPDX-License-Identifier: Apache-2.0 */
/* The scdoc source of libproctor(3), out of the header alone: `genapi proctor.h`. The first comment
 * is the description, an indented part of it the example. Each other comment stands with the
 * declarations behind it, up to the next comment or empty line. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API         "PROCTOR_API "
#define TEXT_MOST   4096
#define LINE_MOST   256
#define IS(line, s) (strncmp(line, s, sizeof s - 1) == 0)

static char text[TEXT_MOST], code[TEXT_MOST]; /* of the part that is being read */

static void append(char *to, const char *what)
{
    size_t used = strlen(to), more = strlen(what);
    if (used + more >= TEXT_MOST) {
        fprintf(stderr, "genapi: a part of the header has more than %d bytes\n", TEXT_MOST);
        exit(1);
    }
    memcpy(to + used, what, more + 1);
}

/* scdoc gives meaning to these; a minus at the beginning would be a list. */
static void escaped(const char *line)
{
    for (const char *p = line; *p; p++) {
        if (strchr("_*\\`<>#~[]", *p) || (p == line && *p == '-'))
            putchar('\\');
        putchar(*p);
    }
}

/* Paragraphs, and in between what is indented by more than a comment is: as it stands. */
static void put_text(char *all)
{
    bool literal = false;
    for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n")) {
        bool indented = IS(line, "     "); /* four more than a comment */
        if (indented != literal)
            puts(indented ? "\n```" : "```\n");
        literal = indented;
        if (literal)
            puts(line + 5);
        else
            escaped(line + (*line == ' ')), puts("");
    }
    puts(literal ? "```\n" : "");
}

static void flush(void)
{
    if (*code)
        printf("```\n%s```\n\n", code);
    if (*code && *text)
        put_text(text);
    *text = *code = '\0';
}

/* What is inside of a comment, without its frame. True when it ends here. */
static bool comment_line(char *line)
{
    char *end = strstr(line, "*/");
    if (end)
        *end = '\0';
    for (size_t n = strlen(line); n > 0 && isspace((unsigned char)line[n - 1]); n--)
        line[n - 1] = '\0';
    if (*line || !end) {
        append(text, *line ? line : " "); /* an empty line ends a paragraph */
        append(text, "\n");
    }
    return end;
}

/* As a user would write it: without what exports it. */
static void code_line(const char *line)
{
    static const char indent[] = "            "; /* as long as API */
    append(code, IS(line, API) || IS(line, indent) ? line + sizeof API - 1 : line);
    append(code, "\n");
}

static bool is_for_compilers(const char *line)
{
    return IS(line, "#if") || IS(line, "#endif") || IS(line, "#include") ||
           IS(line, "#define PROCTOR_PROCTOR_H") || IS(line, "#define PROCTOR_API") ||
           IS(line, "extern \"C\"") || strcmp(line, "}") == 0;
}

static void head(void)
{
    puts("libproctor(3)\n\n# NAME\n\nlibproctor - watch a job, keep an exact account of what it "
         "used, from C\n\n# SYNOPSIS\n\n```\n#include <proctor/proctor.h>\n\n"
         "cc program.c $(pkg-config --cflags --libs proctor)\n```\n\n# DESCRIPTION\n");
}

static void tail(void)
{
    puts("# SEE ALSO\n\n*proctor*(1), whose options are settings of a monitor, and which lists the "
         "keys of all values (*proctor metrics*).");
}

int main(int argc, char **argv)
{
    char line[LINE_MOST];
    bool inside = false, described = false;
    FILE *header = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!header)
        return fputs("usage: genapi proctor.h\n", stderr), 2;
    head();
    while (fgets(line, sizeof line, header)) {
        line[strcspn(line, "\n")] = '\0';
        if (inside) {
            inside = !comment_line(line + (IS(line, " *") && !IS(line, " */") ? 2 : 0));
        } else if (IS(line, "/* SPDX") || is_for_compilers(line)) {
            continue;
        } else if (IS(line, "/*")) {
            flush();
            inside = !comment_line(line + 2);
        } else if (*line) {
            code_line(line);
        } else {
            flush();
        }
        if (!inside && *text && !described) {
            described = true;
            put_text(text);
            *text = '\0';
            puts("# TYPES AND FUNCTIONS\n");
        }
    }
    flush();
    fclose(header);
    tail();
    return 0;
}
