/* SPDX-License-Identifier: Apache-2.0 */
/* GNU time: `time -v`, and `time -f FORMAT` with the format in TIME. */
#include <math.h>
#include <unistd.h>

#include "sink/dialects/fields.h"

/* Nothing that Linux counts: GNU time writes 0, too. */
static double nothing(const struct pr_row *row)
{
    (void)row;
    return 0;
}

static double page_size(const struct pr_row *row)
{
    (void)row;
    return (double)sysconf(_SC_PAGESIZE);
}

static double exit_status(const struct pr_row *row)
{
    return row->job->exit_code > 0 ? row->job->exit_code : 0;
}

static bool command(const struct pr_row *row, struct pr_buf *out)
{
    for (char *const *arg = row->job->argv; arg && *arg; arg++)
        pr_buf_printf(out, "%s%s", arg == row->job->argv ? "" : " ", *arg);
    return true;
}

static bool quoted_command(const struct pr_row *row, struct pr_buf *out)
{
    pr_buf_char(out, '"');
    command(row, out);
    pr_buf_char(out, '"');
    return true;
}

static bool percent(const struct pr_row *row, struct pr_buf *out)
{
    double load = pr_field_load(row);
    if (isnan(load))
        pr_buf_str(out, "?%");
    else
        pr_buf_printf(out, "%ld%%", (long)(load + 1e-6));
    return true;
}

