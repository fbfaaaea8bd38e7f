/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as the request that an OpenTelemetry collector takes under /v1/metrics. */
#pragma once
#include "core/sink.h"

/* One of: a text, words, or else the number. */
struct pr_otlp_attribute {
    const char *key, *value;
    char *const *words; /* NULL-terminated */
    int64_t number;
};

/* What stays the same over a run. */
struct pr_otlp {
    struct pr_select select;
    const struct pr_otlp_attribute *resource; /* whose metrics these are */
    size_t resource_count;
    const char *version; /* of proctor */
};

/* Appends the request, as protobuf or JSON, with all samples in it, the oldest first. What is
 * absent is left out. */
void pr_otlp_write(struct pr_buf *out, bool as_json, const struct pr_otlp *of,
                   const struct proctor_snapshot *samples, size_t count);
/* Appends the name of a metric: OpenTelemetry's, else its key behind "proctor.". */
void pr_otlp_name(struct pr_buf *out, const struct pr_metric *m);
/* The attributes by which a run is told from others, up to `most`; returns how many. `host` may be
 * NULL. */
size_t pr_otlp_resource(const struct pr_sink_setting *setting, const char *host,
                        struct pr_otlp_attribute *ret, size_t most);
