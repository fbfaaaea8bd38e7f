/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel file with a line per device and two counters in each, and what sysfs says of those
 * devices. That is dear and hardly ever changes: it is asked again only when the names in the file
 * are others than before. Kernel files keep their order, so line i has name i. */
#pragma once
#include "core/machine.h"
#include "util/scan.h"

struct pr_roster_line {
    char name[DEVICE_NAME];
    double value[2];
    unsigned facts; /* the source's own */
    bool shown;     /* it is a device for us */
    bool counted;   /* and in the machine's sum */
};

struct pr_roster {
    struct pr_roster_line *lines;
    size_t count, cap;
    bool known;       /* facts, shown and counted belong to these names */
    int64_t known_at; /* boot time */
    int fd;           /* held, -1 for none */
};

/* What makes one source differ from another. */
struct pr_roster_rules {
    enum pr_machine_source_id source;
    enum pr_device_kind kind;
    enum pr_metric_id metric[2];
    /* The file into t->text. Length or -errno. */
    ssize_t (*text)(const struct pr_tick *t, int *held);
    /* Which device a line is of, and its counters. False where it is no such line. */
    bool (*line)(struct pr_scan line, struct pr_scan *ret_name, double *ret_value);
    /* Sets shown and counted. t->text is free. */
    void (*find_out)(struct pr_roster *r, const struct pr_tick *t);
    const char *none; /* the reason where nothing counts */
};

/* For the source's read: the file's devices into m. 0 or -errno. */
int pr_roster_read(const struct pr_roster_rules *rules, struct pr_machine *m,
                   const struct pr_tick *t, void **state);
/* As struct pr_machine_source has it. */
void pr_roster_close(void *state, bool close_files);
