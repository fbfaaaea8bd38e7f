/* SPDX-License-Identifier: Apache-2.0 */
/* The command: which one, and what it says of itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/gpu.h"
#include "publish/publisher.h"

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
        if (*name == '-')
            pr_complain("there is no option '%.80s' before the command; `proctor --help` has more",
                        name);
        else if (*name)
            pr_complain("there is no command '%.80s'; `proctor --help` lists them", name);
        else
            pr_complain("a command is missing; `proctor --help` lists them");
        return EXIT_USAGE;
    }
    if (!command->main) {
        pr_complain("%s: this version does not have %s yet", name, command->later);
        return pr_usage_status(command);
    }
    if (help) {
        pr_cli_help(command);
        return 0;
    }
    int status = command->main(argc - 1, argv + 1);
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        /* In a library, which must not be taken down now. */
        if (pr_gpu_left_behind() || pr_publisher_left_behind())
            _exit(status);
        return status;
    }
    pr_complain("%s: cannot write to standard output: %s", name, strerror(errno));
    return status ? status : 1;
}