/* "m:ss.cc", beyond an hour "h:mm:ss". */
static bool clock_time(const struct pr_row *row, struct pr_buf *out)
{
    long hundredths = (long)(pr_field_elapsed(row) * 100 + 1e-6), s = hundredths / 100;
    if (s >= 3600)
        pr_buf_printf(out, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        pr_buf_printf(out, "%ld:%02ld.%02ld", s / 60, s % 60, hundredths % 100);
    return true;
}

static void how_it_ended(const struct pr_row *row, struct pr_buf *out)
{
    if (row->job->exit_signal > 0)
        pr_buf_printf(out, "Command terminated by signal %d\n", row->job->exit_signal);
    else if (row->job->exit_code > 0)
        pr_buf_printf(out, "Command exited with non-zero status %d\n", row->job->exit_code);
}

#define SECONDS .take = TAKE_TOTAL, .shape = SHAPE_CUT, .decimals = 2
#define TOTAL   .take = TAKE_TOTAL, .shape = SHAPE_WHOLE
#define BLOCKS  .per = 512, TOTAL
#define ALWAYS  .number = nothing, .shape = SHAPE_WHOLE, .ours = "always 0, as theirs on Linux"
#define TEXT    .shape = SHAPE_TEXT

#define USER    .metric = METRIC_CPU_USER, SECONDS
#define SYSTEM  .metric = METRIC_CPU_SYSTEM, SECONDS
#define CPU     .text = percent, TEXT, .ours = "`cpu.time` by the duration, whole percent"
#define ELAPSED .text = clock_time, TEXT, .ours = "since the start"
#define MAX_RSS                                                                                    \
    .metric = METRIC_MEM_RSS_PEAK, .take = TAKE_PEAK, .per = KIB, .shape = SHAPE_WHOLE,            \
    .note = "theirs is of the largest single process; ours of the job, if that is more"
#define MAJOR       .metric = METRIC_FAULTS_MAJOR, TOTAL
#define MINOR       .metric = METRIC_FAULTS_MINOR, TOTAL
#define VOLUNTARY   .metric = METRIC_CTX_VOLUNTARY, TOTAL
#define INVOLUNTARY .metric = METRIC_CTX_INVOLUNTARY, TOTAL
#define INPUTS      .metric = METRIC_IO_READ, BLOCKS
#define OUTPUTS     .metric = METRIC_IO_WRITE, BLOCKS
#define PAGE_SIZE   .number = page_size, .shape = SHAPE_WHOLE, .ours = "of this machine"
#define STATUS      .number = exit_status, .shape = SHAPE_WHOLE, .ours = "exit status of the job"

static const struct pr_column verbose_columns[] = {
    {.name = "Command being timed", .text = quoted_command, TEXT, .ours = "the command"},
    {.name = "User time (seconds)", USER},
    {.name = "System time (seconds)", SYSTEM},
    {.name = "Percent of CPU this job got", CPU},
    {.name = "Elapsed (wall clock) time (h:mm:ss or m:ss)", ELAPSED},
    {.name = "Average shared text size (kbytes)", ALWAYS},
    {.name = "Average unshared data size (kbytes)", ALWAYS},
    {.name = "Average stack size (kbytes)", ALWAYS},
    {.name = "Average total size (kbytes)", ALWAYS},
    {.name = "Maximum resident set size (kbytes)", MAX_RSS},
    {.name = "Average resident set size (kbytes)", ALWAYS},
    {.name = "Major (requiring I/O) page faults", MAJOR},
    {.name = "Minor (reclaiming a frame) page faults", MINOR},
    {.name = "Voluntary context switches", VOLUNTARY},
    {.name = "Involuntary context switches", INVOLUNTARY},
    {.name = "Swaps", ALWAYS},
    {.name = "File system inputs", INPUTS},
    {.name = "File system outputs", OUTPUTS},
    {.name = "Socket messages sent", ALWAYS},
    {.name = "Socket messages received", ALWAYS},
    {.name = "Signals delivered", ALWAYS},
    {.name = "Page size (bytes)", PAGE_SIZE},
    {.name = "Exit status", STATUS},
};

static const struct pr_column letter_columns[] = {
    {.name = "C", .text = command, TEXT, .ours = "the command"},
    {.name = "D", ALWAYS},
    {.name = "E", ELAPSED},
    {.name = "F", MAJOR},
    {.name = "I", INPUTS},
    {.name = "K", ALWAYS},
    {.name = "M", MAX_RSS},
    {.name = "O", OUTPUTS},
    {.name = "P", CPU},
    {.name = "R", MINOR},
    {.name = "S", SYSTEM},
    {.name = "U", USER},
    {.name = "W", ALWAYS},
    {.name = "X", ALWAYS},
    {.name = "Z", PAGE_SIZE},
    {.name = "c", INVOLUNTARY},
    {.name = "e",
     .number = pr_field_elapsed,
     .shape = SHAPE_CUT,
     .decimals = 2,
     .ours = "seconds since the start"},
    {.name = "k", ALWAYS},
    {.name = "p", ALWAYS},
    {.name = "r", ALWAYS},
    {.name = "s", ALWAYS},
    {.name = "t", ALWAYS},
    {.name = "w", VOLUNTARY},
    {.name = "x", STATUS},
};

static const struct pr_table verbose = {.name = "verbose",
                                        .file = "time.txt",
                                        .each = EACH_RUN,
                                        .layout = LAYOUT_LINES,
                                        .line_before = "\t",
                                        .separator = ": ",
                                        .newline = "\n",
                                        .absent = "?",
                                        .preface = how_it_ended,
                                        COLUMNS(verbose_columns),
                                        .about = "as `time -v`"};
static const struct pr_table format = {
    .name = "format",
    .file = "time-format.txt",
    .each = EACH_RUN,
    .layout = LAYOUT_TEMPLATE,
    .newline = "\n",
    .absent = "?",
    .title = "%Uuser %Ssystem %Eelapsed %PCPU (%Xavgtext+%Davgdata %Mmaxresident)k\n"
             "%Iinputs+%Ooutputs (%Fmajor+%Rminor)pagefaults %Wswaps",
    .title_from = "TIME",
    .preface = how_it_ended,
    COLUMNS(letter_columns),
    .about = "as `time -f FORMAT`: the format is in the variable TIME, as there; a letter behind % "
             "stands for a value"};

static const struct pr_table *const tables[] = {&verbose, &format, NULL};
const struct pr_dialect pr_dialect_gnu_time = {"GNU time 1.9", tables};
