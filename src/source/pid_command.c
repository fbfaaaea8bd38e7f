/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/cmdline and cwd. A process can write anything into the first; neither is read in the
 * tick: the kernel looks into the memory of the process for it. */
#include "core/command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/fs.h"
#include "util/text.h"

#define CUT "..."

void pr_command_of(const char *cmdline, size_t len, char ret_text[COMMAND_MOST + 1])
{
    size_t n = 0;
    while (len && !cmdline[len - 1])
        len--;
    const size_t room = len <= COMMAND_MOST ? COMMAND_MOST : COMMAND_MOST - strlen(CUT);
    for (size_t i = 0; i < len;) {
        size_t wide = pr_text_utf8(cmdline + i, cmdline + len), take = wide ? wide : 1;
        if (n + take > room) {
            n += (size_t)snprintf(ret_text + n, COMMAND_MOST + 1 - n, CUT);
            break;
        }
        memcpy(ret_text + n, wide ? cmdline + i : "?", take);
        if (take == 1 && (unsigned char)ret_text[n] < ' ')
            ret_text[n] = ' ';
        n += take;
        i += take;
    }
    ret_text[n] = '\0';
}

void pr_command_read(const struct pr_host *host, pid_t pid, char ret_text[COMMAND_MOST + 1])
{
    char path[32], text[2 * COMMAND_MOST];
    snprintf(path, sizeof path, "%d/cmdline", (int)pid);
    ssize_t n = pr_fs_read(host->proc, path, text, sizeof text);
    pr_command_of(text, n > 0 ? (size_t)n : 0, ret_text);
}

void pr_directory_read(const struct pr_host *host, pid_t pid, char *ret_path, size_t size)
{
    char path[32];
    snprintf(path, sizeof path, "%d/cwd", (int)pid);
    ssize_t n = readlinkat(host->proc, path, ret_path, size);
    ret_path[n > 0 && (size_t)n < size ? n : 0] = '\0';
}
