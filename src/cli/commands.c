/* SPDX-License-Identifier: Apache-2.0 */
/* The list of commands, and how they complain. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/fs.h"
#include "util/text.h"

const struct pr_command pr_commands[] = {
    {"run", "[OPTIONS] [--] COMMAND [ARG...]",
     "start a job, record it and everything it starts until it ends, print a summary, exit as the "
     "job did",
     CMD_RUN, pr_main_run, NULL},
    {"attach", "[OPTIONS] [PID]",
     "record a running process and its descendants, a process group (--group), a cgroup (--cgroup) "
     "or processes by name (--match), until it is gone, --duration passes, or on INT or TERM",
     CMD_ATTACH, pr_main_attach, NULL},
    {"system", "[OPTIONS]", "record the whole machine until --duration passes, or on INT or TERM",
     CMD_SYSTEM, pr_main_system, NULL},
    {"metrics", "[--json]", "what is measured: key, unit, kind, scope, source, meaning",
     CMD_METRICS, pr_main_metrics, NULL},
    {"doctor", "[OPTIONS]",
     "what can be measured on this machine, as this user, by which method; what cannot, why, and "
     "what would enable it",
     CMD_DOCTOR, pr_main_doctor, NULL},
    {"config", "", "each option's value and where it came from", 0, pr_main_config, NULL},
    {"phase", "NAME -- COMMAND [ARG...] | begin NAME | end NAME",
     "a part of the run that this shell is inside of, with an account of its own: as long as the "
     "command runs, or from begin to end; outside a run just the command",
     0, pr_main_phase, NULL},
    {"mark", "NAME [KEY=VALUE...]",
     "note in the run that this shell is inside of that something happened; outside a run nothing",
     0, pr_main_mark, NULL},
    {"ls", "[OPTIONS]", "list recorded runs, the newest first", CMD_LS, pr_main_ls, NULL},
    {"show", "[OPTIONS] RUN",
     "print a recorded run: a file, an id or the beginning of one from `ls`, or last", CMD_SHOW,
     pr_main_show, NULL},
    {"export", "RUN --format FORMAT | --dialect NAME [OPTIONS]",
     "a recorded run in another shape, on standard output by default; one that is being recorded "
     "as far as it has come",
     CMD_EXPORT, pr_main_export, NULL},
    {"rm", "[--force] RUN...", "remove recorded runs", CMD_RM, pr_main_rm, NULL},
    {"gc", "--keep N|DURATION [--dry-run]", "remove old runs", CMD_GC, pr_main_gc, NULL},
    {"recover", "[--force] RUN... | --all",
     "write the end of a run whose recorder died: a summary from its samples, in one file",
     CMD_RECOVER, pr_main_recover, NULL},
    {"report", "RUN... -o FILE [--images svg|png] [--github]",
     "what one or more recorded runs did: a page for the browser (.html), Markdown, text, a "
     "picture, "
     "or its model (.json)",
     CMD_REPORT, pr_main_report, NULL},
    {"compare", "RUN RUN... | --baseline FILE|RUN RUN... [OPTIONS]",
     "differences between runs, of the medians where there are several; as a gate: exit 1 where a "
     "--fail-if holds, 2 where that cannot be told",
     CMD_COMPARE, pr_main_compare, NULL},
    {"suggest", "RUN... [--for SYSTEM] [OPTIONS]",
     "what to request next time: memory, cores, time and GPUs, from the largest of one or more "
     "runs",
     CMD_SUGGEST, pr_main_suggest, NULL},
    {"push", "RUN --mlflow URI|--otlp URL",
     "send what a server has not got yet of a recorded run, and nothing twice", CMD_PUSH,
     pr_main_push, NULL},
    {"top", "[PID|RUN]", "live in the terminal", 0, NULL, "the live view"},
    {"serve", "[RUN]", "live in the browser", 0, NULL, "the live view"},
    {0},
};

void pr_complain(const char *format, ...)
{
    char text[1024];
    struct pr_buf line = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pr_buf_str(&line, "proctor: ");
    pr_text_safe(&line, text);
    pr_buf_char(&line, '\n');
    /* Who does not read what we say must not hold us up; the summary has it, too. */
    pr_fs_write_soon(STDERR_FILENO, line.data, line.len, 1000);
    pr_buf_done(&line);
}

const struct pr_command *pr_command_find(const char *name)
{
    for (const struct pr_command *c = pr_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}
