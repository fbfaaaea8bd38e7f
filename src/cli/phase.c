/* SPDX-License-Identifier: Apache-2.0 */
/* `proctor phase`: becomes the command, so that nothing stands between it and who started it. The
 * run watches the process and ends the phase with it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/teller.h"
#include "util/text.h"

static int become(char **argv)
{
    execvp(argv[0], argv);
    int code = errno;
    pr_complain("phase: cannot start '%.300s': %s", argv[0], strerror(code));
    return code == ENOENT || code == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* What is missing, and how it is used. */
static int usage(const char *word, int argc, bool dashes)
{
    const struct pr_command *c = pr_command_find("phase");
    bool bare = strcmp(word, "begin") == 0 || strcmp(word, "end") == 0;
    const char *wrong = !*word              ? "there is no name"
                        : bare && argc == 2 ? "there is no name after it"
                        : bare              ? "one name is taken, which may be quoted"
                        : dashes            ? "there is no command after --"
                                            : "-- and a command are missing after the name";
    pr_complain("phase%s%s: %s; it is used as: proctor phase %s", *word ? " " : "",
                pr_text_tail(word, 60), wrong, c->args);
    return EXIT_USAGE;
}

int pr_main_phase(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (argc == 2 && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
        pr_cli_help(pr_command_find("phase"));
        return 0;
    }
    if (argc > 3 && strcmp(argv[2], "--") == 0) {
        if (!pr_tell_check("phase", word))
            return EXIT_USAGE;
        pr_tell(REQUEST_DURING, word, NULL, true);
        return become(argv + 3);
    }
    bool begin = strcmp(word, "begin") == 0;
    if (argc != 3 || (!begin && strcmp(word, "end") != 0) || strcmp(argv[2], "--") == 0)
        return usage(word, argc, argc > 2 && strcmp(argv[2], "--") == 0);
    if (!pr_tell_check("phase", argv[2]))
        return EXIT_USAGE;
    pr_tell(begin ? REQUEST_BEGIN : REQUEST_END, argv[2], NULL, true);
    return 0;
}
