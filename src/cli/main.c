/* SPDX-License-Identifier: Apache-2.0 */
/* The command: which one, and what it says of itself. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "util/fs.h"
#include "util/text.h"

#define RUN_FILE "the run file"

const struct pr_command pr_commands[] = {
    {"run", "[OPTIONS] [--] COMMAND [ARG...]",
     "start a job, record it and everything it starts until it ends, print a summary, exit as the "
     "job did",
     CMD_RUN, pr_main_run, NULL},
    {"attach", "[OPTIONS] PID",
     "record a running process and its descendants until it exits, --duration passes, or on INT or "
     "TERM",
     CMD_ATTACH, pr_main_attach, NULL},
    {"metrics", "[--json]", "what is measured: key, unit, kind, scope, source, meaning",
     CMD_METRICS, pr_main_metrics, NULL},
    {"config", "", "each option's value and where it came from", 0, pr_main_config, NULL},
    {"system", "[OPTIONS]", "record the whole machine", CMD_SYSTEM, NULL, "watching a machine"},
    {"phase", "NAME -- COMMAND", "annotate the run that this shell is inside of", 0, NULL,
     "phases and marks"},
    {"mark", "NAME [KEY=VALUE...]", "annotate the run that this shell is inside of", 0, NULL,
     "phases and marks"},
    {"ls", "", "list recorded runs", 0, NULL, RUN_FILE},
    {"show", "RUN", "print a recorded run", 0, NULL, RUN_FILE},
    {"rm", "RUN...", "remove recorded runs", 0, NULL, RUN_FILE},
    {"gc", "--keep N", "tidy recorded runs", 0, NULL, RUN_FILE},
    {"recover", "RUN", "rebuild the summary of a run whose recorder died", 0, NULL, RUN_FILE},
    {"export", "RUN", "a recorded run in another shape", 0, NULL, RUN_FILE},
    {"report", "RUN... -o FILE", "draw a report", 0, NULL, "reports"},
    {"compare", "RUN RUN...", "differences between runs", 0, NULL, "reports"},
    {"suggest", "RUN...", "what to request next time", 0, NULL, "reports"},
    {"push", "RUN", "send what a server has not got yet", 0, NULL, "publishing"},
    {"top", "[PID|RUN]", "live in the terminal", 0, NULL, "the live view"},
    {"serve", "[RUN]", "live in the browser", 0, NULL, "the live view"},
    {"doctor", "", "what can be measured on this machine, as this user", 0, NULL, "the doctor"},
    {0},
};

void pr_complain(const char *format, ...)
{
    char text[1024];
    size_t done;
    struct pr_buf line = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pr_buf_str(&line, "proctor: ");
    pr_text_safe(&line, text);
    pr_buf_char(&line, '\n');
    pr_fs_write(STDERR_FILENO, line.data, line.len, &done);
    pr_buf_done(&line);
}

const struct pr_command *pr_command_find(const char *name)
{
    for (const struct pr_command *c = pr_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static int usage_status(const char *name)
{
    return strcmp(name, "run") == 0 ? EXIT_OWN_FAILURE : EXIT_USAGE;
}

static void overview(void)
{
    puts("usage: proctor COMMAND [OPTIONS] ...\n\n"
         "Watches a job and keeps an exact account of what it used.\n");
    for (const struct pr_command *c = pr_commands; c->name; c++)
        if (c->main)
            printf("  %-8s %s\n", c->name, c->help);
    puts("\n`proctor COMMAND --help` has the options of a command; `proctor --version` the "
         "version.");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("proctor %s\n", proctor_version());
        return 0;
    }
    bool help = strcmp(name, "help") == 0;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (help && argc == 2)) {
        overview();
        return 0;
    }
    if (help)
        name = argv[2];
    const struct pr_command *command = pr_command_find(name);
    if (!command) {
        if (*name)
            pr_complain("there is no command '%s'; `proctor --help` lists them", name);
        else
            pr_complain("a command is missing; `proctor --help` lists them");
        return EXIT_USAGE;
    }
    if (!command->main) {
        pr_complain("%s: this version does not have %s yet", name, command->later);
        return usage_status(name);
    }
    if (help) {
        pr_cli_help(command);
        return 0;
    }
    return command->main(argc - 1, argv + 1);
}
