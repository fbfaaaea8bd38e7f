/* SPDX-License-Identifier: Apache-2.0 */
/* What the first screen has, and what is below it: tables of groups of series. */
#include <math.h>
#include <string.h>

#include "report/model_parts.h"

#define COUNT(list) (sizeof list / sizeof *list)
#define NO_GPU      "no GPU was seen"

/* The first six of which something is known, or which say why not. */
const struct pr_tile pr_tiles[] = {
    {"cpu",
     "CPU",
     FAMILY_CPU,
     {{GROUP_CPU, FIGURE_MEAN, "mean", UNIT_CORES}},
     {{GROUP_CPU, FIGURE_MAX, "peak", UNIT_CORES}},
     true,
     "CPU time was not measured"},
    {"memory",
     "Memory",
     FAMILY_MEMORY,
     {{GROUP_MEMORY, FIGURE_MAX, "peak", UNIT_BYTES}},
     {{GROUP_MEMORY, FIGURE_MEAN, "mean", UNIT_BYTES}},
     true,
     "memory was not measured"},
    {"nodes",
     "Nodes",
     FAMILY_OTHER,
     {{GROUP_NODES, FIGURE_MAX, "at once", UNIT_COUNT}},
     {{GROUP_CPU, FIGURE_TOTAL, "CPU time", UNIT_SECONDS}},
     false,
     NULL},
    {"gpu",
     "GPU",
     FAMILY_GPU,
     {{GROUP_GPU_UTIL, FIGURE_MEAN, "mean", UNIT_RATIO}},
     {{GROUP_GPU_IDLE, FIGURE_MEAN, "idle", UNIT_RATIO}},
     false,
     NULL,
     NO_GPU},
    {"gpu-memory",
     "GPU memory",
     FAMILY_GPU,
     {{GROUP_GPU_MEMORY, FIGURE_MAX, "peak", UNIT_BYTES}},
     {{0}},
     true,
     NULL},
    {"disk",
     "Disk",
     FAMILY_DISK,
     {{GROUP_READ, FIGURE_TOTAL, "r", UNIT_BYTES}, {GROUP_WRITE, FIGURE_TOTAL, "w", UNIT_BYTES}},
     {{GROUP_READ, FIGURE_MAX, "peak r", UNIT_BYTES_PER_SECOND},
      {GROUP_WRITE, FIGURE_MAX, "w", UNIT_BYTES_PER_SECOND}},
     false,
     "input and output were not measured"},
    {"energy",
     "Energy",
     FAMILY_ENERGY,
     {{GROUP_POWER, FIGURE_TOTAL, "total", UNIT_JOULES}},
     {{GROUP_POWER, FIGURE_MAX, "peak", UNIT_WATTS}},
     false,
     NULL},
    {"network",
     "Network",
     FAMILY_NETWORK,
     {{GROUP_RECEIVE, FIGURE_TOTAL, "in", UNIT_BYTES},
      {GROUP_SEND, FIGURE_TOTAL, "out", UNIT_BYTES}},
     {{GROUP_RECEIVE, FIGURE_MAX, "peak in", UNIT_BYTES_PER_SECOND},
      {GROUP_SEND, FIGURE_MAX, "out", UNIT_BYTES_PER_SECOND}},
     false,
     NULL},
    {"processes",
     "Processes",
     FAMILY_OTHER,
     {{GROUP_PROCESSES, FIGURE_MAX, "most at once", UNIT_COUNT}},
     {{GROUP_PROCESSES, FIGURE_MEAN, "mean", UNIT_COUNT}},
     false,
     NULL},
};
const size_t pr_tile_count = COUNT(pr_tiles);

