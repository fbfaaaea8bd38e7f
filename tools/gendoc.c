/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that follow from the tables: `gendoc metrics` is doc/metrics.md, `gendoc man` the scdoc
 * source of proctor(1). */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static void metrics(void)
{
    puts(
        "# Metrics\n\n"
        "Generated from `src/core/metrics.def` by `make docs`; do not edit. `proctor metrics "
        "--json` has the same.\n\n"
        "A value that could not be read is absent (empty in CSV, null in JSON), never 0. Where the "
        "source is\n\"not in this version\" the column is there and always absent.\n\n"
        "| key | CSV column | unit | kind | scope | source | meaning |\n"
        "|---|---|---|---|---|---|---|");
    for (int id = 0; id < METRIC_COUNT; id++) {
        const struct pr_metric *m = &pr_metrics[id];
        struct pr_buf column = {0};
        pr_metric_column(&column, m);
        printf("| `%s` | `%s` | %s | %s | %s | %s%s | %s |\n", m->key, pr_buf_text(&column),
               pr_units_name(m->unit), pr_metric_kind_name(m->kind), pr_metric_scope_name(m->scope),
               m->from, m->needs & READ_LATER ? " (not in this version)" : "", m->help);
        pr_buf_done(&column);
    }
}

/* scdoc gives meaning to these. */
static void escaped(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (strchr("_*\\`<>#", *p))
            putchar('\\');
        putchar(*p);
    }
}

/* all: the commands of this part; it is said where an option is not of all of them. */
static void man_option(const struct pr_option *o, unsigned all)
{
    if (o->letter)
        printf("*-%c*, ", o->letter);
    printf("*--%s*", o->name);
    if (o->arg) {
        printf(o->optional_arg ? "[=_" : " _");
        escaped(o->arg);
        printf(o->optional_arg ? "_]" : "_");
    }
    printf("\n\t");
    escaped(o->help);
    printf(".");
    if (o->preset)
        printf(" Default: %s.", o->preset);
    if (o->later_choices)
        printf(" Not in this version: %s.", o->later_choices);
    else if (o->later)
        printf(" Not in this version.");
    const char *before = " Of ";
    for (const struct pr_command *c = pr_commands; c->name && !(all & ~o->commands) == 0; c++)
        if ((c->bit & o->commands) && (c->bit & all)) {
            printf("%s*%s*", before, c->name);
            before = ", ";
        }
    if (*before == ',')
        printf(".");
    puts("\n");
}

static void man_options(unsigned bits)
{
    for (int id = 0; id < OPTION_COUNT; id++)
        if (pr_options[id].commands & bits)
            man_option(&pr_options[id], bits);
}

static void man_phases(void)
{
    puts("# PHASES AND MARKS\n\n"
         "Inside a run, which is found through *PROCTOR_SOCKET*, *proctor phase* _NAME_ -- "
         "_COMMAND_ gives a command an account of\nits own, *phase begin* and *phase end* do so "
         "for whatever runs between them, and *mark* notes that something happened.\nPhases nest; "
         "ending one ends those that were begun inside it, and what is open at the end ends with "
         "the job. A VALUE that is\na JSON number, true, false or null is that, else a string. "
         "Outside a run only the command runs. Nothing is waited for\nlonger than a moment, and "
         "no failure is said. Where no socket can be made the run is recorded all the same, and\n"
         "*PROCTOR_SOCKET* is not set: that is no error. An event of type *socket* in the summary "
         "says why; on standard error it is\nsaid with *-v* alone.\n\n"
         "Other programs write lines to the socket: *begin* _NAME_, *end* _NAME_, *during* "
         "_NAME_ (until the process that asks\nhas ended), *mark* _NAME_ with a tab and a JSON "
         "object behind it. Each is answered with a line *ok* or *no*. A line has\nless than "
         "4096 bytes, a name at most 200.\n");
}

static void man_runs(void)
{
    puts(
        "# RECORDED RUNS\n\n"
        "*RUN* is a file, an id from *proctor ls* or its unique beginning, or *last*: the one that "
        "began last. Runs are "
        "in\n_${PROCTOR_HOME:-${XDG_STATE_HOME:-~/.local/state}/proctor}/runs_. "
        "One that is being recorded can be shown and exported as\nfar as it has come. One whose "
        "recorder was killed has all samples up to the last that was taken, and no summary:\n"
        "*show* makes one from the samples, and *recover* writes it. Such a summary has the same "
        "figures; names of *--match*, who\nwas left running and what recording has cost are not "
        "in it.\n\n"
        "The run log has a line for each phase that has ended (*ts*, *type*, *name*, *seconds*, "
        "and what else is known of it) and each\nevent (*ts*, *type*, *event*, *data*).\n");
}

