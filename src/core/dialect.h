/* SPDX-License-Identifier: Apache-2.0 */
/* Other tools' files, as far as those above the sinks need to know them (src/sink/dialect.c). */
#pragma once
#include "core/sink.h"

struct pr_dialect_file {
    const char *table;
    const char *file; /* what it is usually called */
    bool json;        /* it is for --jsonl, not for --csv */
};

/* The table with this number, from 0, the default first. False behind the last, and where there is
 * no such dialect. */
bool pr_dialect_table(const char *dialect, size_t number, struct pr_dialect_file *ret);
/* Opens the sink of setting->dialect and setting->table (NULL: the first), whatever its form: from
 * snapshots alone it makes all that the tool would have written. */
pr_sink_open pr_dialect_open;
/* The same for --csv or --jsonl, and the first that has this form. -EINVAL where there is none. */
enum pr_dialect_form { DIALECT_ANY, DIALECT_CSV, DIALECT_JSONL };
int pr_dialect_open_as(const struct pr_sink_setting *setting, enum pr_dialect_form form,
                       struct pr_sink **ret_sink, struct proctor_error *err);
