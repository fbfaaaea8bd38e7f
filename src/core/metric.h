/* SPDX-License-Identifier: Apache-2.0 */
/* What a number is: the rows of metrics.def, by name. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/units.h"

enum pr_metric_id {
#define METRIC(id, ...)   METRIC_##id,
#define METRICS_END(name) name, name##_LAST = name - 1, /* how many there are up to here */
#include "core/metrics.def"
#undef METRIC
#undef METRICS_END
    METRIC_COUNT,
    METRIC_NONE = METRIC_COUNT,
};

enum pr_scope {
    SCOPE_PROC = 1,
    SCOPE_JOB = 2,
    SCOPE_SYSTEM = 4,
    SCOPE_CORE = 8,
    SCOPE_DISK = 16,
    SCOPE_FILESYSTEM = 32,
    SCOPE_INTERFACE = 64,
    SCOPE_GPU = 128,
};
enum pr_kind { KIND_GAUGE, KIND_COUNTER, KIND_RATE, KIND_RATIO, KIND_HIGH_WATER };
enum pr_fold { FOLD_NONE, FOLD_SUM, FOLD_MAX, FOLD_OWN /* a sum that no parent takes over */ };
enum pr_limit { LIMIT_CPU, LIMIT_MEMORY, LIMIT_COUNT };

/* The readings that a metric may need. */
enum pr_read {
    READ_STAT = 1,
    READ_STATM = 2,
    READ_IO = 4,
    READ_STATUS = 8,
    READ_SMAPS = 16,
    READ_FD = 32,
    READ_CLOCK = 64,
    READ_ENERGY = 128,
    READ_SCHED = 256,
    READ_CGROUP = 512,
    READ_CPUS = 1024,
    READ_MEMINFO = 2048,
    READ_DISKS = 4096,
    READ_SPACE = 8192,
    READ_NETDEV = 16384,
    READ_PSI = 32768,
    READ_LOAD = 65536,
    READ_NET = 131072,
    READ_GPU = 262144,
    READ_CGROUP_REST = 524288, /* parts of its memory, and how many are in it */
    READ_PSI_IO = 1048576,
};

/* What is to be said about a value besides the value. */
enum pr_mark {
    MARK_NONE,
    MARK_LOWER_BOUND,
    MARK_FROM_RSS,
    MARK_CPU_SHARE,
    MARK_WITH_REAPED,
    MARK_FEW_SAMPLES,
    MARK_AGED,
    MARK_AGED_CROWD,
    MARK_ESTIMATED,
    MARK_WHOLE_DEVICE,
    MARK_FROM_POWER,
    MARK_COUNT,
};

struct pr_metric {
    const char *key;
    unsigned scope; /* SCOPE_ bits */
    enum pr_kind kind;
    enum pr_unit unit;
    enum pr_fold fold;
    unsigned needs; /* READ_ bits */
    enum pr_metric_id of, otherwise;
    enum pr_limit per;
    double scale;
    const char *otel, *otel_as, *otel_unit, *from, *help;
};

extern const struct pr_metric pr_metrics[METRIC_COUNT];

void pr_values_none(double *value, int count); /* nothing is known of these */
/* What is absent counts as nothing, in a sum. */
double pr_value_known(double v);
/* The metric with this key, or METRIC_NONE. */
enum pr_metric_id pr_metric_find(const char *key);
/* Appends the column name: "mem_rss_bytes". */
void pr_metric_column(struct pr_buf *out, const struct pr_metric *m);
bool pr_metric_is_total(enum pr_metric_id id); /* the last value says all: there is no mean */
/* True for counters whose job total is the ledger's business. */
bool pr_metric_in_ledger(enum pr_metric_id id);
/* True for what is read in turn, though its process runs; a high-water mark has its own time. */
bool pr_metric_ages(enum pr_metric_id id);
/* True for what is derived from other values rather than read. */
bool pr_metric_is_derived(enum pr_metric_id id);
/* True for what the job or the machine has one of; the others are of each device alone. */
bool pr_metric_is_single(enum pr_metric_id id);
const char *pr_metric_kind_name(enum pr_kind kind);
const char *pr_metric_scope_name(unsigned scope); /* "process, job", "system, disk", ... */
/* "lower bound", ...; NULL for MARK_NONE. */
const char *pr_mark_name(enum pr_mark mark);
