/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as other systems write them: a table for each, a row for each line. */
#include <math.h>
#include <string.h>

#include "report/model_json.h"
#include "report/suggest.h"

#define SCHEMA       1
#define MIB          1048576.0
#define CORE_SLACK   0.1       /* so much beyond whole cores is how they are measured */
#define GRAIN_PARTS  32        /* memory is rounded up to such a part of the next power of two */
#define DOCKER_LEAST (6 * MIB) /* it refuses less */

/* How a figure is written. */
enum form {
    AS_TEXT,       /* of the table alone */
    AS_MIB,        /* whole, upwards */
    AS_DOCKER_MIB, /* the same, and not less than it takes */
    AS_MB,
    AS_WHOLE, /* cores, GPUs */
    AS_MILLICORES,
    AS_TENTHS,
    AS_CLOCK, /* H:MM:SS in whole minutes */
    AS_MINUTES,
    AS_SECONDS, /* of whole minutes */
};
struct line {
    enum pr_need need; /* a line of what is not known is left out */
    enum form form;
    const char *before, *behind;
    bool vendor; /* of GPUs, between the two and the figure */
};
struct system {
    const char *name, *comment;
    struct line lines[20]; /* until before is NULL */
};

static const struct system systems[] = {
    {"slurm",
     "#",
     {{NEED_CORES, AS_WHOLE, "#SBATCH --cpus-per-task=", ""},
      {NEED_MEMORY, AS_MIB, "#SBATCH --mem=", "M"},
      {NEED_TIME, AS_CLOCK, "#SBATCH --time=", ""},
      {NEED_GPUS, AS_WHOLE, "#SBATCH --gpus=", ""}}},
    {"kubernetes",
     "#",
     {{NEED_NONE, AS_TEXT, "spec:", ""},
      {NEED_TIME, AS_TEXT, "  # time in which images are pulled counts, too", ""},
      {NEED_TIME, AS_SECONDS, "  activeDeadlineSeconds: ", ""},
      {NEED_NONE, AS_TEXT, "  template:", ""},
      {NEED_NONE, AS_TEXT, "    spec:", ""},
      {NEED_NONE, AS_TEXT, "      containers:", ""},
      {NEED_NONE, AS_TEXT, "      - name: main", ""},
      {NEED_NONE, AS_TEXT, "        resources:", ""},
      {NEED_NONE, AS_TEXT, "          requests:", ""},
      {NEED_CORES, AS_MILLICORES, "            cpu: ", "m"},
      {NEED_MEMORY, AS_MIB, "            memory: ", "Mi"},
      {NEED_NONE, AS_TEXT, "          limits:", ""},
      {NEED_MEMORY, AS_MIB, "            memory: ", "Mi"},
      {NEED_GPUS, AS_WHOLE, "            ", "", true}}},
    {"nextflow",
     "//",
     {{NEED_NONE, AS_TEXT, "process {", ""},
      {NEED_CORES, AS_WHOLE, "    cpus = ", ""},
      {NEED_MEMORY, AS_MIB, "    memory = '", " MB'"}, /* which is MiB there */
      {NEED_TIME, AS_MINUTES, "    time = '", "m'"},
      {NEED_GPUS, AS_WHOLE, "    accelerator = ", ""},
      {NEED_NONE, AS_TEXT, "}", ""}}},
    {"snakemake",
     "#",
     {{NEED_CORES, AS_WHOLE, "threads: ", ""},
      {NEED_NONE, AS_TEXT, "resources:", ""},
      {NEED_MEMORY, AS_MB, "    mem_mb=", ","},
      {NEED_TIME, AS_MINUTES, "    runtime=", ","},
      {NEED_GPUS, AS_WHOLE, "    gpu=", ","}}},
    {"docker",
     "#",
     {{NEED_NONE, AS_TEXT, "docker run \\", ""},
      {NEED_CORES, AS_TENTHS, "  --cpus=", " \\"},
      {NEED_MEMORY, AS_DOCKER_MIB, "  --memory=", "m \\"},
      {NEED_GPUS, AS_WHOLE, "  --gpus=", " \\"},
      {NEED_NONE, AS_TEXT, "  IMAGE COMMAND", ""}}},
};

