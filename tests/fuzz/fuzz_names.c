/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/cmdline: what a process is called, and with what. */
#include "core/command.h"
#include "core/match.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pr_names names = {.count = 0};
    char *text = fuzz_text(data, size);
    pr_names_of(text, size, &names);
    FUZZ_ASSERT(names.count >= 0 && names.count <= NAMES_MOST);
    for (int i = 0; i < names.count; i++)
        FUZZ_ASSERT(*names.text[i] && strnlen(names.text[i], NAME_SIZE) < NAME_SIZE);
    char command[COMMAND_MOST + 1];
    memset(command, 'x', sizeof command);
    pr_command_of(text, size, command);
    size_t length = strnlen(command, sizeof command);
    FUZZ_ASSERT(length <= COMMAND_MOST && !strpbrk(command, "\n\t\033"));
    free(text);
    return 0;
}
