/* SPDX-License-Identifier: Apache-2.0 */
/* Findings that follow from figures of the whole run: a table of rules, one function each, with the
 * evidence in the sentence. The end of a run and the report have the same ones; what needs curves
 * is in model_rules.c. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "util/buf.h"

#define PEAK_MISSED 1.1 /* the kernel's mark, beside the most that was sampled */

enum pr_severity { SEVERITY_GOOD, SEVERITY_NOTE, SEVERITY_WARN, SEVERITY_BAD };

/* NaN for what is not known. */
struct pr_evidence {
    double duration;
    double memory, memory_at, memory_limit; /* the peak */
    double memory_mark; /* of the kernel, of one process: where it is above; else NaN */
    double cores, cores_mean, cores_limit; /* the peak; limit: NaN where it is the machine */
    double cpu_time, throttled, delay;
    double swap, swap_at;
    double files, files_at; /* share of the limit of a process */
    double io_full;         /* seconds in which all waited for storage */
    double unsampled, seen; /* processes */
    bool memory_of_machine; /* the limit is what the machine has */
    /* In which phase something was, and who came nearest to its limit of descriptors ("Process 12
     * (sh) had 7 of the 8"; false: not known); NULL for nobody who could tell. */
    void (*in_phase)(const void *of, double at, struct pr_buf *out);
    bool (*nearest)(const void *of, struct pr_buf *out);
    const void *of;
};
/* As sampled, and the mark of one process where it is well above; that alone where it is all. */
void pr_evidence_memory(struct pr_evidence *e, double sampled, double at, double mark);

struct pr_finding {
    const char *id, *more; /* more: another sentence, or NULL */
    enum pr_severity severity;
    double at; /* where to look, NaN for nowhere */
};

/* Each appends its sentence where it holds. */
typedef bool pr_rule(const struct pr_evidence *e, struct pr_finding *ret, struct pr_buf *text);
extern pr_rule *const pr_rules[];
extern const size_t pr_rule_count;
/* The worst of them, the first of those that are equally bad, into text; false where there is none
 * that is at least so bad. */
bool pr_rules_worst(const struct pr_evidence *e, enum pr_severity least, struct pr_finding *ret,
                    struct pr_buf *text);