static const struct system *find(const char *name)
{
    for (size_t i = 0; name && i < sizeof systems / sizeof *systems; i++)
        if (strcmp(systems[i].name, name) == 0)
            return &systems[i];
    return NULL;
}

/* A little more, so that figures are those that people would write: 1 MiB steps for small jobs. */
static double rounded(double bytes)
{
    double top = MIB;
    while (top < bytes)
        top *= 2;
    double grain = fmax(MIB, top / GRAIN_PARTS);
    return ceil(bytes / grain) * grain;
}

static double whole_cores(double cores)
{
    return fmax(1, ceil(cores - CORE_SLACK));
}

static double minutes(double seconds)
{
    return fmax(1, ceil(seconds / 60));
}

static void put_figure(struct pr_buf *out, double v, enum pr_need need, enum form form)
{
    double whole = need == NEED_CORES ? whole_cores(v) : v;
    const double figures[] = {[AS_MIB] = rounded(v) / MIB,
                              [AS_DOCKER_MIB] = fmax(rounded(v), DOCKER_LEAST) / MIB,
                              [AS_MB] = ceil(rounded(v) / 1e6),
                              [AS_WHOLE] = whole,
                              [AS_MILLICORES] = fmax(10, ceil(v * 100) * 10),
                              [AS_MINUTES] = minutes(v),
                              [AS_SECONDS] = 60 * minutes(v)};
    if (form == AS_TENTHS) {
        pr_units_fixed(out, fmax(0.1, ceil(v * 10) / 10), 1);
    } else if (form == AS_CLOCK) {
        long all = (long)minutes(v);
        pr_buf_printf(out, "%ld:%02ld:00", all / 60, all % 60);
    } else if (form != AS_TEXT) {
        pr_units_fixed(out, figures[form], 0);
    }
}

static void put_line(struct pr_buf *out, const struct pr_suggestion *s, const struct line *line)
{
    pr_buf_str(out, line->before);
    if (line->vendor)
        pr_buf_printf(out, "%s: ", s->vendor);
    if (line->form != AS_TEXT)
        put_figure(out, s->need[line->need], line->need, line->form);
    pr_buf_str(out, line->behind);
}

static bool is_said(const struct pr_suggestion *s, const struct line *line)
{
    return line->need == NEED_NONE || !isnan(s->need[line->need]);
}

/* --- for people ------------------------------------------------------------------------------- */

static const char *const names[NEEDS] = {
    [NEED_CORES] = "cores", [NEED_MEMORY] = "memory", [NEED_TIME] = "time", [NEED_GPUS] = "GPUs"};

static void put_plain(struct pr_buf *out, struct pr_suggestion *s)
{
    for (int i = NEED_CORES; i < NEEDS; i++) {
        struct pr_buf figure = {0};
        double v = s->need[i];
        if (isnan(v))
            continue;
        if (i == NEED_MEMORY)
            pr_units_human(&figure, rounded(v), UNIT_BYTES);
        else if (i == NEED_TIME)
            pr_units_human(&figure, fmax(1, ceil(v)), UNIT_SECONDS);
        else
            put_figure(&figure, v, (enum pr_need)i, AS_WHOLE);
        pr_buf_printf(out, "%-7s %-12s %s\n", names[i], pr_buf_text(&figure),
                      pr_buf_text(&s->why[i]));
        pr_buf_done(&figure);
    }
}

/* Evidence comes first: not every system has comments between lines. */
static void put_evidence(struct pr_buf *out, struct pr_suggestion *s, const char *comment)
{
    pr_buf_printf(out, "%s from %zu run%s by proctor %s\n", comment, s->count,
                  s->count > 1 ? "s" : "", PROCTOR_VERSION);
    for (int i = NEED_CORES; i < NEEDS; i++)
        if (!isnan(s->need[i]))
            pr_buf_printf(out, "%s %s: %s\n", comment, names[i], pr_buf_text(&s->why[i]));
}

