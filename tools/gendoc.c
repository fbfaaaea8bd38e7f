/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that follow from the tables: `gendoc metrics` is doc/metrics.md, `gendoc dialects`
 * doc/dialects.md, `gendoc man` the scdoc source of proctor(1). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "sink/dialect.h"

static void metrics(void)
{
    puts("# Metrics\n\n"
         "Generated from `src/core/metrics.def` by `make docs`; do not edit. `proctor metrics "
         "--json` has the same.\n\n"
         "A value that could not be read is absent (empty in CSV, null in JSON), never 0.\n\n"
         "| key | CSV column | unit | kind | scope | source | meaning |\n"
         "|---|---|---|---|---|---|---|");
    for (int id = 0; id < METRIC_COUNT; id++) {
        const struct pr_metric *m = &pr_metrics[id];
        struct pr_buf column = {0};
        pr_metric_column(&column, m);
        printf("| `%s` | `%s` | %s | %s | %s | %s | %s |\n", m->key, pr_buf_text(&column),
               pr_units_name(m->unit), pr_metric_kind_name(m->kind), pr_metric_scope_name(m->scope),
               m->from, m->help);
        pr_buf_done(&column);
    }
}

/* --- dialects --------------------------------------------------------------------------------- */

/* Text as it stands in a file, so that it can be seen. */
static void visible(const char *text)
{
    printf("`");
    for (const char *p = text; *p; p++) {
        const char *at = strchr("\n\r\t", *p);
        if (at)
            printf("\\%c", "nrt"[at - "\n\r\t"]);
        else
            putchar(*p);
    }
    printf("`");
}

static void source_of(const struct pr_column *c)
{
    static const char *const takes[] = {
        [TAKE_NOW] = "",           [TAKE_DELTA] = "growth of ", [TAKE_SHARE] = "growth of ",
        [TAKE_PEAK] = "peak of ",  [TAKE_MEAN] = "mean of ",    [TAKE_TOTAL] = "total of ",
        [TAKE_ROWS_MEAN] = "mean", [TAKE_ROWS_MAX] = "largest"};
    printf("%s", takes[c->take]);
    if (c->rows)
        printf(" `%s` in %s", c->rows->columns[c->column].name, c->rows->name);
    else if (c->ours)
        printf("%s", c->ours);
    else
        printf("`%s`", pr_metrics[c->metric].key);
    if (c->take == TAKE_SHARE)
        printf(" by that of all CPU time");
}

/* A function says itself what its unit is. */
static void unit_of(const struct pr_column *c)
{
    if (c->rows || c->ours)
        return;
    printf("%s", pr_units_name(pr_metrics[c->metric].unit));
    if (c->times)
        printf(" × %g", c->times);
    if (c->per == 0x1p10 || c->per == 0x1p20 || c->per == 0x1p30)
        printf(" ÷ 1024%s", c->per == 0x1p10 ? "" : c->per == 0x1p20 ? "²" : "³");
    else if (c->per >= 1e6)
        printf(" ÷ 10%s", c->per == 1e9 ? "⁹" : "⁶");
    else if (c->per)
        printf(" ÷ %g", c->per);
}

static void digits_of(const struct pr_column *c)
{
    if (c->shape == SHAPE_TEXT)
        printf("text");
    else if (c->shape == SHAPE_WHOLE)
        printf("whole, cut off");
    else if (c->decimals == DECIMALS_ALL)
        printf("all digits");
    else if (c->decimals == 0)
        printf("whole, rounded");
    else
        printf("%s%d decimal%s%s", c->shape == SHAPE_FLOAT ? "at most " : "", c->decimals,
               c->decimals == 1 ? "" : "s", c->shape == SHAPE_CUT ? ", cut off" : "");
}