const struct pr_chart pr_charts[] = {
    {"cpu",
     "CPU",
     "first",
     "CPU time of all processes of the job per second.",
     "CPU time was not measured",
     UNIT_CORES,
     {{GROUP_CPU, "job"}, {GROUP_CPU_MACHINE, "context"}}},
    {"memory",
     "Memory",
     "first",
     "Summed over the processes that were alive.",
     "memory was not measured",
     UNIT_BYTES,
     {{GROUP_MEMORY, "job"}}},
    {"gpu",
     "GPU",
     "first",
     "Share of the time in which anything ran on the device; the thin line is its memory.",
     NO_GPU,
     UNIT_RATIO,
     {{GROUP_GPU_UTIL, "job"}, {GROUP_GPU_MEMORY, "share"}}},
    {"io",
     "Disk, network",
     "first",
     "Read and received upwards, written and sent downwards; page cache hits are not in it.",
     "input and output were not measured",
     UNIT_BYTES_PER_SECOND,
     {{GROUP_READ, "job"}, {GROUP_WRITE, "down"}, {GROUP_RECEIVE, "job"}, {GROUP_SEND, "down"}}},
    {"node-cpu",
     "CPU by node",
     "below",
     "Each node by itself; all begin where their wall clocks say so.",
     NULL,
     UNIT_CORES,
     {{GROUP_NODE_CPU, "job"}}},
    {"node-memory",
     "Memory by node",
     "below",
     "Each node by itself.",
     NULL,
     UNIT_BYTES,
     {{GROUP_NODE_MEMORY, "job"}}},
    {"node-disk",
     "Disk by node",
     "below",
     "Read upwards, written downwards.",
     NULL,
     UNIT_BYTES_PER_SECOND,
     {{GROUP_NODE_READ, "job"}, {GROUP_NODE_WRITE, "down"}}},
    {"node-network",
     "Network by node",
     "below",
     "Received upwards, sent downwards.",
     NULL,
     UNIT_BYTES_PER_SECOND,
     {{GROUP_NODE_RECEIVE, "job"}, {GROUP_NODE_SEND, "down"}}},
    {"nodes",
     "Nodes",
     "below",
     "Of how many nodes the sums are: those of which anything is known at that time.",
     NULL,
     UNIT_COUNT,
     {{GROUP_NODES, "job"}}},
    {"memory-kinds",
     "Memory by kind",
     "below",
     "RSS counts shared pages once for each process, PSS divides them, USS leaves them out.",
     NULL,
     UNIT_BYTES,
     {{GROUP_RSS, "job"}, {GROUP_MEMORY, "job"}, {GROUP_USS, "job"}}},
    {"processes",
     "Processes",
     "below",
     "Processes that were alive.",
     NULL,
     UNIT_COUNT,
     {{GROUP_PROCESSES, "job"}}},
    {"power",
     "Power",
     "below",
     "Power of GPUs, and the job's share of that of the CPU packages.",
     NULL,
     UNIT_WATTS,
     {{GROUP_POWER, "job"}}},
};
const size_t pr_chart_count = COUNT(pr_charts);

const struct pr_phase_column pr_phase_columns[] = {
    {"CPU mean", {GROUP_CPU, FIGURE_MEAN, "", UNIT_CORES}},
    {"CPU time", {GROUP_CPU, FIGURE_TOTAL, "", UNIT_SECONDS}},
    {"memory peak", {GROUP_MEMORY, FIGURE_MAX, "", UNIT_BYTES}},
    {"GPU mean", {GROUP_GPU_UTIL, FIGURE_MEAN, "", UNIT_RATIO}},
    {"read", {GROUP_READ, FIGURE_TOTAL, "", UNIT_BYTES}},
    {"written", {GROUP_WRITE, FIGURE_TOTAL, "", UNIT_BYTES}},
    {"energy", {GROUP_POWER, FIGURE_TOTAL, "", UNIT_JOULES}},
};
const size_t pr_phase_column_count = COUNT(pr_phase_columns);

const struct pr_model_column pr_match_columns[] = {
    {"name", "name", true, 0},
    {"instances", "processes", false, UNIT_COUNT},
    {"cpu", "CPU time", false, UNIT_SECONDS},
    {"rss", "RSS peak", false, UNIT_BYTES},
    {"pss", "PSS peak", false, UNIT_BYTES},
    {"uss", "USS peak", false, UNIT_BYTES},
};
const size_t pr_match_column_count = COUNT(pr_match_columns);
const struct pr_model_column pr_device_columns[] = {
    {"name", "device", true, 0},
    {"model", "model", true, 0},
    {"util", "busy, mean", false, UNIT_RATIO},
    {"mem", "memory peak", false, UNIT_BYTES},
    {"power", "power, mean", false, UNIT_WATTS},
    {"energy", "energy", false, UNIT_JOULES},
    {"temp", "hottest", false, UNIT_CELSIUS},
};
const size_t pr_device_column_count = COUNT(pr_device_columns);

