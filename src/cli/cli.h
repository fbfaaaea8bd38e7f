/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands share. */
#pragma once
#include "core/config.h"
#include "lib/monitor.h"

enum { EXIT_OWN_FAILURE = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127, EXIT_USAGE = 2 };

struct pr_command {
    const char *name, *args, *help;
    unsigned bit;                       /* CMD_, whose options it takes; 0 for none */
    int (*main)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
    const char *later;                  /* the part that this version lacks, where main is NULL */
};

extern const struct pr_command pr_commands[];
const struct pr_command *pr_command_find(const char *name);

/* "proctor: " and the message on standard error, made safe, in one write. */
void pr_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Config file, variables and options into c. Returns the index of the first operand, or -1 after a
 * complaint. For `run` options end at the first operand. Help is asked for: *ret_help. */
int pr_cli_parse(const struct pr_command *command, int argc, char **argv, struct pr_config *c,
                 bool *ret_help);
void pr_cli_help(const struct pr_command *command);

/* For commands that take options and no operands: parses into c, which the caller ends with
 * pr_config_done. True to go on, else *ret_status says how to exit. */
bool pr_cli_begin(const char *name, int argc, char **argv, struct pr_config *c, int *ret_status);
/* --color, NO_COLOR, and whether fd is a terminal. */
bool pr_wants_color(const struct pr_config *c, int fd);
/* Does the locale have UTF-8? */
bool pr_has_utf8(void);

int pr_main_run(int argc, char **argv);
int pr_main_attach(int argc, char **argv);
int pr_main_system(int argc, char **argv);
int pr_main_metrics(int argc, char **argv);
int pr_main_config(int argc, char **argv);
int pr_main_doctor(int argc, char **argv);
int pr_main_phase(int argc, char **argv);
int pr_main_mark(int argc, char **argv);
int pr_main_ls(int argc, char **argv);
int pr_main_show(int argc, char **argv);
int pr_main_export(int argc, char **argv);
int pr_main_rm(int argc, char **argv);
int pr_main_gc(int argc, char **argv);
int pr_main_recover(int argc, char **argv);
int pr_main_report(int argc, char **argv);
int pr_main_compare(int argc, char **argv);
int pr_main_suggest(int argc, char **argv);
int pr_main_push(int argc, char **argv);

/* How wrong usage of the command exits. */
int pr_usage_status(const struct pr_command *command);

/* --- for the recording commands ----------------------------------------------------------------
 */

/* A monitor with the command's options in it; *ret_first is the first operand. NULL where there is
 * nothing to record, help or a complaint having been printed: *ret_status says how to exit. */
struct proctor_monitor *pr_recording_new(const char *name, int argc, char **argv, int *ret_first,
                                         int *ret_status);

struct pr_summary_file {
    bool wanted;
    int fd; /* below 0 where none was asked for, or a fifo has no reader yet */
    char path[4096], temporary[4200]; /* temporary is empty where the file is written directly */
};

/* Opens what --summary names, so that a failure is known before the job starts. */
int pr_summary_file_open(struct pr_summary_file *f, const char *path, struct proctor_error *err);
/* Gives up: the temporary file goes. */
void pr_summary_file_cancel(struct pr_summary_file *f);
/* The summary to standard error and to the file, once the monitor has stopped. */
void pr_finish(struct proctor_monitor *m, struct pr_summary_file *f);
/* Signals that end a recording or are handed on, blocked and readable from the result; -errno. */
int pr_signals_open(const sigset_t *set);