static void column_row(const struct pr_table *table, const struct pr_column *c)
{
    const char *absent = c->absent ? c->absent : table->absent;
    printf("| `%s` | ", c->name);
    source_of(c);
    printf(" | ");
    unit_of(c);
    printf(" | ");
    digits_of(c);
    printf(" | ");
    if (c->needed)
        printf("no row");
    else if (absent && *absent)
        visible(absent);
    else
        printf("empty");
    if (c->from_second)
        printf(", and so in the first row");
    if (c->no_gpu)
        printf("; `%s` without a GPU", c->no_gpu);
    if (c->first)
        printf("; `%s` in the first row", c->first);
    if (c->ended)
        printf("; `%s` after the job", c->ended);
    printf(" | %s", c->note ? c->note : "");
    if (c->zero && strcmp(c->zero, "0") != 0)
        printf("%sfor 0: %s", c->note ? "; " : "",
               strcmp(c->zero, "\"\"") == 0 ? "`\"\"`" : c->zero);
    if (c->if_positive)
        printf("%sonly where `%s` is above 0", c->note ? "; " : "", c->if_positive);
    puts(" |");
}

static void table_section(const struct pr_table *table)
{
    static const char *const each[] = {[EACH_SAMPLE] = "a row per sample",
                                       [EACH_PROCESS] = "a row per process and sample",
                                       [EACH_GPU] = "a row per GPU and sample",
                                       [EACH_RUN] = "once, at the end"};
    static const char *const quoting[] = {[QUOTE_NEVER] = "nothing is quoted",
                                          [QUOTE_WHERE_NEEDED] = "quotes where they are needed",
                                          [QUOTE_TEXT] = "all text is quoted"};
    printf("### `%s`\n\n%c%s. For `--%s`; usually called `%s`; %s", table->name,
           toupper(table->about[0]), table->about + 1, table->json ? "jsonl" : "csv", table->file,
           each[table->each]);
    if (table->layout == LAYOUT_OBJECT)
        printf(", a JSON object");
    if (table->layout == LAYOUT_ROWS) {
        printf("; between columns ");
        visible(table->separator);
        printf(", at the end of a line ");
        visible(table->newline);
        printf("; %s; %s", quoting[table->quoting], table->header ? "with a header" : "no header");
    }
    puts(".\n\n| column | ours | unit | digits | absent | where ours differs |\n"
         "|---|---|---|---|---|---|");
    for (int i = 0; i < table->column_count; i++)
        column_row(table, &table->columns[i]);
    puts("");
}

static void dialects(void)
{
    puts("# Dialects\n\n"
         "Generated from the tables in `src/sink/dialects` by `make docs`; do not edit.\n\n"
         "With `--dialect NAME` `--csv` and `--jsonl` write what another tool would have written: "
         "its names, units, digits and\nquotes. `--table` says which of its tables; by default "
         "the first that has the form. There is a row for each sample, the first\nincluded, "
         "and growth counts from the start of recording. Where their figure is wrong ours stands "
         "under the same name, and\nthe last column says what differs. A value that was not "
         "read or not selected stands there as the tool writes what it does\nnot know.\n\n"
         "`proctor export RUN --dialect NAME` has the same of a recorded run: its first table by "
         "default, `--table` for another; `-o DIR`\n(a folder that is there, or a name that ends "
         "with `/`) for all of them under their usual names. It is what was written live, byte\n"
         "by byte, but for the table of OasisLMF: there a process is called by the last name that "
         "it had, or the last rule that it\nbelonged to, and its PSS is as close as "
         "[the run file](run-file.md) keeps it. What is not of the run is of whoever exports:\n"
         "the time zone, the page size, TIME.\n");
    static const char *const names[] = {
#define DIALECT(name, dialect) name,
#include "core/dialects.def"
#undef DIALECT
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct pr_dialect *d = pr_dialect_find(names[i]);
        printf("## %s\n\n%s.\n\n", names[i], d->about);
        for (const struct pr_table *const *t = d->tables; *t; t++)
            table_section(*t);
    }
}

/* --- the man page ----------------------------------------------------------------------------- */

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
    if (o->choices)
        printf(" One of: %s.", o->choices);
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
        "began last. A run on several nodes has a file for each (*ID.NODE*): *report ID* takes "
        "all of them as one job. Runs are "
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
    else if (strcmp(what, "dialects") == 0)
        dialects();
    else if (strcmp(what, "man") == 0)
        man();
    else
        return fputs("usage: gendoc metrics|dialects|man\n", stderr), 2;
    return 0;
}