static void man(void)
{
    puts("proctor(1)\n\n# NAME\n\nproctor - watch a job, keep an exact account of what it used\n");
    puts("# SYNOPSIS\n");
    for (const struct pr_command *c = pr_commands; c->name; c++) {
        if (!c->main)
            continue;
        printf("*proctor %s* ", c->name);
        escaped(c->args);
        puts("\n");
    }
    puts("# DESCRIPTION\n\n"
         "proctor starts a job, or attaches to one, watches its whole process tree, and says at "
         "the end what\nit used of CPU, memory and I/O, how that was obtained, and what is not "
         "known.\n\n# COMMANDS\n");
    for (const struct pr_command *c = pr_commands; c->name; c++) {
        if (!c->main)
            continue;
        printf("*%s* ", c->name);
        escaped(c->args);
        printf("\n\t%c", c->help[0] - ('a' <= c->help[0] && c->help[0] <= 'z' ? 32 : 0));
        escaped(c->help + 1);
        puts(".\n");
    }
    puts("# OPTIONS OF RUN, ATTACH AND SYSTEM\n");
    man_options(CMD_RUN | CMD_ATTACH | CMD_SYSTEM);
    for (const struct pr_command *c = pr_commands; c->name; c++) {
        if (!c->main || !(c->bit & ~(unsigned)(CMD_RUN | CMD_ATTACH | CMD_SYSTEM)))
            continue;
        printf("# OPTIONS OF ");
        for (const char *p = c->name; *p; p++)
            putchar(*p - 'a' + 'A');
        puts("\n");
        man_options(c->bit);
    }
    man_runs();
    puts("# NAMES\n\n"
         "*--match* looks for its pattern in what a process is called: the name of its executable, "
         "what it was called by,\nits comm, and where an interpreter runs a script or module, that "
         "one's. `python train.py` is python and train.py;\nworkers that it forks are called the "
         "same, those that it spawns anew are what they execute. Arguments are nobody's name.\n"
         "A process is in the first that matches, with its own use as it was last sampled; its I/O "
         "holds that of children it has\nwaited for, too, as the kernel has it.\n");
    man_phases();
    puts("# EXIT STATUS\n\n"
         "*run* exits as the job did: with its status, or of the same signal. 127: the command was "
         "not found;\n126: it could not be executed; 125: proctor failed before the job could "
         "start, or *--strict* and\nrecording went wrong. *attach*, *system*: 0; 1 where there is "
         "no such "
         "process, group or cgroup. *phase* exits as its command does, with 127 and 126 as above. "
         "*show*, *export*, *rm*, *recover*: 1 where there is no such run, or it cannot be read. "
         "Wrong usage outside *run*: 2.\n");
    puts("# SIGNALS\n\n"
         "What the terminal sends has reached the job already. A signal that a process sends to "
         "proctor is handed\non to the job; one that is sent to the whole process group, as "
         "*timeout*(1) does, thus reaches the job\ntwice. When the terminal stops the job, "
         "proctor stops, too. proctor never kills the job and does not\nend before it.\n");
    puts(
        "# ENVIRONMENT\n\n"
        "Each option is also a variable: *PROCTOR_INTERVAL*=100ms. The job sees "
        "*PROCTOR_RUN_ID*, *PROCTOR_SOCKET*, and\n*PROCTOR_HOME* where it is set, and no other "
        "PROCTOR\\_ "
        "variable. *NO_COLOR* is obeyed.\n\n# FILES\n\n"
        "_$XDG_CONFIG_HOME/proctor/config_, else _~/.config/proctor/config_\n\tLines of the form "
        "\"interval = 100ms\"; a \\# begins a comment. Options go before variables, those "
        "before the file.\n\n"
        "_$PROCTOR_HOME/runs/ID.proctor_, else _$XDG_STATE_HOME/proctor/runs/ID.proctor_, else\n"
        "_~/.local/state/proctor/runs/ID.proctor_\n\tWhat was recorded of a run: an SQLite "
        "database. doc/run-file.md has its tables.\n\n"
        "_$XDG_RUNTIME_DIR/proctor/ID.sock_, else _/tmp/proctor-UID/proctor/ID.sock_\n\tThe socket "
        "of a run.\n");
    puts("# EXAMPLES\n\n\tproctor run make -j8\n\n\tproctor run -i 100ms --csv run.csv "
         "--summary run.json -- python train.py\n\n\tproctor attach --duration 60s "
         "4711\n\n\tproctor phase "
         "train -- python train.py\n");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "metrics") == 0)
        metrics();
    else if (strcmp(what, "man") == 0)
        man();
    else
        return fputs("usage: gendoc metrics|man\n", stderr), 2;
    return 0;
}