static void put_notes(struct pr_buf *out, struct pr_suggestion *s, const char *comment)
{
    const char *p = pr_buf_text(&s->notes);
    while (*p) {
        size_t n = strcspn(p, "\n");
        pr_buf_printf(out, "%s%s%.*s\n", comment, *comment ? " " : "", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

void pr_suggest_text(struct pr_buf *out, struct pr_suggestion *s, const char *system)
{
    const struct system *to = find(system);
    if (!to) {
        pr_buf_printf(out, "from %zu run%s\n", s->count, s->count > 1 ? "s" : "");
        put_plain(out, s);
        put_notes(out, s, "");
        return;
    }
    put_evidence(out, s, to->comment);
    put_notes(out, s, to->comment);
    for (const struct line *line = to->lines; line->before; line++) {
        if (!is_said(s, line))
            continue;
        put_line(out, s, line);
        pr_buf_char(out, '\n');
    }
}

/* --- for programs ----------------------------------------------------------------------------- */

static void put_need(struct pr_json *j, struct pr_suggestion *s, enum pr_need need, const char *key,
                     const char *unit, double v)
{
    pr_json_key(j, key);
    if (isnan(s->need[need])) {
        pr_json_null(j);
        return;
    }
    pr_json_open(j, '{');
    pr_put_number(j, unit, v);
    if (need == NEED_GPUS)
        pr_put_number(j, "memory_bytes", s->gpu_memory);
    if (need == NEED_CORES)
        pr_put_number(j, "used", s->cores);
    pr_put_text(j, "evidence", pr_buf_text(&s->why[need]));
    pr_json_close(j, '}');
}

static void put_runs(struct pr_json *j, const struct pr_suggestion *s)
{
    pr_json_key(j, "runs");
    pr_json_open(j, '[');
    for (size_t i = 0; i < s->count; i++) {
        const struct pr_use *u = &s->uses[i];
        pr_json_open(j, '{');
        pr_put_text(j, "id", u->id);
        pr_json_key(j, "good");
        pr_json_bool(j, u->good);
        pr_json_key(j, "oom");
        pr_json_bool(j, u->oom);
        pr_put_number(j, "memory_peak", u->memory);
        pr_put_number(j, "cores_p95", u->cores);
        pr_put_number(j, "seconds", u->seconds);
        pr_json_close(j, '}');
    }
    pr_json_close(j, ']');
}

void pr_suggest_json(struct pr_buf *out, struct pr_suggestion *s, const char *system)
{
    struct pr_json j = {.out = out, .indent = 2};
    struct pr_buf text = {0};
    const struct system *to = find(system);
    pr_json_open(&j, '{');
    pr_json_key(&j, "schema");
    pr_json_int(&j, SCHEMA);
    pr_put_number(&j, "margin", s->margin);
    put_runs(&j, s);
    put_need(&j, s, NEED_CORES, "cpu", "cores", whole_cores(s->need[NEED_CORES]));
    put_need(&j, s, NEED_MEMORY, "memory", "bytes", rounded(s->need[NEED_MEMORY]));
    put_need(&j, s, NEED_TIME, "time", "seconds", ceil(s->need[NEED_TIME]));
    put_need(&j, s, NEED_GPUS, "gpu", "count", s->need[NEED_GPUS]);
    pr_put_text(&j, "notes", s->notes.len ? pr_buf_text(&s->notes) : NULL);
    pr_put_text(&j, "for", to ? to->name : NULL);
    pr_json_key(&j, "lines");
    pr_json_open(&j, '[');
    for (const struct line *line = to ? to->lines : NULL; line && line->before; line++) {
        if (!is_said(s, line))
            continue;
        pr_buf_reset(&text);
        put_line(&text, s, line);
        pr_json_string(&j, pr_buf_text(&text));
    }
    pr_json_close(&j, ']');
    pr_json_close(&j, '}');
    pr_buf_char(out, '\n');
    pr_buf_done(&text);
}
