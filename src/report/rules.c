/* SPDX-License-Identifier: Apache-2.0 */
#include "report/rules.h"

#include <math.h>
#include <string.h>

#include "report/model_parts.h"

#define COUNT(list)     (sizeof list / sizeof *list)
#define NEAR_LIMIT      0.9
#define AT_LIMIT        0.95
#define MARK_ABOVE      1.05 /* times what was sampled; else it is known better when it was */
#define THROTTLED_LEAST 0.01 /* of the time */
#define DELAY_LEAST     0.1  /* of the time that the run lasted, */
#define DELAY_OF_USE    0.25 /* and of what the job has used */
#define FILES_NEAR      0.9
#define SWAP_LEAST      (1 << 20)
#define STALL_LEAST     0.1
#define WASTED_BELOW    0.5 /* of the cores, at the peak */
#define WASTED_CORES    4
#define UNSAMPLED_LEAST 10
#define LONG_ENOUGH     1 /* seconds: what is shorter says little of shares of time */

void pr_evidence_memory(struct pr_evidence *e, double sampled, double at, double mark)
{
    e->memory = isnan(sampled) ? mark : sampled;
    e->memory_at = isnan(sampled) ? NAN : at;
    e->memory_mark = mark > sampled * MARK_ABOVE ? mark : NAN;
}

static void put(struct pr_buf *text, const char *before, double v, enum pr_unit unit)
{
    pr_buf_str(text, before);
    pr_model_human(text, v, unit);
}

/* When and in which phase; and the end of the sentence. */
static void put_when(const struct pr_evidence *e, double at, struct pr_buf *text)
{
    if (!isnan(at)) {
        put(text, ", at ", at, UNIT_SECONDS);
        if (e->in_phase)
            e->in_phase(e->of, at, text);
    }
    pr_buf_char(text, '.');
}

static bool near_limit(const struct pr_evidence *e, struct pr_finding *ret, struct pr_buf *text)
{
    double share = e->memory / e->memory_limit, worst = fmax(e->memory, e->memory_mark);
    bool bad = worst >= AT_LIMIT * e->memory_limit;
    if (!(e->memory_limit > 0) || !(worst >= NEAR_LIMIT * e->memory_limit))
        return false;
    put(text, "Memory reached ", e->memory, UNIT_BYTES);
    put(text, ", ", share, UNIT_RATIO);
    put(text, e->memory_of_machine ? " of the machine " : " of the limit ", e->memory_limit,
        UNIT_BYTES);
    if (!isnan(e->memory_mark)) {
        put(text, " (the kernel's mark of one process: ", e->memory_mark, UNIT_BYTES);
        pr_buf_str(text, " of RSS)");
    }
    put_when(e, e->memory_at, text);
    *ret = (struct pr_finding){"memory-near-limit",
                               "Beyond the limit the kernel ends a process of the job.",
                               bad ? SEVERITY_BAD : SEVERITY_WARN, e->memory_at};
    return true;
}

static bool files(const struct pr_evidence *e, struct pr_finding *ret, struct pr_buf *text)
{
    if (!(e->files >= FILES_NEAR))
        return false;
    if (!e->nearest || !e->nearest(e->of, text)) {
        put(text, "A process had ", e->files, UNIT_RATIO);
        pr_buf_str(text, " of the");
    }
    pr_buf_str(text, " file descriptors open that it may have");
    put_when(e, e->files_at, text);
    *ret = (struct pr_finding){"descriptors-near-limit",
                               "At the limit (ulimit -n) nothing can be opened any more.",
                               SEVERITY_WARN, e->files_at};
    return true;
}

static bool throttled(const struct pr_evidence *e, struct pr_finding *ret, struct pr_buf *text)
{
    if (!(e->throttled > THROTTLED_LEAST * e->duration))
        return false;
    put(text, "The CPU quota kept the job from running for ", e->throttled, UNIT_SECONDS);
    put(text, ", beside ", e->duration, UNIT_SECONDS);
    pr_buf_str(text, " that it lasted.");
    *ret = (struct pr_finding){"throttled", "A higher quota, or fewer threads, would end that.",
                               SEVERITY_WARN, NAN};
    return true;
}