const struct pr_model_column pr_node_columns[] = {
    {"node", "node", true, 0},
    {"host", "machine", true, 0},
    {"end", "end", true, 0},
    {"after", "began after", false, UNIT_SECONDS},
    {"duration", "time", false, UNIT_SECONDS},
    {"cpu", "CPU time", false, UNIT_SECONDS},
    {"mem", "memory peak", false, UNIT_BYTES, true},
    {"read", "read", false, UNIT_BYTES},
    {"written", "written", false, UNIT_BYTES},
    {"received", "received", false, UNIT_BYTES},
    {"sent", "sent", false, UNIT_BYTES},
};
const size_t pr_node_column_count = COUNT(pr_node_columns);

const char *pr_column_title(const struct pr_model *m, const struct pr_model_column *c)
{
    static const char *const kinds[][2] = {
        {"PSS", "PSS peak"}, {"RSS", "RSS peak"}, {"PSS or RSS", "PSS or RSS peak"}};
    const struct pr_model_series *s = c->memory ? pr_model_find(m, GROUP_MEMORY) : NULL;
    for (size_t i = 0; s && i < COUNT(kinds); i++)
        if (strcmp(s->label, kinds[i][0]) == 0)
            return kinds[i][1];
    return c->title;
}

/* --- what can be drawn --------------------------------------------------------------------------
 */

const char *pr_chart_absent(const struct pr_model *m, const struct pr_chart *c)
{
    const char *why = c->absent ? c->absent : "";
    for (size_t i = 0; i < COUNT(c->lines) && c->lines[i].role; i++)
        for (size_t k = 0; k < m->series.count; k++) {
            if (m->series.items[k].group != c->lines[i].group)
                continue;
            if (m->curves.items[m->series.items[k].curve].known)
                return NULL;
            why = "the run was too short for a curve";
        }
    return why;
}

/* --- the text alternative ----------------------------------------------------------------------
 */

/* Of what is known; where the most was, if there was anything. */
static void put_line(const struct pr_model *m, const struct pr_model_series *s, struct pr_buf *out)
{
    const struct pr_figures *f = &s->stats;
    const struct {
        const char *word;
        double v;
    } parts[] = {{"least", f->min}, {"mean", f->mean}, {"most", f->max}};
    if (isnan(f->max))
        return;
    pr_buf_printf(out, "%s%s:", out->len ? " " : "", s->label);
    for (size_t i = 0, n = 0; i < COUNT(parts); i++) {
        if (isnan(parts[i].v))
            continue;
        pr_buf_printf(out, "%s %s ", n++ ? "," : "", parts[i].word);
        pr_model_human(out, parts[i].v, s->unit);
    }
    if (!isnan(f->at)) {
        pr_buf_str(out, " at ");
        pr_model_human(out, f->at, UNIT_SECONDS);
        pr_model_in_phase(m, f->at, out);
    } else if (f->max > 0 && !(f->max <= f->mean * (1 + 1e-6))) {
        pr_buf_str(out, " (" MODEL_UNSAMPLED ")");
    }
    if (s->mark)
        pr_buf_printf(out, " (%s)", s->mark);
    if (s->limit.text)
        pr_buf_printf(out, "; %s", s->limit.text);
    pr_buf_char(out, '.');
}

void pr_chart_text(const struct pr_model *m, const struct pr_chart *c, struct pr_buf *out)
{
    for (size_t i = 0; i < COUNT(c->lines) && c->lines[i].role; i++)
        for (size_t k = 0; k < m->series.count; k++)
            if (m->series.items[k].group == c->lines[i].group)
                put_line(m, &m->series.items[k], out);
    if (!out->len)
        pr_buf_str(out, c->absent ? c->absent : "nothing is known");
}
