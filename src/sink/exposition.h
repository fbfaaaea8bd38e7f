/* SPDX-License-Identifier: Apache-2.0 */
/* A sample as text for Prometheus: names, types, units and help follow from the metric table. */
#pragma once
#include "core/sink.h"

/* Text is version 0.0.4 of Prometheus' own format, which the node exporter's textfile collector
 * takes, too. */
enum pr_exposition_form { EXPOSITION_TEXT, EXPOSITION_OPENMETRICS, EXPOSITION_FORMS };

/* What stays the same over a run. */
struct pr_exposition {
    struct pr_select select;
    char *labels; /* those that all series have, as they are written */
};

/* 0 or -ENOMEM. */
int pr_exposition_init(struct pr_exposition *x, const struct pr_sink_setting *setting);
void pr_exposition_done(struct pr_exposition *x);
/* Appends a whole page. What is absent is left out. */
void pr_exposition_write(struct pr_buf *out, const struct pr_exposition *x,
                         enum pr_exposition_form form, const struct proctor_snapshot *s);
/* Appends the name of a metric, without the _total of counters. */
void pr_exposition_name(struct pr_buf *out, const struct pr_metric *m);
/* The media type of a form. */
const char *pr_exposition_type(enum pr_exposition_form form);
/* The form that an Accept header prefers; NULL where there is none. */
enum pr_exposition_form pr_exposition_choose(const char *accept);
