/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the outlet for OpenTelemetry share. */
#pragma once
#include "publish/otlp.h"
#include "sink/otlp.h"
#include "util/db.h"

/* What a server says in an answer: of a success how many points it would not have, of a failure a
 * code; and why. */
struct pr_otlp_answer {
    int64_t number;
    char text[120];
};

/* From the body of an answer: a message of protobuf, or JSON, which `json` reads. False where it is
 * not that; nothing at all is a message without anything in it. */
bool pr_otlp_answered(struct pr_otlp_answer *ret, bool success, const struct pr_buf *body,
                      bool as_json, struct pr_db *json);

/* Whose metrics these are: attributes, and all memory that they need. */
struct pr_otlp_resource {
    struct pr_otlp_attribute *items;
    size_t count;
    bool failed; /* memory is out */
    char **command;
};

/* From the record, the labels of the run, and the variables, of which the last comes first. */
void pr_otlp_describe(struct pr_otlp_resource *ret, const struct pr_stored *r,
                      const struct pr_otlp_setting *setting);
void pr_otlp_resource_done(struct pr_otlp_resource *res);
