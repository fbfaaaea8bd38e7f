/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: words end in NUL. The first byte says which command. */
#include "cli/cli.h"
#include "fuzz.h"

enum { WORDS = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const commands[] = {"run", "attach", "system", "metrics", "doctor"};
    char *argv[WORDS + 2];
    int argc = 1;
    bool help = false;
    struct pr_config c;
    if (size == 0)
        return 0;
    char *text = fuzz_text(data + 1, size - 1);
    const struct pr_command *command = pr_command_find(commands[*data % 5]);
    argv[0] = (char *)command->name;
    for (char *p = text; p < text + size - 1 && argc <= WORDS; p += strlen(p) + 1)
        argv[argc++] = p;
    argv[argc] = NULL;
    bool foreign = false; /* the C library's compiler of patterns is not ours */
    for (int i = 1; i < argc; i++)
        foreign |= strncmp(argv[i], "--match", 7) == 0;
    FUZZ_ASSERT(pr_config_init(&c) == 0);
    int first = foreign ? -1 : pr_cli_parse(command, argc, argv, &c, &help);
    FUZZ_ASSERT(first == -1 || (first >= 1 && first <= argc));
    pr_config_done(&c);
    free(text);
    return 0;
}