static bool swap(const struct pr_evidence *e, struct pr_finding *ret, struct pr_buf *text)
{
    if (!(e->swap >= SWAP_LEAST))
        return false;
    put(text, "Up to ", e->swap, UNIT_BYTES);
    pr_buf_str(text, " of the job were swapped out");
    put_when(e, e->swap_at, text);
    *ret = (struct pr_finding){"swap", NULL, SEVERITY_WARN, e->swap_at};
    return true;
}

/* A quota keeps it waiting, too, and has a sentence of its own. */
static bool delayed(const struct pr_evidence *e, struct pr_finding *ret, struct pr_buf *text)
{
    double waited = e->delay - pr_value_known(e->throttled);
    if (!(e->duration >= LONG_ENOUGH) || !(waited >= DELAY_LEAST * e->duration) ||
        !(waited >= DELAY_OF_USE * e->cpu_time))
        return false;
    put(text, "The job was ready to run and waited for a CPU for at least ", waited, UNIT_SECONDS);
    put(text, "; it used ", e->cpu_time, UNIT_SECONDS);
    pr_buf_str(text, " of CPU time.");
    *ret = (struct pr_finding){
        "cpu-delay",
        "Others were on the CPUs that it may use, or it has more busy threads than those.",
        SEVERITY_WARN, NAN};
    return true;
}

static bool io_stall(const struct pr_evidence *e, struct pr_finding *ret, struct pr_buf *text)
{
    double share = e->io_full / e->duration;
    if (!(e->duration >= LONG_ENOUGH) || !(share >= STALL_LEAST))
        return false;
    put(text, "For ", share, UNIT_RATIO);
    pr_buf_str(text, " of the time everything on the machine that could have run waited for "
                     "storage.");
    *ret = (struct pr_finding){"io-stall", NULL, SEVERITY_WARN, NAN};
    return true;
}

static bool wasted(const struct pr_evidence *e, struct pr_finding *ret, struct pr_buf *text)
{
    if (!(e->duration >= LONG_ENOUGH) || !(e->cores_limit >= WASTED_CORES) ||
        !(e->cores < WASTED_BELOW * e->cores_limit))
        return false;
    put(text, "Never more than ", e->cores, UNIT_CORES);
    put(text, " were busy of ", e->cores_limit, UNIT_CORES);
    put(text, " that the job may use; on average ", e->cores_mean, UNIT_CORES);
    pr_buf_char(text, '.');
    *ret = (struct pr_finding){"wasted", NULL, SEVERITY_NOTE, NAN};
    return true;
}

static bool unsampled(const struct pr_evidence *e, struct pr_finding *ret, struct pr_buf *text)
{
    if (!(e->unsampled >= UNSAMPLED_LEAST) || !(e->unsampled > e->seen / 2))
        return false;
    pr_buf_printf(text,
                  "At least %.0f of %.0f processes lived between two samples: their memory is not "
                  "in the curves.",
                  e->unsampled, fmax(e->seen, e->unsampled));
    *ret = (struct pr_finding){"never-sampled", "A shorter interval (-i) would show them.",
                               SEVERITY_NOTE, NAN};
    return true;
}

pr_rule *const pr_rules[] = {near_limit, files,    throttled, swap,
                             delayed,    io_stall, wasted,    unsampled};
const size_t pr_rule_count = COUNT(pr_rules);

bool pr_rules_worst(const struct pr_evidence *e, enum pr_severity least, struct pr_finding *ret,
                    struct pr_buf *text)
{
    struct pr_buf one = {0};
    bool any = false;
    for (size_t i = 0; i < pr_rule_count; i++) {
        struct pr_finding finding;
        pr_buf_reset(&one);
        if (!pr_rules[i](e, &finding, &one) || finding.severity < least ||
            (any && finding.severity <= ret->severity))
            continue;
        any = true;
        *ret = finding;
        pr_buf_reset(text);
        pr_buf_str(text, pr_buf_text(&one));
    }
    pr_buf_done(&one);
    return any;
}
